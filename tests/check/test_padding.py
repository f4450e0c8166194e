"""The probe of padding: which models bear it, with what appended, and what is cut back from their answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from seatrial.check import init_package
from seatrial.contract import Batching, load_package
from tests.check.modelling import I64, F, const, model, node, save, value

AXIS = const("axis", [1], "int64")


def found(proto: onnx.ModelProto, folder: Path, sample: Path | None = None) -> Batching:
    root = init_package(save(proto, folder / "m.onnx"), folder / "out", sample=sample)
    batching = load_package(root).batching()
    assert batching is not None
    return batching


def masked_sum(*, mask: str = "attention_mask", masked: bool = True) -> onnx.ModelProto:
    """The sum of looked-up numbers under the mask, and the numbers themselves; or the sum of all of them."""
    summed = "kept" if masked else "rows"
    return model(
        [
            node("Gather", ["table", "ids"], ["rows"]),
            node("Cast", [mask], ["open"], to=F),
            node("Mul", ["rows", "open"], ["kept"]),
            node("ReduceSum", [summed, "axis"], ["sum"], keepdims=0),
            node("Neg", ["rows"], ["each"]),
        ],
        [value("ids", ["n", "t"], I64), value(mask, ["n", "t"], I64), value("x", ["n", 2])],
        [value("sum", ["n"]), value("each", ["n", "t"])],
        [const("table", np.arange(1, 9)), AXIS],
    )


def test_what_a_mask_hides_may_be_padded(tmp_path: Path) -> None:
    batching = found(masked_sum(), tmp_path)
    assert batching.mode == "full", batching.why
    assert "`attention_mask`" in batching.why
    assert batching.padding is not None
    assert batching.padding.resolved() == {
        "inputs": {"ids": {"axis": 1, "value": 0}, "attention_mask": {"axis": 1, "value": 0}},
        "outputs": {"each": 1},
    }


def test_a_mask_that_hides_nothing_is_found_out(tmp_path: Path) -> None:
    batching = found(masked_sum(masked=False), tmp_path)
    assert (batching.mode, batching.padding) == ("equal-length", None)
    assert "padding changes the answer: output `sum` differs" in batching.why


def test_without_a_mask_padding_is_not_tried(tmp_path: Path) -> None:
    proto = model(
        [node("Relu", ["x"], ["h"]), node("ReduceSum", ["h", "axis"], ["y"], keepdims=0)],
        [value("x", ["n", "t"])],
        [value("y", ["n"])],
        [AXIS],
    )
    batching = found(proto, tmp_path)
    assert (batching.mode, batching.padding) == ("equal-length", None)
    assert "no input of zeros and ones" in batching.why


def test_a_mask_of_another_name_is_known_by_its_samples(tmp_path: Path) -> None:
    lines = [
        f'{{"inputs": [{{"name": "ids", "datatype": "INT64", "shape": [1, {n}], "data": {list(range(n))}}},'
        f' {{"name": "valid", "datatype": "INT64", "shape": [1, {n}], "data": {[1] * n}}},'
        ' {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}\n'
        for n in (2, 5, 3)
    ]
    samples = tmp_path / "samples.jsonl"
    samples.write_text("".join(lines))
    batching = found(masked_sum(mask="valid"), tmp_path, samples)
    assert batching.padding is not None, batching.why
    assert batching.padding.inputs == {"ids": (1, 0), "valid": (1, 0)}


def test_padding_of_one_where_zero_counts(tmp_path: Path) -> None:
    """As where a model finds the places of its tokens by what is not padding: 1 is what pads, whatever the mask says."""
    proto = model(
        [
            node("Equal", ["ids", "one"], ["is_pad"]),
            node("Not", ["is_pad"], ["is_token"]),
            node("Cast", ["is_token"], ["tokens"], to=F),
            node("Cast", ["mask"], ["open"], to=F),
            node("Sub", ["tokens", "open"], ["wrong"]),
            node("ReduceSum", ["tokens", "axis"], ["y"], keepdims=0),
        ],
        [value("ids", ["n", "t"], I64), value("mask", ["n", "t"], TensorProto.INT32)],
        [value("y", ["n"]), value("wrong", ["n", "t"])],
        [const("one", 1, "int64"), AXIS],
    )
    batching = found(proto, tmp_path)
    assert batching.padding is not None, batching.why
    assert batching.padding.inputs == {"ids": (1, 1), "mask": (1, 0)}


@pytest.mark.parametrize("shape", [["n", "t", "t"], ["n", "u"]])
def test_a_second_length_means_no_padding(tmp_path: Path, shape: list[str]) -> None:
    """A square of the length cannot be padded at its end, nor two lengths by one mask."""
    proto = model(
        [node("Cast", ["mask"], ["y"], to=F), node("Neg", ["x"], ["z"])],
        [value("mask", ["n", "t"], I64), value("x", shape)],
        [value("y", ["n", "t"]), value("z", shape)],
    )
    batching = found(proto, tmp_path)
    assert (batching.mode, batching.padding) == ("equal-length", None)
    assert "2 axes" in batching.why or "2 sizes" in batching.why


def test_dynamic_quantisation_is_never_batched(tmp_path: Path) -> None:
    """Even where the probe sees no difference: here the scale is set by the largest value of any row, a constant."""
    proto = model(
        [
            node("Mul", ["x", "zero"], ["nothing"]),
            node("DynamicQuantizeLinear", ["nothing"], ["q", "s", "z"]),
            node("DequantizeLinear", ["q", "s", "z"], ["y"]),
        ],
        [value("x", ["n", 4])],
        [value("y", ["n", 4])],
        [const("zero", 0.0)],
    )
    batching = found(proto, tmp_path)
    assert batching.mode == "none"
    assert batching.why.startswith("DynamicQuantizeLinear takes its scale from the whole batch")


def test_rows_on_another_axis_or_of_a_baked_number_are_not_batched(tmp_path: Path) -> None:
    time_first = model(
        [node("CumSum", ["x", "zero"], ["y"])],
        [value("x", ["t", "n", 2])],
        [value("y", ["t", "n", 2])],
        [const("zero", 0, "int64")],
    )
    assert found(time_first, tmp_path / "time").mode == "none"
    baked = model([node("Neg", ["x"], ["y"])], [value("x", [4, 2])], [value("y", [4, 2])])
    batching = found(baked, tmp_path / "baked")
    assert (batching.mode, batching.why) == ("none", "the first dimension of input `x` is fixed at 4")
