"""Packages of the shared models, made by `init_package` once a session; also two models that only the requests name."""

from __future__ import annotations

import functools
from pathlib import Path

from seatrial.check import init_package

__all__ = ["REFUSED", "SERVABLE", "pack_models"]

# Shared model -> words of the refusal. `dropout_left_on` is packed but is no model to serve: `check` says so.
REFUSED = {
    "custom_op": ["com.example", "FancyPool"],
    "ext_missing": ["not_there.bin"],
    "ir_too_new": ["IR 99", "takes up to 13"],
    "opset_too_new": ["opset 99", "takes up to 26"],
    "seq_out": ["`s`", "sequence"],
}

# Shared model -> batching mode that the probe must find.
SERVABLE = {
    "baked_batch": "none",
    "batch_axis1_out": "none",
    "batch_mixing": "none",
    "conv_any_size": "equal-length",
    "echo_bfloat16": "full",
    "echo_bool": "full",
    "echo_double": "full",
    "echo_float": "full",
    "echo_float16": "full",
    "echo_int16": "full",
    "echo_int32": "full",
    "echo_int64": "full",
    "echo_int8": "full",
    "echo_string": "full",
    "echo_uint16": "full",
    "echo_uint32": "full",
    "echo_uint64": "full",
    "echo_uint8": "full",
    "embed": "equal-length",
    "ext_ok": "full",
    "fp16_mask_softmax": "full",
    "fp16_overflow_fp32": "full",
    "if_traced_wrong": "full",
    "if_true_model": "none",
    "int64_add1": "full",
    "label_encoder": "full",
    "log_exp": "full",
    "nan_inf_out": "full",
    "nonzero_rows": "none",
    "opset_6_too_old": "full",
    "opset_import_twice": "full",
    "scalar_in": "none",
    "slow_by_input": "none",
    "tree_threshold": "full",
    "zipmap_int64": "full",
    "zipmap_string": "full",
}


@functools.cache
def pack_models(shared: Path, out: Path) -> list[Path]:
    """Packs every servable shared model into `out`, and the two of `make_named_models`; cached for the session."""
    sources = [shared / "cases" / "models" / f"{name}.onnx" for name in SERVABLE]
    sources += make_named_models(out / "made")
    return [init_package(source, out / source.stem) for source in sources]


def make_named_models(folder: Path) -> list[Path]:
    """`odd_names` and `two_batch_symbols`, which shared/cases/http sends requests to."""
    import onnx
    from onnx import TensorProto, helper

    folder.mkdir(parents=True, exist_ok=True)
    value = helper.make_tensor_value_info
    odd = helper.make_graph(
        [
            helper.make_node("Identity", ["serving_default_input:0"], ["StatefulPartitionedCall:0"]),
            helper.make_node("Neg", ["serving_default_input:0"], ["out/with space, comma & ümlaut"]),
        ],
        "odd_names",
        [value("serving_default_input:0", TensorProto.FLOAT, ["unk__12"])],
        [
            value("StatefulPartitionedCall:0", TensorProto.FLOAT, ["unk__12"]),
            value("out/with space, comma & ümlaut", TensorProto.FLOAT, ["unk__12"]),
        ],
    )
    two = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        "two_batch_symbols",
        [value("a", TensorProto.FLOAT, ["batch_a", 2]), value("b", TensorProto.FLOAT, ["batch_b", 2])],
        [value("y", TensorProto.FLOAT, ["batch_a", 2])],
    )
    paths = []
    for graph in (odd, two):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path = folder / f"{graph.name}.onnx"
        onnx.save(model, str(path))
        paths.append(path)
    return paths
