"""features.yaml against the signature: what is filled by no feature, by several, or where there is no column."""

from __future__ import annotations

import time
from typing import Any

import pytest

from seatrial.contract import FeatureSpec, Signature, column_problems, resolve_features
from seatrial.errors import ContractError

BATCH = {"name": "batch", "max": 8}
TOKENS = {"name": "tokens", "max": 16}


def signature(**shapes: list[Any]) -> Signature:
    inputs = [{"name": n, "datatype": "INT64", "shape": [BATCH, *shape]} for n, shape in shapes.items()]
    outputs = [{"name": "y", "datatype": "FP32", "shape": [BATCH]}]
    head = {"apiVersion": "seatrial/v1", "kind": "Signature"}
    return Signature.model_validate({**head, "inputs": inputs, "outputs": outputs})


def spec(*features: dict[str, Any]) -> FeatureSpec:
    head = {"apiVersion": "seatrial/v1", "kind": "Features"}
    return FeatureSpec.model_validate({**head, "features": list(features)})


def number(tensor: str, column: int, **more: Any) -> dict[str, Any]:
    return {"field": "f", "type": "integer", "tensor": tensor, "column": column, **more}


def tokens(**more: Any) -> dict[str, Any]:
    step = {"step": "tokenizer", "file": "t.json", "max_length": 16, "truncate_side": "right", **more}
    return {"field": "t", "type": "string", "tensor": "ids", "steps": [step]}


def hot(size: int) -> dict[str, Any]:
    return {
        "field": "l",
        "type": "list",
        "items": "integer",
        "tensor": "a",
        "steps": [{"step": "multi_hot", "size": size}],
    }


INDICATOR = {"missing": {"rule": "indicator", "value": 0, "column": 1}}


@pytest.mark.parametrize(
    ("features", "shapes", "expected"),
    [
        ([number("a", 0), number("a", 1)], {"a": [2]}, []),
        ([number("a", 0, **INDICATOR)], {"a": [2]}, []),
        ([hot(6)], {"a": [2, 3]}, []),
        ([number("a", 0)], {"a": []}, []),
        ([tokens(mask="mask")], {"ids": [TOKENS], "mask": [TOKENS]}, []),
        ([number("a", 0)], {"a": [2]}, ["column 1 of input `a`: no feature"]),
        ([number("a", 0), number("a", 2)], {"a": [1]}, ["column 2 of input `a`: none exists"]),
        ([number("a", 0), number("a", 0)], {"a": [1]}, ["column 0 of input `a`: more than one feature"]),
        ([tokens()], {"ids": [TOKENS], "mask": [TOKENS]}, ["the tokens of input `mask`: no feature"]),
        ([tokens()], {"ids": [16]}, ["the tokens of input `ids`: none exists", "column 0 of input `ids`: no feature"]),
    ],
)  # fmt: skip
def test_columns(features: list[dict[str, Any]], shapes: dict[str, list[Any]], expected: list[str]) -> None:
    assert column_problems(spec(*features), signature(**shapes))[: len(expected) or None] == expected


def test_absurd_widths_cost_nothing() -> None:
    begin = time.monotonic()
    assert "more than 4194304 columns" in column_problems(spec(hot(1 << 40)), signature(a=[2]))[0]
    assert "has 1099511627776 columns" in column_problems(spec(), signature(a=[1 << 40]))[0]
    assert time.monotonic() - begin < 1


def test_a_tokenizer_longer_than_the_model_is_refused() -> None:
    longer = spec(tokens(max_length=17))
    with pytest.raises(ContractError, match="`max_length` is 17, and `ids` takes 16"):
        resolve_features(longer, signature(ids=[TOKENS]))
    resolved = resolve_features(spec(tokens()), signature(ids=[TOKENS]))
    assert resolved["tensors"] == [{"name": "ids", "datatype": "INT64", "inner": [None], "range": None}]
    assert resolved["features"][0]["steps"][0]["max_length"] == 16
