"""Writes the tiny ONNX models that the session crate's tests load. Run it again and the files are the same bytes.

Not for the examples' models: those have scripts of their own.
"""

from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

FOLDER = Path(__file__).resolve().parent.parent / "crates/seatrial-session/tests/it/models"

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def model(
    nodes: list[NodeProto],
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    constants: list[TensorProto],
) -> ModelProto:
    """One graph with everything that could differ between two runs pinned."""
    graph = helper.make_graph(nodes, "test", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="seatrial-tests")


def value(name: str, element: int, shape: list[int | str]) -> ValueInfoProto:
    """A tensor at the border of a graph."""
    return helper.make_tensor_value_info(name, element, shape)


def constant(name: str, array: np.ndarray) -> TensorProto:
    """An initializer."""
    return numpy_helper.from_array(array, name)


def models() -> dict[str, ModelProto]:
    """Every model by file name."""
    node = helper.make_node
    table = constant("table", np.arange(16, dtype=np.float32).reshape(8, 2))
    two = constant("two", np.array(2, np.float32))
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, ["batch", 2])
    return {
        # y = 2 x, row by row.
        "double.onnx": model(
            [node("Mul", ["x", "two"], ["y"])],
            [value("x", FLOAT, ["batch", 3])],
            [value("y", FLOAT, ["batch", 3])],
            [two],
        ),
        # The same with both sizes fixed.
        "double_fixed.onnx": model(
            [node("Mul", ["x", "two"], ["y"])],
            [value("x", FLOAT, [2, 3])],
            [value("y", FLOAT, [2, 3])],
            [two],
        ),
        # Rows of a table of eight: an id outside -8..7 fails the whole run.
        "lookup.onnx": model(
            [node("Gather", ["table", "ids"], ["y"])],
            [value("ids", INT64, ["batch"])],
            [value("y", FLOAT, ["batch", 2])],
            [table],
        ),
        # Two inputs and two outputs of different types, the second one strings.
        "mixed.onnx": model(
            [node("Mul", ["x", "two"], ["y"]), node("Identity", ["s"], ["t"])],
            [value("x", FLOAT, ["batch", 2]), value("s", STRING, ["batch", "k"])],
            [value("y", FLOAT, ["batch", 2]), value("t", STRING, ["batch", "k"])],
            [two],
        ),
        # Rows of the input are columns of the output: never to be joined.
        "transposed.onnx": model(
            [node("Transpose", ["x"], ["y"])],
            [value("x", FLOAT, ["batch", 3])],
            [value("y", FLOAT, [3, "batch"])],
            [],
        ),
        # An output that is no tensor.
        "sequence.onnx": model(
            [node("SequenceConstruct", ["x", "x"], ["s"])],
            [value("x", FLOAT, ["batch", 2])],
            [sequence],
            [],
        ),
        # Baked size: the reshape inside takes one row only, and fails inside the runtime with two.
        "one_row.onnx": model(
            [node("Reshape", ["x", "shape"], ["y"])],
            [value("x", FLOAT, ["batch", 4])],
            [value("y", FLOAT, [2, 2])],
            [constant("shape", np.array([2, 2], np.int64))],
        ),
    }


def main() -> None:
    """Writes all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, made in models().items():
        (FOLDER / name).write_bytes(made.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
