"""Floating-point operations and activation memory of one row, counted from inferred shapes.

Counted by formula: products (MatMul, Gemm, Conv, ConvTranspose, Einsum is not), recurrent layers, and one operation
an element for arithmetic and activations. What has no formula here or no known shape is named, not guessed.
Runs as a process of its own (`python -m seatrial.check.work job.json`), since shape inference is native code.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections import Counter
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

__all__ = ["count_work", "main"]

Shapes = dict[str, list[int] | None]

_FREE = {
    "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split", "Slice", "Gather",
    "GatherElements", "GatherND", "Shape", "Size", "Constant", "ConstantOfShape", "Expand", "Cast", "CastLike",
    "Pad", "Tile", "Range",
    "NonZero", "OneHot", "ScatterElements", "ScatterND", "Dropout", "LabelEncoder", "ZipMap",
    "DequantizeLinear", "QuantizeLinear", "DynamicQuantizeLinear",
}  # fmt: skip
_ONE_AN_ELEMENT = {
    "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Relu", "LeakyRelu", "PRelu", "Clip", "Min", "Max", "Sum", "Where", "Equal",
    "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "And", "Or", "Xor", "Sqrt", "Reciprocal", "Floor", "Ceil",
    "Round", "Sign", "Mod", "BitShift", "Exp", "Log", "Pow", "Sigmoid", "Tanh", "Erf", "Sin", "Cos", "HardSigmoid",
    "HardSwish", "Softplus", "Elu", "Selu", "Gelu", "Mean", "IsNaN", "IsInf",
}  # fmt: skip
_PER_INPUT = {
    "ReduceSum": 1, "ReduceMean": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceL2": 2, "ReduceSumSquare": 2,
    "GlobalAveragePool": 1, "GlobalMaxPool": 1, "Softmax": 5, "LogSoftmax": 5, "LayerNormalization": 8,
    "BatchNormalization": 2, "InstanceNormalization": 8, "ArgMax": 1, "ArgMin": 1, "TopK": 1, "CumSum": 1,
}  # fmt: skip
_BYTES = {1: 4, 6: 4, 12: 4, 7: 8, 11: 8, 13: 8, 4: 2, 5: 2, 10: 2, 16: 2}


def count_work(
    proto: Any, sizes: dict[str, int], inputs: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Counts a model whose free dimensions have these sizes; a dimension that is not named counts as 1.

    With `inputs` (name, datatype, dims, range) the model is run once and shapes are the real ones; without, or when
    it does not run, they are inferred from the graph.
    """
    shapes, widths = _shapes_of_run(proto, sizes, inputs) if inputs is not None else ({}, {})
    if not shapes:
        shapes, widths = _inferred_shapes(proto, sizes)
    by_op: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for node in proto.graph.node:
        flops = _flops(node, shapes)
        if flops is None:
            missing[node.op_type] += 1
        elif flops:
            by_op[node.op_type] += flops
    return {
        "flops": by_op.total(),
        "activation_bytes": _peak_bytes(proto.graph, shapes, widths),
        "by_op": dict(by_op.most_common()),
        "not_counted": dict(missing),
        "at": sizes,
    }


