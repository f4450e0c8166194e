"""Payloads of the records of a trial and of a bench run: phases, events, findings, knee, verdict."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from seatrial.records.figures import LoadSummary, Words

__all__ = [
    "BatchingFinding",
    "BenchPayload",
    "Event",
    "FindingRow",
    "GoldenResult",
    "Knee",
    "NextStep",
    "Outcome",
    "Phase",
    "PhaseKind",
    "ProcessSummary",
    "PromiseResult",
    "SystemSummary",
    "TrialPayload",
    "Verdict",
]

PhaseKind = Literal["idle", "smoke", "step", "hold", "golden", "check", "load"]
Outcome = Literal["pass", "fail", "invalid", "error"]


class Phase(Words):
    """One stretch of a trial. Times are seconds from the start of the record."""

    name: str
    kind: PhaseKind
    started_s: float
    ended_s: float
    rate_per_s: float | None = None
    load: LoadSummary | None = None
    note: str = ""
    folder: str | None = None
    """Folder of the phase inside the record, where `requests.arrow` lies."""


class Event(Words):
    """Something that happened, on the time axis of the record."""

    t_s: float
    kind: str
    text: str


class FindingRow(Words):
    """One finding of the check, as `seatrial check --format json` gives it."""

    code: str
    severity: Literal["error", "warning", "note"]
    text: str
    file: str | None = None
    line: int | None = None
    owner: str | None = None
    hint: str | None = None


class GoldenResult(Words):
    """How the served answers agree with the outputs stored in the package."""

    rows: int
    agreed: int
    max_abs_error: float | None = None
    tolerance: str
    worst: str = ""
    """The row and output that differ most, in words."""


class Knee(Words):
    """The highest rate that keeps the promises: an interval and a type, never a bare number."""

    type: Literal["found", "at_least", "generator_limited", "below_first_step", "invalid"]
    lower: float | None = None
    """Highest rate that was good, in requests per second."""
    upper: float | None = None
    """Lowest rate that was bad, in requests per second."""
    why: str


class NextStep(Words):
    """What to do next, and who."""

    owner: str
    text: str


class PromiseResult(Words):
    """One promise beside what was measured. `met` is None when it could not be judged."""

    promise: str
    limit: float | None
    limit_text: str
    measured: float | None
    measured_text: str
    n: int | None = None
    met: bool | None
    owner: str


class Verdict(Words):
    """The outcome, with one sentence that manager, algorithm engineer and infra engineer read alike."""

    outcome: Outcome
    line: str
    draft: bool = False
    """The promises were still marked DRAFT, so that nobody has signed them."""
    reasons: list[str] = Field(default_factory=list)
    next_steps: list[NextStep] = Field(default_factory=list)
    promises: list[PromiseResult] = Field(default_factory=list)


class ProcessSummary(Words):
    """What one process tree used during the loaded phases. None means not measured."""

    peak_rss_bytes: int | None = None
    cpu_s: float | None = None
    mean_cpus: float | None = None
    """CPU seconds per second: 1.0 is one core fully used."""
    peak_threads: int | None = None
    peak_fds: int | None = None


class SystemSummary(Words):
    """Figures of the sampler. PSI is the mean share of time in percent; None means not measured."""

    samples: int
    server: ProcessSummary | None = None
    generator: ProcessSummary | None = None
    psi_cpu_some: float | None = None
    psi_io_some: float | None = None
    psi_memory_some: float | None = None
    throttled_s: float | None = None
    run_queue_wait_s: float | None = None


class BatchingFinding(Words):
    """What the probe found about joining rows, and what the server did with it."""

    mode: Literal["full", "equal-length", "none"]
    why: str
    axis: str | None = None
    max_rows: int | None = None
    mean_rows: float | None = None
    """Mean rows per run in the highest good step."""


class TrialPayload(Words):
    """Everything that a trial found."""

    profile: str
    plan: dict[str, Any] = Field(default_factory=dict)
    phases: list[Phase] = Field(default_factory=list)
    events: list[Event] = Field(default_factory=list)
    findings: list[FindingRow] | None = None
    """None when the check did not run."""
    golden: GoldenResult | None = None
    knee: Knee | None = None
    verdict: Verdict
    system: SystemSummary | None = None
    batching: BatchingFinding | None = None
    environment: dict[str, Any] = Field(default_factory=dict)
    not_measured: dict[str, str] = Field(default_factory=dict)
    """Signals that were absent, by name, with the reason."""


class BenchPayload(Words):
    """What `seatrial bench run` found: one phase, no promises, no verdict."""

    target: str
    plan: dict[str, Any] = Field(default_factory=dict)
    phases: list[Phase] = Field(default_factory=list)
    events: list[Event] = Field(default_factory=list)
    system: SystemSummary | None = None
    environment: dict[str, Any] = Field(default_factory=dict)
    not_measured: dict[str, str] = Field(default_factory=dict)
