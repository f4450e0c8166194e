"""The examples hold to the contract, and what cannot be known of them is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.check import check_package
from seatrial.contract import load_package

# What the checks may find: a sample file too long to be read to its end, a draft, and seeds nobody published.
KNOWN = {
    "01-movie-ctr": {"SMP005", "EVI002"},
    "02-file-type": {"SMP005", "EVI002", "IDN003"},
    "03-text-embedding": {"SMP005", "EVI002"},
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_check_finds_nothing_to_do(prepared: Path, name: str) -> None:
    report = check_package(prepared / name)
    assert [f for f in report.findings if f.severity == "error"] == []
    assert {f.code for f in report.findings} <= KNOWN[name]


@pytest.mark.parametrize(
    ("name", "mode"),
    [("01-movie-ctr", "full"), ("02-file-type", "none"), ("03-text-embedding", "full")],
)
def test_the_probe_of_batching_belongs_to_this_very_model(prepared: Path, name: str, mode: str) -> None:
    batching = load_package(prepared / name).batching()
    assert batching is not None
    assert batching.mode == mode


@pytest.mark.parametrize("name", KNOWN)
def test_the_budget_can_be_judged(prepared: Path, name: str) -> None:
    slo = load_package(prepared / name).slo
    bounds = slo.latency.total
    assert bounds.p50 is not None
    assert bounds.p95 is not None
    assert bounds.p99 is not None
    assert slo.load.peak is not None
    assert slo.memory_per_instance is not None