def main(job_file: str) -> None:
    """Counts the model that the job names and leaves the figures in its result file."""
    import onnx

    job = json.loads(Path(job_file).read_text("utf-8"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (job["memory_bytes"], job["memory_bytes"]))
    proto = onnx.load(job["model"], load_external_data=False)
    # A model given as bytes looks for its external data in the working directory.
    os.chdir(Path(job["model"]).parent)
    Path(job["result"]).write_text(json.dumps(count_work(proto, job["sizes"], job["inputs"])), "utf-8")


def _shapes_of_run(
    proto: Any, sizes: dict[str, int], inputs: list[dict[str, Any]]
) -> tuple[Shapes, dict[str, int]]:
    """Shapes and element widths of every value of the main graph, from one run that gives them all out."""
    import onnx
    import onnxruntime as ort

    from seatrial.check.probe.inputs import InputSpec, make_inputs

    specs = [
        InputSpec(i["name"], i["datatype"], tuple(i["dims"]), i["range"] and tuple(i["range"]))
        for i in inputs
    ]
    known = {d: sizes.get(d, 1) for s in specs for d in s.dims if isinstance(d, str)}
    feeds = make_inputs(specs, known, 0, 1)
    open_model = onnx.ModelProto()
    open_model.CopyFrom(proto)
    given = {o.name for o in proto.graph.output}
    names = list(dict.fromkeys(n for node in proto.graph.node for n in node.output if n and n not in given))
    open_model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(
            open_model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        values = session.run([*given, *names], feeds)
    except Exception:
        # Whatever the runtime dislikes here (sequences, bfloat16, sizes), the graph is still there to infer from.
        return {}, {}
    arrays = {n: v for n, v in zip((*given, *names), values, strict=True) if hasattr(v, "shape")}
    arrays.update(feeds)
    shapes: Shapes = {t.name: list(t.dims) for t in proto.graph.initializer}
    shapes.update({n: list(v.shape) for n, v in arrays.items()})
    return shapes, {n: v.dtype.itemsize for n, v in arrays.items()}


def _inferred_shapes(proto: Any, sizes: dict[str, int]) -> tuple[Shapes, dict[str, int]]:
    import onnx.shape_inference

    _fix_inputs(proto.graph, sizes)
    return _known_shapes(onnx.shape_inference.infer_shapes(proto, data_prop=True).graph)


def _fix_inputs(graph: Any, sizes: dict[str, int]) -> None:
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param or dim.dim_value <= 0:
                dim.dim_value = sizes.get(dim.dim_param, 1) if dim.dim_param else 1
    # Declared shapes of outputs and inner values may contradict the fixed inputs; inference finds them anew.
    del graph.value_info[:]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")


def _known_shapes(graph: Any) -> tuple[Shapes, dict[str, int]]:
    shapes: Shapes = {t.name: list(t.dims) for t in graph.initializer}
    widths: dict[str, int] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        declared = value.type.tensor_type
        if not declared.HasField("shape"):
            continue
        dims = [d.dim_value if d.HasField("dim_value") else -1 for d in declared.shape.dim]
        shapes[value.name] = None if -1 in dims else dims
        widths[value.name] = _BYTES.get(declared.elem_type, 1)
    return shapes, widths


def _flops(node: Any, shapes: Shapes) -> int | None:
    op = node.op_type
    if op in _FREE:
        return 0
    inputs = [shapes.get(n) for n in node.input if n]
    outputs = [shapes.get(n) for n in node.output if n]
    if not outputs or outputs[0] is None or not inputs or inputs[0] is None:
        return None
    if op in _ONE_AN_ELEMENT:
        return prod(outputs[0])
    if op in _PER_INPUT:
        return _PER_INPUT[op] * prod(inputs[0])
    if op in ("AveragePool", "MaxPool"):
        window: list[int] = next((list(a.ints) for a in node.attribute if a.name == "kernel_shape"), [])
        return prod(outputs[0]) * prod(window)
    formula = _FORMULAS.get(op)
    if formula is None or len(inputs) < 2 or inputs[1] is None:
        return None
    return formula(node, [inputs[0], inputs[1]], outputs[0])


def _matmul(node: Any, inputs: list[list[int]], output: list[int]) -> int:
    return 2 * prod(output) * (inputs[0][-1] if inputs[0] else 1)


def _gemm(node: Any, inputs: list[list[int]], output: list[int]) -> int:
    transposed = any(a.name == "transA" and a.i for a in node.attribute)
    return 2 * prod(output) * inputs[0][0 if transposed else -1]


def _conv(node: Any, inputs: list[list[int]], output: list[int]) -> int:
    """Weights are [out, in / groups, kernel...]: one product each for every place of the output."""
    return 2 * prod(output) * prod(inputs[1][1:])


def _conv_transpose(node: Any, inputs: list[list[int]], output: list[int]) -> int:
    return 2 * prod(inputs[0]) * prod(inputs[1][1:])


def _recurrent(node: Any, inputs: list[list[int]], output: list[int]) -> int | None:
    """X is [steps, batch, in], W is [directions, gates * hidden, in]; the recurrent weights are hidden wide.

    The runtime's own quantised form keeps W the other way round.
    """
    hidden = next((a.i for a in node.attribute if a.name == "hidden_size"), 0)
    if len(inputs[0]) != 3 or len(inputs[1]) != 3 or not hidden:
        return None
    steps, batch, width = inputs[0]
    directions, rows = inputs[1][0], inputs[1][2 if node.op_type == "DynamicQuantizeLSTM" else 1]
    return 2 * int(steps * batch * directions * rows) * int(width + hidden)


_FORMULAS: dict[str, Callable[[Any, list[list[int]], list[int]], int | None]] = {
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvInteger": _conv,
    "ConvTranspose": _conv_transpose,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "DynamicQuantizeLSTM": _recurrent,
}


def _peak_bytes(graph: Any, shapes: Shapes, widths: dict[str, int]) -> int:
    """The most bytes of activations alive at one node, if each is freed after its last use."""
    stored = {t.name for t in graph.initializer}
    last_use = {n: i for i, node in enumerate(graph.node) for n in node.input}
    kept = {o.name for o in graph.output}
    alive: dict[str, int] = {
        v.name: _bytes(v.name, shapes, widths) for v in graph.input if v.name not in stored
    }
    peak = sum(alive.values())
    for i, node in enumerate(graph.node):
        alive.update({n: _bytes(n, shapes, widths) for n in node.output if n})
        peak = max(peak, sum(alive.values()))
        for name in [n for n in alive if last_use.get(n, -1) <= i and n not in kept]:
            del alive[name]
    return peak


def _bytes(name: str, shapes: Shapes, widths: dict[str, int]) -> int:
    shape = shapes.get(name)
    return 0 if shape is None else prod(shape) * widths.get(name, 4)


if __name__ == "__main__":
    main(sys.argv[1])
