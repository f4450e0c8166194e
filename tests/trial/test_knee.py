"""When a step is good, and the five typed answers of the knee."""

from __future__ import annotations

import pytest

from seatrial.trial import Budget, StepResult, judge_step, knee_of

from .summaries import load, percentiles

BUDGET = Budget(p50_ms=None, p95_ms=None, p99_ms=25, miss_share=0.01, memory_bytes=None, peak_per_s=400)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"p99": 20}, ""),
        ({"p99": 24}, "p99"),  # the interval's upper end, 26.4, is over the budget
        ({"p99": 30}, "p99"),
        ({"ok": 1979}, "missed"),  # 1.05 % of 2,000
        ({"ok": 1980}, ""),
        ({"n": 600, "p99": 26}, "p99"),  # not certified: the value itself is judged
        ({"n": 600, "p99": 24}, ""),
        ({"n": 0}, "no request was answered"),
        ({"completed": 1975}, "keep up"),
    ],
)
def test_a_step_is_good_when_nothing_breaks_the_budget(changes: dict[str, float], word: str) -> None:
    why = judge_step(load(**changes), BUDGET).why
    assert (word in why) if word else why == "", why


@pytest.mark.parametrize(
    ("service_p99", "limited"),
    [
        (5, True),  # the server was quick whenever it was asked: the delay is the generator's
        (26, True),  # its interval, 23.4 to 28.6, holds the limit: not sure
        (60, False),  # the server alone is too slow, however late the generator was
    ],
)
def test_a_slow_server_is_not_excused_by_a_late_generator(service_p99: float, limited: bool) -> None:
    late = load(p99=60, saturated=True, service_ms=percentiles(2000, p99=service_p99))
    assert judge_step(late, BUDGET).generator_limited is limited


def test_one_miss_in_a_thousand_is_tolerated_without_a_promise() -> None:
    free = Budget(None, None, None, None, None, None)
    assert judge_step(load(ok=1998), free).good
    assert not judge_step(load(ok=1997), free).good


@pytest.mark.parametrize(
    ("steps", "kind", "lower", "upper"),
    [
        ([(100, True), (200, True), (300, False)], "found", 200, 300),
        ([(100, True), (200, True)], "at_least", 200, None),
        ([(100, False)], "below_first_step", None, 100),
        ([(100, True), (200, "generator")], "generator_limited", 100, None),
        ([], "invalid", None, None),
        # A good step above a bad one (luck) does not move the knee past the bad one.
        ([(100, True), (200, False), (300, True)], "found", 100, 200),
        # Run out of order: the hold at 200 after the step at 300.
        ([(300, False), (200, True)], "found", 200, 300),
    ],
)
def test_the_knee_is_an_interval_with_a_type(
    steps: list[tuple[float, bool | str]], kind: str, lower: float | None, upper: float | None
) -> None:
    results = [StepResult(rate, "" if good is True else "bad", good == "generator") for rate, good in steps]
    knee = knee_of(results)
    assert (knee.type, knee.lower, knee.upper) == (kind, lower, upper)
    assert knee.why
