"""Classifiers that end in ZipMap: the list of dictionaries becomes a tensor [rows, classes] under the same name."""

from __future__ import annotations

from typing import Any

__all__ = ["drop_zipmap"]


def drop_zipmap(proto: Any) -> dict[str, list[str]]:
    """Rewrites every output that a ZipMap makes; returns output name -> labels. The proto is changed in place."""
    import onnx

    found: dict[str, list[str]] = {}
    outputs = {o.name: o for o in proto.graph.output}
    for node in proto.graph.node:
        if node.op_type != "ZipMap" or not node.output or node.output[0] not in outputs or not node.input:
            continue
        labels = _labels(node)
        if not labels:
            continue
        name, scores = node.output[0], node.input[0]
        node.CopyFrom(onnx.helper.make_node("Identity", [scores], [name], name=f"{node.name or name}_scores"))
        shape = [_rows_symbol(proto.graph), len(labels)]
        outputs[name].CopyFrom(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
        found[name] = labels
    return found


def _labels(node: Any) -> list[str]:
    for attribute in node.attribute:
        if attribute.name == "classlabels_int64s":
            return [str(v) for v in attribute.ints]
        if attribute.name == "classlabels_strings":
            return [v.decode("utf-8", "replace") for v in attribute.strings]
    return []


def _rows_symbol(graph: Any) -> str:
    """The symbol that counts rows: that of the first input's first dimension."""
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        if len(dims) and dims[0].dim_param:
            return str(dims[0].dim_param)
    return "rows"
