"""When a load step is good, and where the knee lies. Pure: summaries in, findings out.

A step is good when nothing it measured breaks the budget and the server kept up with what was offered. The
knee is an interval with a type, never a bare number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.records import Knee, LoadSummary

__all__ = ["Budget", "StepResult", "generator_held_up", "judge_step", "knee_of", "missed"]

# A server that answers less than this share of what was offered is not keeping up.
KEEPING_UP = 0.99


@dataclass(frozen=True)
class Budget:
    """The promises that load is judged by; None where the package promises nothing. Shares lie in 0..1."""

    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    miss_share: float | None
    memory_bytes: int | None
    peak_per_s: float | None


@dataclass(frozen=True)
class StepResult:
    """One step beside the budget. `why` is empty for a good step."""

    rate_per_s: float
    why: str
    generator_limited: bool

    @property
    def good(self) -> bool:
        """Whether the step kept every promise."""
        return not self.why


def missed(load: LoadSummary) -> int:
    """Requests that were due and did not get a right answer: errors and those that could not be sent."""
    return load.intended - load.ok


def judge_step(load: LoadSummary, budget: Budget) -> StepResult:
    """Holds one step against the budget. Without a promised error share, one miss in 1,000 is tolerated."""
    rate = load.rate_per_s or load.offered_per_s
    why = ""
    p99, limit = load.response_ms.p99, budget.p99_ms
    upper = p99.upper if p99.certified else p99.value
    allowed = 0.001 if budget.miss_share is None else budget.miss_share
    share = missed(load) / max(load.intended, 1)
    if share > allowed:
        why = f"{missed(load):,} of {load.intended:,} requests missed ({share:.2%}, allowed {allowed:.2%})"
    elif upper is None:
        why = "no request was answered"
    elif limit is not None and upper > limit:
        why = f"p99 {load.response_ms.text('p99')} is over {limit:g} ms"
    elif load.completed < KEEPING_UP * load.intended:
        why = f"{load.completed:,} of {load.intended:,} requests were answered: the server does not keep up"
    return StepResult(rate_per_s=rate, why=why, generator_limited=generator_held_up(load, limit))


def generator_held_up(load: LoadSummary, limit_ms: float | None) -> bool:
    """Whether a bad figure may be the generator's doing.

    Not when service time alone, counted from the moment of sending, is surely over the limit: then the server was
    too slow, and requests that found no free place in flight waited for the server.
    """
    service = load.service_ms.p99
    surely_slow = limit_ms is not None and service.lower is not None and service.lower > limit_ms
    return load.generator.saturated and not surely_slow


def knee_of(steps: Sequence[StepResult]) -> Knee:
    """The interval in which the highest good rate lies. Steps in the order they were run; rates rise.

    >>> knee_of([StepResult(100, "", False), StepResult(200, "p99 over 25 ms", False)]).type
    'found'
    >>> knee_of([StepResult(100, "", False)]).type
    'at_least'
    """
    if not steps:
        return Knee(type="invalid", why="no step was run")
    good = [s.rate_per_s for s in steps if s.good]
    bad = next((s for s in sorted(steps, key=lambda s: s.rate_per_s) if not s.good), None)
    if bad is None:
        return Knee(type="at_least", lower=max(good), why="every step was good; the schedule ended")
    below = [rate for rate in good if rate < bad.rate_per_s]
    why = f"at {bad.rate_per_s:g}/s: {bad.why}"
    if bad.generator_limited:
        why = f"at {bad.rate_per_s:g}/s the generator was saturated: {bad.why}"
        return Knee(type="generator_limited", lower=max(below, default=None), why=why)
    if not below:
        return Knee(type="below_first_step", upper=bad.rate_per_s, why=f"at {bad.rate_per_s:g}/s: {bad.why}")
    return Knee(
        type="found", lower=max(below), upper=bad.rate_per_s, why=f"at {bad.rate_per_s:g}/s: {bad.why}"
    )
