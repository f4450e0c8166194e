"""inspect_model: inputs, operators, sizes and the work of a row, against figures done by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seatrial.check import inspect_model
from seatrial.errors import ContractError
from tests.check.modelling import I64, F, const, external, model, node, save, value


def test_the_facts_of_a_small_model(tmp_path: Path) -> None:
    proto = model(
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Relu", ["h"], ["r"]),
            node("QuickGelu", ["r"], ["y"], domain="com.microsoft"),
        ],
        [value("x", ["n", 4])],
        [value("y", ["n", 8])],
        [const("w", np.ones((4, 8)))],
        opsets=[("", 17), ("com.microsoft", 1)],
        producer_name="maker",
        producer_version="2",
    )
    facts = inspect_model(save(proto, tmp_path / "m.onnx"))
    assert [(t.name, t.datatype, t.dims) for t in facts.inputs] == [("x", "FP32", ("n", 4))]
    assert facts.operators == {"MatMul": 1, "Relu": 1, "com.microsoft.QuickGelu": 1}
    assert (facts.n_parameters, facts.parameter_bytes) == (32, 128)
    assert (facts.opset, facts.ir, facts.producer) == (17, 8, "maker 2")
    assert facts.domains == {"com.microsoft": ["QuickGelu -> y"]}
    assert facts.longest_sum == 8
    assert facts.work is not None
    assert facts.work.flops == 2 * 4 * 8 + 8
    assert facts.work.not_counted == {"QuickGelu": 1}
    # At the MatMul: 4 inputs and 8 products; later two times 8 values.
    assert facts.work.activation_bytes == 16 * 4
    assert facts.memory_bytes == 128 + 64


@pytest.mark.parametrize(
    ("nodes", "inputs", "output", "stored", "flops"),
    [
        (
            [node("Gemm", ["x", "w"], ["y"], transB=1)],
            ["n", 3],
            ["n", 5],
            [const("w", np.ones((5, 3)))],
            2 * 3 * 5,
        ),
        (
            [node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
            ["n", 3, 8, 8],
            ["n", 4, 8, 8],
            [const("w", np.ones((4, 3, 3, 3)))],
            2 * 4 * 64 * 27,
        ),
        (
            [node("ConvTranspose", ["x", "w"], ["y"])],
            ["n", 3, 4, 4],
            ["n", 2, 5, 5],
            [const("w", np.ones((3, 2, 2, 2)))],
            2 * 3 * 16 * 8,
        ),
        (
            [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2)],
            [5, "n", 3],
            [5, 1, "n", 2],
            [const("w", np.ones((1, 8, 3))), const("r", np.ones((1, 8, 2)))],
            2 * 5 * 8 * (3 + 2),
        ),
        ([node("Softmax", ["x"], ["y"])], ["n", 6], ["n", 6], [], 5 * 6),
        ([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])], ["n", 1, 3, 3], ["n", 1, 2, 2], [], 4 * 4),
    ],
)
def test_operations_are_counted_as_by_hand(
    tmp_path: Path, nodes: list, inputs: list, output: list, stored: list, flops: int
) -> None:
    proto = model(nodes, [value("x", inputs)], [value("y", output)], stored)
    facts = inspect_model(save(proto, tmp_path / "m.onnx"))
    assert facts.work is not None
    assert facts.work.flops == flops


def test_work_follows_the_sizes_that_are_given(tmp_path: Path) -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", ["n", "t"])], [value("y", ["n", "t"])])
    work = inspect_model(save(proto, tmp_path / "m.onnx"), {"n": 1, "t": 7}).work
    assert work is not None
    assert work.flops == 7
    assert work.at == {"n": 1, "t": 7}


def test_a_model_that_cannot_run_here_is_counted_from_its_graph(tmp_path: Path) -> None:
    """The external data is missing, so the shapes are inferred."""
    facts = inspect_model(save(external("gone.bin"), tmp_path / "m.onnx"))
    assert [e.location for e in facts.external] == ["gone.bin"]
    assert facts.work is not None
    assert facts.work.flops == 2 * 2 * 2


@pytest.mark.parametrize(
    ("declared", "seen"),
    [
        ("n", "n"),
        ("?", None),
        ("None", None),
        (-1, None),
        (0, None),
        (None, None),
        ("floor(h/2)", "floor(h/2)"),
    ],
)
def test_dimensions_that_say_nothing_are_free(tmp_path: Path, declared: object, seen: object) -> None:
    proto = model([node("Relu", ["x"], ["y"])], [value("x", [declared, 2])], [value("y", None)])
    facts = inspect_model(save(proto, tmp_path / "m.onnx"))
    assert facts.inputs[0].dims == (seen, 2)
    assert facts.outputs[0].dims is None


def test_tables_are_found_behind_a_scale_and_beside_a_shape(tmp_path: Path) -> None:
    proto = model(
        [
            node("Cast", ["small"], ["wide"], to=F),
            node("Mul", ["wide", "scale"], ["table"]),
            node("Gather", ["table", "ids"], ["y"]),
            node("Shape", ["ids"], ["shape"]),
        ],
        [value("ids", ["n"], I64)],
        [value("y", ["n", 2]), value("shape", [1], I64)],
        [const("small", np.ones((6, 2)), "int8"), const("scale", 0.5)],
    )
    assert inspect_model(save(proto, tmp_path / "m.onnx")).tables == {"ids": 6}


def test_what_is_no_model_is_an_error_with_a_cure(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    with pytest.raises(ContractError) as caught:
        inspect_model(tmp_path / "m.onnx")
    assert caught.value.hint
