"""Columns to figures: seconds, and a spectrum of exactly the requests that the record judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seatrial.report.requests import (
    HTTP_ERROR,
    NOT_SENT,
    OK,
    TIMEOUT,
    Requests,
    read_requests,
    seconds,
    spectrum,
)
from tests.report.sample_record import percentiles


@pytest.fixture
def requests() -> Requests:
    """Three seconds: four right answers, a refusal, a time-out after 2.5 s, one that could not be sent."""
    intended = np.array([0.1, 0.2, 0.3, 1.1, 1.2, 0.4, 2.1])
    took = np.array([0.010, 0.020, 0.030, 0.015, 0.001, 2.5, 0.0])
    sent = np.where(np.arange(7) == 6, np.nan, intended + 0.001)
    return Requests(
        intended, sent, intended + took, np.array([OK, OK, OK, OK, HTTP_ERROR, TIMEOUT, NOT_SENT])
    )


def test_seconds_count_each_request_once(requests: Requests) -> None:
    points = seconds(requests)
    assert [p.offered for p in points] == [4, 2, 1]
    assert [p.achieved for p in points] == [3, 2, 0]
    assert [p.ok for p in points] == [3, 1, 0]
    assert [p.errors for p in points] == [0, 1, 1]
    assert [p.n for p in points] == [4, 1, 1]
    assert [p.in_flight for p in points] == [1, 1, 0]
    assert [p.p99_ms for p in points] == [pytest.approx(2500), pytest.approx(15), pytest.approx(0)]


def test_the_spectrum_holds_timeouts_and_no_refusal(requests: Requests) -> None:
    judged = requests.response_ms[requests.judged]
    points = spectrum(requests, requests.response_ms, percentiles(judged))
    assert points is not None
    assert points[-1] == (pytest.approx(1 - 1 / 6), pytest.approx(2500))
    assert [v for _, v in points] == sorted(v for _, v in points)


@pytest.mark.parametrize("change", [lambda v: v[:-1], lambda v: v * 2])
def test_another_sample_gives_no_spectrum(requests: Requests, change: object) -> None:
    other = percentiles(change(requests.response_ms[requests.judged]))  # type: ignore[operator]
    assert spectrum(requests, requests.response_ms, other) is None


def test_an_absent_or_broken_file_is_no_figure(tmp_path: Path) -> None:
    (tmp_path / "requests.arrow").write_bytes(b"\xff\xff\xff\xff torn")
    assert read_requests(tmp_path / "requests.arrow") is None
    assert read_requests(tmp_path / "nothing.arrow") is None
