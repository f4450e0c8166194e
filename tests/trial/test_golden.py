"""Golden rows: what counts as the same answer."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.contract import Golden
from seatrial.trial import compare_golden


def output(data: list[Any], datatype: str = "FP32", shape: list[int] | None = None) -> dict[str, Any]:
    return {"name": "y", "datatype": datatype, "shape": shape or [len(data)], "data": data}


def golden(*outputs: dict[str, Any]) -> Golden:
    return Golden.model_validate({"request": {"inputs": []}, "outputs": list(outputs)})


@pytest.mark.parametrize(
    ("want", "got", "agrees"),
    [
        (output([1.0, 2.0]), output([1.000019, 2.0]), True),
        (output([1.0, 2.0]), output([1.00003, 2.0]), False),
        (output([0.0, 1.0]), output([0.000009, 1.0]), True),
        (output([0.0, 1.0]), output([0.005, 1.0]), False),
        (output(["NaN", 1.0]), output(["NaN", 1.0]), True),
        (output([1.0, 1.0]), output(["NaN", 1.0]), False),
        (output(["Infinity"]), output(["-Infinity"]), False),
        (output([1, 2]), output([1.0, 2.0]), True),
        (output([9007199254740993], "INT64"), output([9007199254740992], "INT64"), False),
        (output(["NaN"], "BYTES"), output(["NaN"], "BYTES"), True),
        (output(["a"], "BYTES"), output(["b"], "BYTES"), False),
        (output([True], "BOOL"), output([False], "BOOL"), False),
        (output([[1.0], [2.0]], shape=[2, 1]), output([1.0, 2.0], shape=[2, 1]), True),
        (output([1.0, 2.0], shape=[2, 1]), output([1.0, 2.0], shape=[1, 2]), False),
        (output([1.0, 2.0], shape=[2]), output([1.0], shape=[2]), False),
    ],
)
def test_agreement(want: dict[str, Any], got: dict[str, Any], agrees: bool) -> None:
    result = compare_golden([golden(want)], [{"outputs": [got]}])
    assert result.agreed == int(agrees), result.worst
    assert agrees or result.worst.startswith("row 1")


def test_a_missing_output_is_named() -> None:
    result = compare_golden([golden(output([1.0]))], [{"outputs": []}])
    assert result.agreed == 0
    assert "output `y` is missing" in result.worst


def test_the_largest_error_is_reported_even_when_all_agree() -> None:
    rows = [golden(output([1.0])), golden(output([2.0]))]
    result = compare_golden(rows, [{"outputs": [output([1.0])]}, {"outputs": [output([2.00001])]}])
    assert (result.rows, result.agreed) == (2, 2)
    assert result.max_abs_error == pytest.approx(1e-5, rel=1e-3)
    assert "row 2" in result.worst
