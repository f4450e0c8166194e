"""Models made on the spot, and server configurations written for them without a package."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from seatrial.engine import find_runtime

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def doubling(folder: Path) -> Path:
    """`y = 2 x` for FP32 rows of two."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "doubling",
        [helper.make_tensor_value_info("x", FLOAT, ["batch", 2])],
        [helper.make_tensor_value_info("y", FLOAT, ["batch", 2])],
    )
    return _save(graph, folder / "doubling.onnx")


def spinning(folder: Path) -> Path:
    """Gives back its scalar `steps` after that many turns of a loop: about 1.2 microseconds each."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Add", ["sum", "one"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("turn", INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", INT64, []),
        ],
        [
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", INT64, []),
        ],
        [helper.make_tensor("one", INT64, [], [1])],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["steps", "", "zero"], ["count"], body=body)],
        "spinning",
        [helper.make_tensor_value_info("steps", INT64, [])],
        [helper.make_tensor_value_info("count", INT64, [])],
        [helper.make_tensor("zero", INT64, [], [0])],
    )
    return _save(graph, folder / "spinning.onnx")


def odd_names(folder: Path) -> Path:
    """Names as TensorFlow's exporter writes them, two outputs."""
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["serving_default_input:0"], ["StatefulPartitionedCall:0"]),
            helper.make_node("Neg", ["serving_default_input:0"], ["out/a b.1"]),
        ],
        "odd",
        [helper.make_tensor_value_info("serving_default_input:0", FLOAT, ["n"])],
        [
            helper.make_tensor_value_info("StatefulPartitionedCall:0", FLOAT, ["n"]),
            helper.make_tensor_value_info("out/a b.1", FLOAT, ["n"]),
        ],
    )
    return _save(graph, folder / "odd_names.onnx")


def two_batch_symbols(folder: Path) -> Path:
    """Two inputs whose rows must agree although the file calls them by different names."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        "two",
        [
            helper.make_tensor_value_info("a", FLOAT, ["batch_a", 2]),
            helper.make_tensor_value_info("b", FLOAT, ["batch_b", 2]),
        ],
        [helper.make_tensor_value_info("y", FLOAT, ["batch_a", 2])],
    )
    return _save(graph, folder / "two_batch_symbols.onnx")


ROWS = {"name": "batch", "max": None}
SIGNATURES: dict[str, dict[str, Any]] = {
    "doubling": {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [ROWS, 2]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [ROWS, 2]}],
    },
    "spinning": {
        "inputs": [{"name": "steps", "datatype": "INT64", "shape": []}],
        "outputs": [{"name": "count", "datatype": "INT64", "shape": []}],
    },
}


def entry(file: Path, **changes: Any) -> dict[str, Any]:
    """The part of a configuration that names one model."""
    mode = "full" if file.stem == "doubling" else "none"
    return {
        "name": file.stem,
        "version": "1.2.0",
        "digest": hashlib.sha256(file.read_bytes()).hexdigest(),
        "model_file": str(file),
        "signature": SIGNATURES[file.stem],
        "batching": {"mode": mode, "max_rows": 64, "why": "made so"},
        "queue_rows": 64,
        "timeout_ms": 10_000,
        # The time of `spinning` depends on the value, so a measurement of it says nothing.
        "measure_ms": 3000 if file.stem == "doubling" else 0,
    } | changes


def config(*models: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A configuration of a server on a free port."""
    return {
        "listen": {"host": "127.0.0.1", "port": 0},
        "runtime_library": str(find_runtime().library),
        "models": list(models),
    } | changes


def rows(*values: float) -> bytes:
    """An inference request for `doubling`."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(values) // 2, 2], "data": list(values)}
    return json.dumps({"inputs": [tensor]}).encode()


def steps(turns: int, **parameters: Any) -> bytes:
    """An inference request for `spinning`."""
    tensor = {"name": "steps", "datatype": "INT64", "shape": [], "data": [turns]}
    return json.dumps({"inputs": [tensor], "parameters": parameters}).encode()


def _save(graph: onnx.GraphProto, file: Path) -> Path:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, file)
    return file
