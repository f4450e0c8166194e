"""The verdict: promises of the package beside what the hold phase measured. Pure: values in, verdict out.

A disturbance (a busy neighbour, a saturated generator) can only make figures worse. So a promise kept under
it is kept; a promise broken under it is nobody's fault yet: the measurement is invalid, no pass and no fail.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seatrial.records import (
    FindingRow,
    GoldenResult,
    Knee,
    LoadSummary,
    NextStep,
    PromiseResult,
    Verdict,
    figure_text,
)
from seatrial.trial.knee import Budget, generator_held_up, missed

__all__ = ["Evidence", "judge", "promises"]

# CPUs used by neighbours, as a share of those we may use, above which a broken promise proves nothing.
NOISY_SHARE = 0.15
MIB = 1024 * 1024
MEMORY = "memory of one instance"


@dataclass(frozen=True)
class Evidence:
    """What a trial found, as far as the verdict needs it. None means not measured."""

    hold: LoadSummary | None
    golden: GoldenResult | None = None
    knee: Knee | None = None
    peak_rss_bytes: int | None = None
    neighbours_share: float | None = None
    findings: list[FindingRow] = field(default_factory=list)
    draft: bool = False
    stopped: str = ""
    cure: str = ""


def promises(budget: Budget, evidence: Evidence) -> list[PromiseResult]:
    """Each promise with its limit, what was measured, and whether it was met."""
    found = [
        _latency(quantile, limit, evidence.hold)
        for quantile, limit in (("p50", budget.p50_ms), ("p95", budget.p95_ms), ("p99", budget.p99_ms))
        if limit is not None
    ]
    if budget.miss_share is not None:
        found.append(_misses(budget.miss_share, evidence.hold))
    if budget.peak_per_s is not None:
        found.append(_peak(budget.peak_per_s, evidence.hold))
    if budget.memory_bytes is not None:
        found.append(_memory(budget.memory_bytes, evidence.peak_rss_bytes))
    return found


def _latency(quantile: str, limit: float, hold: LoadSummary | None) -> PromiseResult:
    """Judged by the upper end of the interval where there is one: a promise is met when that is certain."""
    found = hold.response_ms.quantiles[quantile] if hold else None  # type: ignore[index]
    judged = (found.upper if found.certified else found.value) if found else None
    return PromiseResult(
        promise=f"response {quantile}",
        limit=limit,
        limit_text=f"{figure_text(limit)} ms",
        measured=found.value if found else None,
        measured_text=str(found) if found else "not measured",
        n=found.n if found else None,
        met=None if judged is None else judged <= limit,
        owner="both",
    )


def _misses(limit: float, hold: LoadSummary | None) -> PromiseResult:
    share = missed(hold) / hold.intended if hold and hold.intended else None
    text = (
        f"{missed(hold):,} of {hold.intended:,} ({share:.3%})"
        if hold and share is not None
        else "not measured"
    )
    return PromiseResult(
        promise="requests missed",
        limit=limit,
        limit_text=f"{limit:.3%}",
        measured=share,
        measured_text=text,
        n=hold.intended if hold else None,
        met=None if share is None else share <= limit,
        owner="both",
    )


def _peak(limit: float, hold: LoadSummary | None) -> PromiseResult:
    """The number of arrivals is random when they are Poisson: three standard errors below still count."""
    met = None
    if hold:
        allowed = 3 * (limit / max(hold.duration_s, 1e-9)) ** 0.5
        met = hold.achieved_per_s >= limit - allowed
    return PromiseResult(
        promise="peak load",
        limit=limit,
        limit_text=f"{limit:g}/s",
        measured=hold.achieved_per_s if hold else None,
        measured_text=(
            f"{figure_text(hold.achieved_per_s)}/s answered over {hold.duration_s:g} s, n={hold.completed:,}"
            if hold
            else "not measured"
        ),
        n=hold.completed if hold else None,
        met=met,
        owner="both",
    )


def _memory(limit: int, peak: int | None) -> PromiseResult:
    return PromiseResult(
        promise=MEMORY,
        limit=limit,
        limit_text=f"{limit / MIB:,.0f} MiB",
        measured=peak,
        measured_text="not measured" if peak is None else f"{peak / MIB:,.0f} MiB resident at the peak",
        met=None if peak is None else peak <= limit,
        owner="both",
    )


def judge(budget: Budget, evidence: Evidence) -> Verdict:
    """The one sentence, the reasons and what to do next."""
    judged = promises(budget, evidence)
    broken = [_sentence(p) for p in judged if p.met is False]
    heavy = next((_sentence(p) for p in judged if p.promise == MEMORY and p.met is False), "")
    wrong = _wrong_answers(evidence)
    if wrong:
        outcome, line = "fail", f"No: {wrong}."
    elif evidence.stopped:
        outcome, line = "invalid", f"No verdict: {evidence.stopped}."
    elif not judged:
        outcome, line = "invalid", "No verdict: the package promises nothing in slo.yaml."
    elif heavy:
        # Neither neighbours nor a late generator make the server larger.
        outcome, line = "fail", f"No: {heavy}."
    elif broken and (disturbed := disturbance(evidence, budget.p99_ms)):
        outcome, line = "invalid", f"No verdict: {disturbed} while {broken[0]}."
    elif broken:
        outcome, line = "fail", f"No: {broken[0]}."
    elif any(p.met is None for p in judged):
        missing = next(p.promise for p in judged if p.met is None)
        outcome, line = "invalid", f"No verdict: {missing} was not measured."
    else:
        outcome, line = "pass", _pass_line(budget, evidence)
    return Verdict(
        outcome=outcome,
        line=line,
        draft=evidence.draft,
        reasons=([wrong] if wrong else []) + broken,
        next_steps=_next_steps(outcome, budget, evidence, {p.promise for p in judged if p.met is False}),
        promises=judged,
    )


def _sentence(promise: PromiseResult) -> str:
    return f"{promise.promise}: {promise.measured_text}, promised {promise.limit_text}"


def disturbance(evidence: Evidence, limit_ms: float | None) -> str:
    """What disturbed the measurement; empty when nothing did. `limit_ms` is the promised p99."""
    if evidence.hold and generator_held_up(evidence.hold, limit_ms):
        return f"the generator was saturated ({evidence.hold.generator.why})"
    if evidence.neighbours_share is not None and evidence.neighbours_share > NOISY_SHARE:
        return f"neighbours used {evidence.neighbours_share:.0%} of this host's CPUs"
    return ""


def _wrong_answers(evidence: Evidence) -> str:
    errors = [f for f in evidence.findings if f.severity == "error"]
    if errors:
        return f"the check found {len(errors)} error{'s' if len(errors) > 1 else ''}, first {errors[0].text}"
    golden = evidence.golden
    if golden and golden.agreed < golden.rows:
        return f"{golden.rows - golden.agreed} of {golden.rows} golden rows disagree ({golden.worst})"
    return ""


def _pass_line(budget: Budget, evidence: Evidence) -> str:
    hold = evidence.hold
    if hold is None:
        raise ValueError("a pass needs a hold phase")
    rate = budget.peak_per_s or hold.offered_per_s
    figure = "p99" if hold.response_ms.p99.value is not None else "p50"
    limit = f" against {budget.p99_ms:g} ms promised" if budget.p99_ms is not None else ""
    headroom = ""
    if evidence.knee and evidence.knee.lower and evidence.knee.lower > rate:
        least = "at least " if evidence.knee.type != "found" else ""
        headroom = f"; it keeps its promises up to {least}{figure_text(evidence.knee.lower)}/s"
    measured = hold.response_ms.text(figure)  # type: ignore[arg-type]
    return f"Yes: at {rate:g}/s the {figure} response is {measured}{limit}{headroom}."


def _next_steps(outcome: str, budget: Budget, evidence: Evidence, broken: set[str]) -> list[NextStep]:
    steps = [
        NextStep(owner=f.owner or "both", text=f"{f.code}: {f.text}")
        for f in evidence.findings
        if f.severity != "note"
    ]
    if evidence.golden and evidence.golden.agreed < evidence.golden.rows:
        steps.append(NextStep(owner="algorithm", text=f"find why {evidence.golden.worst}"))
    if outcome == "invalid":
        steps.append(NextStep(owner="infra", text=_cure(budget, evidence)))
    if outcome == "fail" and MEMORY in broken:
        cure = "serve with fewer executors, or renegotiate `memory_per_instance` in slo.yaml"
        steps.append(NextStep(owner="infra", text=cure))
        broken = broken - {MEMORY}
    if outcome == "fail" and broken and disturbance(evidence, budget.p99_ms):
        steps.append(NextStep(owner="infra", text=f"for the other promises, {_cure(budget, evidence)}"))
    elif outcome == "fail" and broken and all(s.owner == "infra" for s in steps):
        stage = slowest_stage(evidence.hold)
        where = f"; most of the time at p99 is spent in the stage `{stage}`" if stage else ""
        steps.append(NextStep(owner="infra", text=f"raise capacity or renegotiate the budget{where}"))
    if evidence.draft:
        steps.append(
            NextStep(
                owner="both",
                text="the package is a draft: a trial with `--evidence` keeps its record in evidence/",
            )
        )
    return steps


def _cure(budget: Budget, evidence: Evidence) -> str:
    """What makes an invalid measurement a valid one."""
    if not disturbance(evidence, budget.p99_ms):
        return evidence.cure or "mend the cause and repeat the trial"
    if evidence.hold and evidence.hold.not_sent:
        return (
            "answers came too slowly for so many requests: repeat the trial with a lower `load.peak` in slo.yaml, "
            "or on a larger host"
        )
    return "repeat the trial on a quiet host"


def slowest_stage(load: LoadSummary | None) -> str | None:
    """The stage with the largest p99; None where stages were not measured."""
    if load is None or not load.stages_ms:
        return None
    return max(load.stages_ms.items(), key=lambda item: item[1].p99)[0]
