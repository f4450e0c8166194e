"""What the report adds to a record: which step counts, curves, slots of time, the tail and its stage, the gaps.

Everything here follows from one record and the columns beside it; nothing is measured anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from seatrial.errors import RecordError
from seatrial.records import (
    LoadSummary,
    Percentiles,
    Phase,
    Record,
    SecondPoint,
    SystemSample,
    TrialPayload,
    figure_text,
    read_system,
)
from seatrial.report.requests import Requests, read_requests, seconds, spectrum

__all__ = ["Curve", "Derived", "Slot", "Tail", "Usage", "derive", "label", "loaded", "stage_order"]

PROCESS_FIGURES = {
    "peak_rss_bytes": "peak memory",
    "cpu_s": "CPU time",
    "mean_cpus": "mean CPUs",
    "peak_threads": "threads",
    "peak_fds": "open files",
}
STAGES = ("accept", "parse", "feature", "queue", "form", "copy_in", "run", "copy_out", "encode", "write")
SLOTS = 240
TAIL_RATIO = 3.0
HOST_SIGNALS = {
    "psi_cpu_some": "CPU pressure",
    "psi_io_some": "IO pressure",
    "psi_memory_some": "memory pressure",
    "throttled_s": "CPU throttling",
    "run_queue_wait_s": "run-queue wait",
}
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


Step = tuple[Phase, LoadSummary]


@dataclass(frozen=True)
class Curve:
    """The latency spectrum of one phase: (share of requests, milliseconds), certified up to a share."""

    phase: str
    measure: str
    n: int
    points: tuple[tuple[float, float], ...]
    certified_to: float
    every_request: bool
    """Whether the points come from all requests, or from the recorded quantiles alone."""


@dataclass(frozen=True)
class Slot:
    """A stretch of the record's time axis. Rates are means.

    `p50_ms`, `p99_ms` and their sample size `n` are those of its slowest second, the one with the highest p99.
    """

    t_s: float
    width_s: float
    phase: str
    offered: float
    achieved: float
    errors: int
    n: int
    p50_ms: float | None
    p99_ms: float | None
    in_flight: int


@dataclass(frozen=True)
class Usage:
    """CPUs in use and resident memory of one process in a stretch of time."""

    t_s: float
    process: str
    cpus: float | None
    rss_bytes: int | None


@dataclass(frozen=True)
class Tail:
    """p99 far above p50, and the stage that holds the difference."""

    ratio: float
    n: int
    phase: str
    stage: str | None
    text: str


@dataclass(frozen=True)
class Derived:
    """All that the sections are written from, beside the record."""

    reference: str | None
    """The phase that stands for the model: the highest good one where a knee says which that is."""
    reference_good: bool = False
    curves: tuple[Curve, ...] = ()
    slots: tuple[Slot, ...] = ()
    usage: tuple[Usage, ...] = ()
    tails: tuple[Tail, ...] = ()
    not_measured: dict[str, str] = field(default_factory=dict)


def loaded(record: Record) -> list[Step]:
    """The phases that sent load, in order."""
    return [(phase, phase.load) for phase in record.payload.phases if phase.load is not None]


def label(phase: Phase) -> str:
    """The phase's name; a closed loop is named wherever its figures stand."""
    closed = phase.load is not None and phase.load.mode == "closed"
    return f"{phase.name} (closed loop)" if closed else phase.name


def stage_order(name: str) -> int:
    """Place of a stage on a request's way."""
    return STAGES.index(name) if name in STAGES else len(STAGES)


def derive(record: Record, folder: Path) -> Derived:
    """Reads the columns beside the record, where they are."""
    phases = loaded(record)
    reference = _reference(record, phases)
    curves: list[Curve] = []
    points: list[tuple[Phase, SecondPoint]] = []
    for phase in record.payload.phases:
        requests = read_requests(folder / phase.folder / "requests.arrow") if phase.folder else None
        if phase.load is not None:
            curves += _curves(phase, phase.load, requests)
        series = phase.load.series if phase.load is not None else []
        if not series and requests is not None:
            series = seconds(requests)
        points += [(phase, point) for point in series]
    usage = _usage(folder)
    return Derived(
        reference=reference[0].name if reference else None,
        reference_good=reference is not None and _is_good(record, reference[1]),
        curves=tuple(curves),
        slots=tuple(_slots(points)),
        usage=tuple(usage),
        tails=tuple(_tails(phases, reference)),
        not_measured=_not_measured(record, bool(usage), curves, reference),
    )


