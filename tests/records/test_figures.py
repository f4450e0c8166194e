"""A percentile cannot be made, kept or printed without its sample size."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from seatrial.records import Percentiles, Quantile, SecondPoint, figure_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0123456, "0.0123"),
        (0.1, "0.100"),
        (1.234, "1.23"),
        (12.44, "12.4"),
        (123.6, "124"),
        (98765.4, "98,765"),
    ],
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert figure_text(value) == text


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 0, "value": 1.0, "needs": 11},
        {"n": 9, "value": 1.0},
        {"n": 9, "value": 1.0, "lower": 0.5},
        {"n": 9, "lower": 0.5, "upper": 2.0},
        {"n": 9, "value": float("nan"), "needs": 11},
        {"n": -1, "needs": 11},
        {"n": 9, "value": 1.0, "needs": 11, "confidence": 0.99},
    ],
)
def test_a_quantile_that_says_too_little_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Quantile(**fields)  # type: ignore[arg-type]


def test_a_quantile_prints_its_sample_size_everywhere() -> None:
    certified = Quantile(n=6000, value=12.4, lower=11.9, upper=13.0)
    short = Quantile(n=120, value=12.4, needs=662)
    assert str(certified) == f"{certified}" == "12.4 ms [11.9, 13.0], n=6,000"
    assert str(short) == "12.4 ms (not certified: n=120, needs 662)"


def test_quantiles_of_different_samples_do_not_mix() -> None:
    empty = Percentiles.empty()
    with pytest.raises(ValidationError, match="not from the same"):
        Percentiles(n=3, **empty.quantiles)


def test_texts_of_an_empty_sample_say_not_measured() -> None:
    empty = Percentiles.empty()
    assert {empty.text(name) for name in ("p50", "p90", "p95", "p99", "p999", "max", "mean")} == {
        "not measured (n=0)"
    }


def test_a_second_gives_no_percentile_without_its_sample_size() -> None:
    with pytest.raises(ValidationError, match="sample size"):
        SecondPoint(t=0, offered=9, achieved=9, ok=9, errors=0, p99_ms=4.0, in_flight=0)
