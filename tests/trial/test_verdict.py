"""Promises beside measurements: pass, fail, and the invalid that is neither."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.records import FindingRow, GoldenResult, Knee
from seatrial.trial import Budget, Evidence, judge

from .summaries import load, percentiles

BUDGET = Budget(p50_ms=10, p95_ms=20, p99_ms=25, miss_share=0.001, memory_bytes=300 << 20, peak_per_s=400)
GOOD = {"hold": load(rate=400, n=8000, p50=2, p95=5, p99=10), "peak_rss_bytes": 100 << 20}
SLOW = load(rate=400, n=8000, p50=2, p95=5, p99=60)
LATE = load(rate=400, n=8000, p50=2, p95=5, p99=60, saturated=True, service_ms=percentiles(8000, p99=5))
SLOW_AND_LATE = load(rate=400, n=8000, p50=2, p95=5, p99=60, saturated=True)
WRONG = GoldenResult(
    rows=50, agreed=48, max_abs_error=0.5, tolerance="t", worst="row 3: output `y`[0] is 1, expected 2"
)


def verdict(**changes: Any) -> Any:
    return judge(BUDGET, Evidence(**(GOOD | changes)))


@pytest.mark.parametrize(
    ("changes", "outcome", "words"),
    [
        ({}, "pass", ["Yes: at 400/s", "p99", "n=8,000", "25 ms promised"]),
        ({"hold": SLOW}, "fail", ["No: response p99", "60", "promised 25"]),
        ({"peak_rss_bytes": 400 << 20}, "fail", ["memory", "400 MiB", "300 MiB"]),
        ({"hold": LATE, "peak_rss_bytes": 400 << 20, "neighbours_share": 0.9}, "fail", ["No: memory", "400 MiB"]),
        ({"peak_rss_bytes": None}, "invalid", ["memory of one instance was not measured"]),
        ({"hold": None}, "invalid", ["was not measured"]),
        ({"hold": SLOW, "neighbours_share": 0.4}, "invalid", ["neighbours used 40%"]),
        ({"hold": LATE}, "invalid", ["generator was saturated"]),
        ({"hold": SLOW_AND_LATE}, "fail", ["No: response p99"]),
        ({"neighbours_share": 0.4}, "pass", ["Yes"]),
        ({"golden": WRONG}, "fail", ["2 of 50 golden rows disagree", "row 3"]),
        ({"golden": WRONG, "neighbours_share": 0.9}, "fail", ["golden"]),
        ({"stopped": "the server died (signal 9)"}, "invalid", ["the server died"]),
        ({"hold": load(rate=400, n=8000, p50=2, p95=5, p99=10, ok=7990)}, "fail", ["requests missed: 10 of 8,000"]),
        ({"hold": load(rate=300, n=6000, p50=2, p95=5, p99=10)}, "fail", ["peak load"]),
        ({"hold": load(rate=400, n=300, p50=2, p95=5, p99=10)}, "pass", ["not certified: n=300, needs 662"]),
    ],
)  # fmt: skip
def test_outcome_and_sentence(changes: dict[str, Any], outcome: str, words: list[str]) -> None:
    found = verdict(**changes)
    assert found.outcome == outcome, found.line
    assert [w for w in words if w not in found.line] == []
    assert found.line.count("\n") == 0


def test_a_promise_holds_when_its_bound_does() -> None:
    """p99 of 24 ms with an interval up to 26.4 ms is not certain to lie under 25 ms."""
    found = verdict(hold=load(rate=400, n=8000, p50=2, p95=5, p99=24))
    assert found.outcome == "fail"
    assert [p.promise for p in found.promises if not p.met] == ["response p99"]
    assert verdict(hold=load(rate=400, n=8000, p50=2, p95=5, p99=22.5)).outcome == "pass"


def test_no_promise_is_no_verdict() -> None:
    nothing = Budget(None, None, None, None, None, None)
    assert judge(nothing, Evidence(**GOOD)).outcome == "invalid"


def test_the_knee_shows_as_headroom_only_beyond_the_peak() -> None:
    beyond = verdict(knee=Knee(type="found", lower=1600, upper=2400, why="x"))
    assert "keeps its promises up to 1,600/s" in beyond.line
    at_least = verdict(knee=Knee(type="at_least", lower=3200, why="x"))
    assert "up to at least 3,200/s" in at_least.line
    assert "up to" not in verdict(knee=Knee(type="found", lower=400, upper=600, why="x")).line


def test_next_steps_name_an_owner() -> None:
    failing = verdict(hold=SLOW)
    assert [(s.owner, "queue" in s.text) for s in failing.next_steps] == [("infra", True)]
    finding = FindingRow(
        code="SIG001", severity="error", text="input `x` is not in the graph", owner="algorithm"
    )
    assert verdict(findings=[finding]).next_steps[0].owner == "algorithm"
    assert verdict(draft=True).next_steps[-1].owner == "both"


def test_too_much_memory_is_no_matter_of_speed() -> None:
    heavy = {"peak_rss_bytes": 400 << 20}
    assert ["memory_per_instance" in s.text for s in verdict(**heavy).next_steps] == [True]
    assert ["queue" in s.text for s in verdict(**heavy, hold=SLOW).next_steps] == [False, True]
    assert ["quiet host" in s.text for s in verdict(**heavy, hold=LATE).next_steps] == [False, True]


def test_a_crowd_of_waiting_requests_is_no_noise_of_the_host() -> None:
    quick = percentiles(8000, p99=5)
    crowded = load(rate=400, n=8000, p50=2, p95=5, p99=60, saturated=True, not_sent=100, service_ms=quick)
    assert "lower `load.peak`" in verdict(hold=crowded).next_steps[0].text
    assert "quiet host" in verdict(hold=LATE).next_steps[0].text


def test_a_check_error_fails_whatever_was_measured() -> None:
    finding = FindingRow(
        code="SIG001", severity="error", text="input `x` is not in the graph", owner="algorithm"
    )
    found = verdict(findings=[finding])
    assert found.outcome == "fail"
    assert "input `x` is not in the graph" in found.line