def _reference(record: Record, phases: list[Step]) -> Step | None:
    """The fastest step or hold that was good; without a knee the hold, else the last phase with answers."""
    answered = [item for item in phases if item[1].ok]
    measured = [item for item in answered if item[0].kind in ("step", "hold")] or answered
    if not measured:
        return None
    if not isinstance(record.payload, TrialPayload) or record.payload.knee is None:
        return next((item for item in reversed(measured) if item[0].kind == "hold"), measured[-1])
    good = [item for item in measured if _is_good(record, item[1])]
    if not good:
        return min(measured, key=lambda item: _rate(item[1]))
    return max(good, key=lambda item: (_rate(item[1]), item[0].kind == "hold"))


def _is_good(record: Record, load: LoadSummary) -> bool:
    knee = record.payload.knee if isinstance(record.payload, TrialPayload) else None
    return knee is not None and knee.lower is not None and _rate(load) <= knee.lower * 1.001


def _rate(load: LoadSummary) -> float:
    return load.rate_per_s if load.rate_per_s is not None else load.offered_per_s


def _curves(phase: Phase, load: LoadSummary, requests: Requests | None) -> list[Curve]:
    found = []
    for measure, recorded in (("response", load.response_ms), ("service", load.service_ms)):
        if recorded.n == 0:
            continue
        points = None
        if requests is not None:
            durations = requests.response_ms if measure == "response" else requests.service_ms
            points = spectrum(requests, durations, recorded)
        certified = [SHARES[name] for name, quantile in recorded.quantiles.items() if quantile.certified]
        found.append(
            Curve(
                phase=label(phase),
                measure=measure,
                n=recorded.n,
                points=tuple(points or _recorded_points(recorded)),
                certified_to=max(certified, default=0.0),
                every_request=points is not None,
            )
        )
    return found


def _recorded_points(recorded: Percentiles) -> list[tuple[float, float]]:
    """The five quantiles as far as the sample reaches, and the largest value."""
    end = 1 - 1 / recorded.n
    points = [
        (SHARES[k], q.value) for k, q in recorded.quantiles.items() if q.value is not None and SHARES[k] < end
    ]
    return points + ([(end, recorded.max)] if recorded.max is not None and end > 0 else [])


