"""The top of the report: verdict, warning, four figures, what to do next, promises beside findings."""

from __future__ import annotations

import re

from seatrial.records import BenchPayload, Knee, LoadSummary, Phase, PromiseResult, Record, TrialPayload
from seatrial.report.charts import knee_text
from seatrial.report.derive import Derived, loaded
from seatrial.report.document import NOT_MEASURED, Headline, Mark, Note, Section, Steps, Table, Tone

__all__ = ["headline", "next_section", "promises_section", "reference_step"]

OUTCOMES: dict[str, Mark] = {
    "pass": Mark("good", "Pass"),
    "fail": Mark("bad", "Fail"),
    "invalid": Mark("unsure", "Invalid"),
    "error": Mark("bad", "Error"),
}
UNFINISHED = {
    "cut_short": "This record was cut short",
    "died": "The run died before it could close this record",
}


def reference_step(record: Record, derived: Derived) -> tuple[Phase, LoadSummary] | None:
    """The phase that stands for the model, with its load."""
    return next((step for step in loaded(record) if step[0].name == derived.reference), None)


def headline(record: Record, derived: Derived) -> Headline:
    """What a reader takes away in five seconds."""
    payload = record.payload
    trial = payload if isinstance(payload, TrialPayload) else None
    package = record.package
    subject = f"{package.name} {package.version}" if package else _target(payload)
    warning = UNFINISHED.get(record.status, "")
    if warning and record.status_reason:
        warning += f": {record.status_reason}"
    return Headline(
        subject=subject,
        kind="Trial report" if trial else "Bench report",
        outcome=OUTCOMES[trial.verdict.outcome] if trial else None,
        draft=trial.verdict.draft if trial else False,
        line=trial.verdict.line
        if trial
        else "A bench run measures load. It has no promises, so it has no verdict.",
        reasons=tuple(trial.verdict.reasons) if trial else (),
        warning=warning,
        tiles=_tiles(record, derived, trial),
    )


def _target(payload: TrialPayload | BenchPayload) -> str:
    return payload.target if isinstance(payload, BenchPayload) else "unnamed package"


def _tiles(record: Record, derived: Derived, trial: TrialPayload | None) -> tuple[tuple[str, str, str], ...]:
    step = _judged(record) or reference_step(record, derived)
    tiles = [_knee_tile(trial.knee)] if trial else []
    tiles.append(_tail_tile(step))
    if trial:
        golden = trial.golden
        text = f"{golden.agreed:,} of {golden.rows:,}" if golden else NOT_MEASURED
        tiles.append(("Golden rows that agree", text, "served answers within tolerance" if golden else ""))
    elif step:
        tiles.append(
            ("Goodput", f"{step[1].goodput_per_s:,.1f}/s", f"of {step[1].offered_per_s:,.1f}/s offered")
        )
    profile = f"profile {trial.profile}, " if trial else ""
    tiles.append(("Measured", f"{record.created:%d %b %Y}", f"{profile}{record.created:%H:%M} UTC"))
    return tuple(tiles)


def _judged(record: Record) -> tuple[Phase, LoadSummary] | None:
    """The hold phase, which the promises are judged on."""
    return next((step for step in reversed(loaded(record)) if step[0].kind == "hold"), None)


def _knee_tile(knee: Knee | None) -> tuple[str, str, str]:
    if knee is None:
        return ("Highest good load", NOT_MEASURED, "")
    if knee.type == "found" and knee.lower is not None and knee.upper is not None:
        return (
            "Highest good load",
            f"{knee.lower:,.6g} – {knee.upper:,.6g}/s",
            "the knee lies in this interval",
        )
    if knee.lower is not None:
        why = (
            "the generator was the limit" if knee.type == "generator_limited" else "no step beyond it was run"
        )
        return ("Highest good load", f"At least {knee.lower:,.6g}/s", why)
    if knee.upper is not None:
        return ("Highest good load", f"Below {knee.upper:,.6g}/s", "the first step was too much")
    return ("Highest good load", NOT_MEASURED.capitalize(), f"the knee is {knee_text(knee)}")


def _tail_tile(step: tuple[Phase, LoadSummary] | None) -> tuple[str, str, str]:
    """The figure is large, its interval and sample size stand right under it."""
    if step is None or step[1].response_ms.p99.value is None:
        return ("Response p99", NOT_MEASURED, "")
    value, _, rest = str(step[1].response_ms.p99).partition(" ms")
    detail = rest.strip(" ()")
    detail = detail if detail.startswith("[") else detail.replace("not certified: ", "not certified, ")
    loop = "closed loop" if step[1].mode == "closed" else f"{step[1].offered_per_s:,.0f}/s offered"
    return ("Response p99", f"{value} ms", f"{detail}; {loop}")


def next_section(trial: TrialPayload) -> Section:
    """Who does what now."""
    steps = tuple((step.owner, step.text) for step in trial.verdict.next_steps)
    nothing = "Nothing is open." if trial.verdict.outcome == "pass" else "The record names no next step."
    block = Steps(steps) if steps else Note(nothing)
    return Section("next", "Next", "What to do next", (block,))


def promises_section(trial: TrialPayload) -> Section:
    """Each promise beside what was found."""
    table = Table(
        ("promise", "limit", "measured", "result", "owner"),
        tuple(_promise_row(promise) for promise in trial.verdict.promises),
        firm=frozenset({0, 1}),
        empty="The package promises nothing that a trial could judge.",
    )
    draft = (
        (Note("The promises are a draft: nobody has signed them yet.", "unsure"),)
        if trial.verdict.draft
        else ()
    )
    return Section("promises", "Promises", "Promises", (*draft, table))


def _promise_row(promise: PromiseResult) -> tuple[str | Mark, ...]:
    measured = NOT_MEASURED if promise.measured is None else promise.measured_text
    if promise.n is None and re.search(r"\bp\d{2,3}\b", promise.promise) and promise.measured is not None:
        measured = f"{NOT_MEASURED}: its sample size is unknown"
    tone: Tone = "unsure" if promise.met is None else "good" if promise.met else "bad"
    word = {"good": "kept", "bad": "broken", "unsure": "not judged"}[tone]
    if promise.n is not None and f"{promise.n:,}" not in measured:
        measured += f", n={promise.n:,}"
    return (promise.promise, promise.limit_text, measured, Mark(tone, word), promise.owner)
