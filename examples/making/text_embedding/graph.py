"""The encoder as an ONNX graph, built from its weights without a training framework.

BERT (Devlin et al., 2019), then mean over the tokens that the mask keeps, then length one. Equal weights give
equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["IR", "OPSET", "encoder_graph"]

OPSET, IR = 17, 8
HEADS, HEAD_SIZE, WIDTH = 12, 32, 384
LAYERS = 6
EPSILON = 1e-12
MASKED = -10000.0  # added to the attention of a padded token: its weight becomes exactly 0 in float32

Weights = Mapping[str, np.ndarray]


class _Graph:
    """Nodes and constants in the order they are added; each `node` returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: object) -> str:
        output = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=f"node_{output}", **attributes))
        return output

    def constant(self, name: str, value: np.ndarray | float | list[int]) -> str:
        array = np.asarray(value)
        kind = np.float32 if array.dtype.kind == "f" else np.int64
        self.constants[name] = np.ascontiguousarray(array, dtype=kind)
        return name


def encoder_graph(weights: Weights) -> bytes:
    """The serialised model: `input_ids` and `attention_mask` to `embedding`."""
    graph = _Graph()
    hidden = _embed(graph, weights)
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    hindrance = _hindrance(graph, mask)
    for layer in range(LAYERS):
        hidden = _layer(graph, weights, f"encoder.layer.{layer}", hidden, hindrance)
    _pool(graph, hidden, mask)
    return _serialise(graph)


def _embed(graph: _Graph, weights: Weights) -> str:
    root = "embeddings"
    words = graph.constant("word", weights[f"{root}.word_embeddings.weight"])
    kind = weights[f"{root}.token_type_embeddings.weight"][0]
    places = graph.constant("place", weights[f"{root}.position_embeddings.weight"] + kind)
    zero, one = graph.constant("zero", [0]), graph.constant("one", [1])
    length = graph.node("Shape", "input_ids", start=1, end=2)
    place = graph.node("Slice", places, zero, length, zero, one)
    total = graph.node("Add", graph.node("Gather", words, "input_ids"), place)
    return _norm(graph, weights, f"{root}.LayerNorm", total)


def _hindrance(graph: _Graph, mask: str) -> str:
    """0 for a token to attend to, a large negative number for padding: `[batch, 1, 1, tokens]`."""
    absent = graph.node("Sub", graph.constant("full", 1.0), mask)
    spread = graph.node("Unsqueeze", absent, graph.constant("inner_axes", [1, 2]))
    return graph.node("Mul", spread, graph.constant("masked", MASKED))


def _layer(graph: _Graph, weights: Weights, root: str, hidden: str, hindrance: str) -> str:
    mixed = _attention(graph, weights, f"{root}.attention.self", hidden, hindrance)
    mixed = _dense(graph, weights, f"{root}.attention.output.dense", mixed)
    hidden = _norm(graph, weights, f"{root}.attention.output.LayerNorm", graph.node("Add", mixed, hidden))
    inner = _gelu(graph, _dense(graph, weights, f"{root}.intermediate.dense", hidden))
    outer = _dense(graph, weights, f"{root}.output.dense", inner)
    return _norm(graph, weights, f"{root}.output.LayerNorm", graph.node("Add", outer, hidden))


def _attention(graph: _Graph, weights: Weights, root: str, hidden: str, hindrance: str) -> str:
    split = graph.constant("split_heads", [0, 0, HEADS, HEAD_SIZE])
    query, key, value = (
        graph.node("Reshape", _dense(graph, weights, f"{root}.{part}", hidden), split)
        for part in ("query", "key", "value")
    )
    query = graph.node("Transpose", query, perm=[0, 2, 1, 3])
    key = graph.node("Transpose", key, perm=[0, 2, 3, 1])
    value = graph.node("Transpose", value, perm=[0, 2, 1, 3])
    scale = graph.constant("scale", float(HEAD_SIZE) ** 0.5)
    weight = graph.node("Div", graph.node("MatMul", query, key), scale)
    weight = graph.node("Softmax", graph.node("Add", weight, hindrance), axis=-1)
    mixed = graph.node("Transpose", graph.node("MatMul", weight, value), perm=[0, 2, 1, 3])
    return graph.node("Reshape", mixed, graph.constant("join_heads", [0, 0, WIDTH]))


def _dense(graph: _Graph, weights: Weights, root: str, value: str) -> str:
    kernel = graph.constant(f"{root}.weight", weights[f"{root}.weight"].T)
    bias = graph.constant(f"{root}.bias", weights[f"{root}.bias"])
    return graph.node("Add", graph.node("MatMul", value, kernel), bias)


def _norm(graph: _Graph, weights: Weights, root: str, value: str) -> str:
    scale, shift = (graph.constant(f"{root}.{p}", weights[f"{root}.{p}"]) for p in ("weight", "bias"))
    return graph.node("LayerNormalization", value, scale, shift, axis=-1, epsilon=EPSILON)


def _gelu(graph: _Graph, value: str) -> str:
    half, full = graph.constant("half", 0.5), graph.constant("full", 1.0)
    bent = graph.node("Erf", graph.node("Div", value, graph.constant("root_two", 2.0**0.5)))
    return graph.node("Mul", graph.node("Mul", value, graph.node("Add", bent, full)), half)


def _pool(graph: _Graph, hidden: str, mask: str) -> None:
    axis, last = graph.constant("one", [1]), graph.constant("last", [-1])
    kept = graph.node("Unsqueeze", mask, last)
    total = graph.node("ReduceSum", graph.node("Mul", hidden, kept), axis, keepdims=0)
    count = graph.node("Max", graph.node("ReduceSum", mask, axis, keepdims=1), graph.constant("tiny", 1e-9))
    mean = graph.node("Div", total, count)
    length = graph.node("ReduceL2", mean, axes=[1], keepdims=1)
    graph.node("Div", mean, graph.node("Max", length, graph.constant("least", EPSILON)), name="embedding")


def _serialise(graph: _Graph) -> bytes:
    shape = ["batch", "tokens"]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [
                helper.make_tensor_value_info(n, TensorProto.INT64, shape)
                for n in ("input_ids", "attention_mask")
            ],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", WIDTH])],
            [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR,
        producer_name="seatrial example 03-text-embedding",
    )
    return model.SerializeToString(deterministic=True)