def _slots(points: list[tuple[Phase, SecondPoint]]) -> list[Slot]:
    """At most about `SLOTS` stretches of whole seconds, none across two phases."""
    if not points:
        return []
    times = [phase.started_s + point.t for phase, point in points]
    width = max(1, round((max(times) - min(times)) / SLOTS + 0.5))
    groups = groupby(points, key=lambda item: (item[0].name, int(item[1].t // width)))
    return [
        _slot(group[0][0], [point for _, point in group], width) for group in (list(g) for _, g in groups)
    ]


def _slot(phase: Phase, points: list[SecondPoint], width: int) -> Slot:
    slowest = max(points, key=lambda point: point.p99_ms or 0.0)
    return Slot(
        t_s=phase.started_s + points[0].t,
        width_s=width,
        phase=label(phase),
        offered=sum(p.offered for p in points) / len(points),
        achieved=sum(p.achieved for p in points) / len(points),
        errors=sum(p.errors for p in points),
        n=slowest.n or 0,
        p50_ms=slowest.p50_ms,
        p99_ms=slowest.p99_ms,
        in_flight=max(p.in_flight for p in points),
    )


def _usage(folder: Path) -> list[Usage]:
    file = folder / "system.arrow"
    try:
        samples = read_system(file) if file.is_file() else []
    except RecordError:
        return []
    end = max((s.t_s for s in samples), default=0.0)
    width = max(end / SLOTS, 1e-9)
    found: list[Usage] = []
    for process in ("server", "generator"):
        rows = [s for s in samples if s.process == process]
        moments = _moments(rows)
        for _, group in groupby(moments, key=lambda usage: int(usage.t_s / width)):
            found.append(_merged(list(group)))
    return found


def _moments(rows: list[SystemSample]) -> list[Usage]:
    """CPUs between two readings. A counter that falls belongs to a new process, so that no figure spans the two."""
    found = []
    for before, now in pairwise(rows):
        span = now.t_s - before.t_s
        cpus = None
        if before.cpu_s is not None and now.cpu_s is not None and now.cpu_s >= before.cpu_s and span > 0:
            cpus = (now.cpu_s - before.cpu_s) / span
        found.append(Usage(t_s=now.t_s, process=now.process, cpus=cpus, rss_bytes=now.rss_bytes))
    return found


def _merged(group: list[Usage]) -> Usage:
    cpus = [u.cpus for u in group if u.cpus is not None]
    return Usage(
        t_s=group[0].t_s,
        process=group[0].process,
        cpus=sum(cpus) / len(cpus) if cpus else None,
        rss_bytes=max((u.rss_bytes for u in group if u.rss_bytes is not None), default=None),
    )


def _tails(phases: list[Step], reference: Step | None) -> list[Tail]:
    """Of the phase the promises are judged on, and of the highest good load."""
    judged = next((step for step in reversed(phases) if step[0].kind == "hold"), None)
    steps = [step for step in (judged, reference) if step is not None]
    names = {phase.name: (phase, load) for phase, load in steps}
    return [tail for tail in (_tail(*step) for step in names.values()) if tail is not None]


def _tail(phase: Phase, load: LoadSummary) -> Tail | None:
    """Calls out a p99 of more than three times the p50."""
    p50, p99 = load.response_ms.p50.value, load.response_ms.p99.value
    if not p50 or p99 is None or p99 / p50 <= TAIL_RATIO:
        return None
    gaps = {name: time.p99 - time.p50 for name, time in load.stages_ms.items()}
    stage = max(gaps, key=lambda name: gaps[name], default=None)
    if stage is not None and gaps[stage] < 0.3 * (p99 - p50):
        stage, holder = (
            None,
            "No stage of the server holds it: look at network, connections and the generator.",
        )
    elif stage is not None:
        time = load.stages_ms[stage]
        holder = (
            f"The stage {stage} holds most of the difference: p50 {figure_text(time.p50)} ms, "
            f"p99 {figure_text(time.p99)} ms (n={time.n:,})."
        )
    else:
        holder = "Which stage holds the difference was not measured."
    text = (
        f"p99 is {p99 / p50:.1f} times p50 in {label(phase)}: queueing or contention. "
        f"Response p50 {load.response_ms.text('p50')}; p99 {load.response_ms.text('p99')}. {holder}"
    )
    return Tail(ratio=p99 / p50, n=load.response_ms.n, phase=label(phase), stage=stage, text=text)


def _not_measured(record: Record, usage: bool, curves: list[Curve], reference: Step | None) -> dict[str, str]:
    """Every signal that is absent, by name, with the reason where the record gives one."""
    payload, host = record.payload, record.host
    gaps = dict(payload.not_measured)
    if isinstance(payload, TrialPayload):
        for name, value in (
            ("package check", payload.findings),
            ("golden rows", payload.golden),
            ("knee", payload.knee),
            ("batching probe", payload.batching),
        ):
            if value is None:
                gaps.setdefault(name, "this part did not run")
    gaps |= {name: why for name, why in _system_gaps(record, usage).items() if name not in gaps}
    if reference is None:
        gaps.setdefault("load", "no phase got an answer")
    elif not reference[1].stages_ms:
        gaps.setdefault("time per stage", "the server sent no stage times")
    if curves and not all(curve.every_request for curve in curves):
        gaps.setdefault(
            "full latency spectrum", "drawn from the recorded quantiles; the requests are not beside it"
        )
    for name, known in (("CPU model", host.cpu_model), ("memory of the host", host.memory_bytes)):
        if known is None:
            gaps.setdefault(name, "the system does not tell")
    if record.package is not None and record.package.digest is None:
        gaps.setdefault("package digest", "the package has no manifest")
    return gaps


def _system_gaps(record: Record, usage: bool) -> dict[str, str]:
    system = record.payload.system
    gaps = {} if usage else {"CPU and memory over time": "no system samples are beside the record"}
    if system is None:
        return {**gaps, "system figures": "the sampler did not run"}
    why = "the sampler could not read it"
    for process, summary in (("server", system.server), ("generator", system.generator)):
        if summary is None:
            gaps[f"{process} process figures"] = why
            continue
        gaps |= {f"{process}: {PROCESS_FIGURES[name]}": why for name, value in summary if value is None}
    gaps |= {label: why for name, label in HOST_SIGNALS.items() if getattr(system, name) is None}
    return gaps
