"""A handful of small models, each written once for Triton's Python backend and once as ONNX for our server.

The recorder reads this file with nothing but the standard library; ONNX is imported only where it is asked for.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["MODELS", "Model", "Tensor", "pack_model", "write_repository"]

HERE = Path(__file__).resolve().parent
MAX_BATCH = 8

# Protocol datatype -> (Triton's configuration type, ONNX element type).
TYPES = {
    "BOOL": ("TYPE_BOOL", "BOOL"),
    "UINT8": ("TYPE_UINT8", "UINT8"),
    "UINT16": ("TYPE_UINT16", "UINT16"),
    "UINT32": ("TYPE_UINT32", "UINT32"),
    "UINT64": ("TYPE_UINT64", "UINT64"),
    "INT8": ("TYPE_INT8", "INT8"),
    "INT16": ("TYPE_INT16", "INT16"),
    "INT32": ("TYPE_INT32", "INT32"),
    "INT64": ("TYPE_INT64", "INT64"),
    "FP16": ("TYPE_FP16", "FLOAT16"),
    "FP32": ("TYPE_FP32", "FLOAT"),
    "FP64": ("TYPE_FP64", "DOUBLE"),
    "BYTES": ("TYPE_STRING", "STRING"),
}


@dataclass(frozen=True)
class Tensor:
    """An input or output. Sizes leave the batch dimension out; -1 is free."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Model:
    """What a model takes, gives and does. `does` is a behaviour of `triton_model.py` and of `_nodes`."""

    name: str
    does: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    batched: bool = field(default=True)


def _echo(datatype: str) -> Model:
    x, y = Tensor("x", datatype, (-1,)), Tensor("y", datatype, (-1,))
    return Model(f"echo_{datatype.lower()}", "echo", (x,), (y,))


MODELS: tuple[Model, ...] = (
    *(_echo(datatype) for datatype in TYPES),
    Model(
        "sums", "sums",
        (Tensor("a", "FP32", (2,)), Tensor("b", "FP32", (2,))),
        (Tensor("sum", "FP32", (2,)), Tensor("difference", "FP32", (2,))),
    ),
    Model(
        "scores", "echo",
        (Tensor("x", "FP32", (4,)),),
        (Tensor("y", "FP32", (4,), labels=("cat", "dog", "fox", "owl")),),
    ),
    Model("plain", "echo", (Tensor("x", "INT64", (2, 2)),), (Tensor("y", "INT64", (2, 2)),), batched=False),
    Model("inverse", "inverse", (Tensor("x", "FP32", (-1,)),), (Tensor("y", "FP32", (-1,)),)),
    Model("lookup", "lookup", (Tensor("ids", "INT64", (1,)),), (Tensor("row", "FP32", (1, 2)),)),
)  # fmt: skip


def write_repository(folder: Path) -> None:
    """Triton's model repository with all models."""
    for model in MODELS:
        home = folder / model.name
        (home / "1").mkdir(parents=True)
        shutil.copy(HERE / "triton_model.py", home / "1" / "model.py")
        (home / "config.pbtxt").write_text(_config(model))
        for tensor in model.outputs:
            if tensor.labels:
                (home / f"{tensor.name}.txt").write_text("\n".join(tensor.labels) + "\n")


def _config(model: Model) -> str:
    lines = [f'name: "{model.name}"', 'backend: "python"']
    lines += [f"max_batch_size: {MAX_BATCH if model.batched else 0}"]
    lines += [_tensor("input", tensor) for tensor in model.inputs]
    lines += [_tensor("output", tensor) for tensor in model.outputs]
    lines += [f'parameters {{ key: "does" value: {{ string_value: "{model.does}" }} }}']
    lines += ["instance_group [{ kind: KIND_CPU count: 1 }]"]
    lines += ["dynamic_batching { }"] if model.batched else []
    return "\n".join(lines) + "\n"


def _tensor(kind: str, tensor: Tensor) -> str:
    labels = f' label_filename: "{tensor.name}.txt"' if tensor.labels else ""
    return (
        f'{kind} [{{ name: "{tensor.name}" data_type: {TYPES[tensor.datatype][0]}'
        f" dims: {list(tensor.dims)}{labels} }}]"
    )


def pack_model(model: Model, folder: Path) -> Path:
    """The delivery package of the same model for our server; returns its folder."""
    import yaml

    from seatrial.check import init_package
    from seatrial.contract import write_manifest

    package = init_package(_onnx(model, folder), folder / model.name, name=model.name)
    signature_file = package / "signature.yaml"
    signature = yaml.safe_load(signature_file.read_text())
    for given, tensor in zip(signature["outputs"], model.outputs, strict=True):
        if tensor.labels:
            given["labels"] = list(tensor.labels)
    signature_file.write_text(yaml.safe_dump(signature, sort_keys=False))
    write_manifest(package)
    return package


def _onnx(model: Model, folder: Path) -> Path:
    import onnx
    from onnx import TensorProto, helper

    def info(tensor: Tensor) -> onnx.ValueInfoProto:
        free = [size if size >= 0 else f"n{axis}" for axis, size in enumerate(tensor.dims)]
        element = getattr(TensorProto, TYPES[tensor.datatype][1])
        return helper.make_tensor_value_info(
            tensor.name, element, ["batch", *free] if model.batched else free
        )

    nodes, constants = _nodes(model)
    graph = helper.make_graph(
        nodes, model.name, [info(t) for t in model.inputs], [info(t) for t in model.outputs], constants
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file = folder / f"{model.name}.onnx"
    onnx.save(made, str(file))
    return file


def _nodes(model: Model):
    from onnx import TensorProto, helper

    node = helper.make_node
    match model.does:
        case "echo":
            return [node("Identity", ["x"], ["y"])], []
        case "sums":
            return [node("Add", ["a", "b"], ["sum"]), node("Sub", ["a", "b"], ["difference"])], []
        case "inverse":
            return [node("Reciprocal", ["x"], ["y"])], []
        case "lookup":
            table = helper.make_tensor("table", TensorProto.FLOAT, [4, 2], [n / 2 for n in range(8)])
            return [node("Gather", ["table", "ids"], ["row"])], [table]
    raise AssertionError(model.does)
