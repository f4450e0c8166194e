"""Tiny models and packages made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["I64", "F", "const", "external", "model", "node", "save", "value"]

F, I64 = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node


def value(name: str, shape: list[Any] | None, dtype: int = F) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def const(name: str, array: Any, dtype: Any = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, dtype=dtype), name)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    stored: list[onnx.TensorProto] | None = None,
    **options: Any,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "made", inputs, outputs, stored or [])
    opsets = options.pop("opsets", [("", 17)])
    imports = [helper.make_opsetid(d, v) for d, v in opsets]
    return helper.make_model(graph, opset_imports=imports, ir_version=options.pop("ir", 8), **options)


def save(proto: onnx.ModelProto, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(proto.SerializeToString())
    return path


def external(location: str, **entries: object) -> onnx.ModelProto:
    """A product with a weight of 16 bytes that lies in another file."""
    weight = onnx.TensorProto(name="w", dims=[2, 2], data_type=F, data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=str(text))
    return model(
        [node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", 2])], [value("y", ["n", 2])], [weight]
    )
