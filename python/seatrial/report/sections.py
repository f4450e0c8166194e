"""Builds the report's document from a record: which sections there are, in which order, and what each says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from seatrial.records import (
    BatchingFinding,
    FindingRow,
    GoldenResult,
    LoadSummary,
    Phase,
    ProcessSummary,
    Record,
    SystemSummary,
    TrialPayload,
    figure_text,
)
from seatrial.report.charts import knee_text, spectrum_chart, stages_chart, steps_chart
from seatrial.report.derive import HOST_SIGNALS, Derived, label, loaded
from seatrial.report.document import (
    NOT_MEASURED,
    Block,
    Code,
    Document,
    Facts,
    Mark,
    Note,
    Section,
    Table,
    Tone,
)
from seatrial.report.headline import headline, next_section, promises_section, reference_step
from seatrial.report.timecharts import MIB, seconds_chart, usage_chart

__all__ = ["document"]

FACETS = 6
OPEN_EVENTS = 8
# The notes of check and golden rows stand in their own section.
NOTED = ("idle", "smoke", "step", "hold")
SEVERITY: dict[str, Tone] = {"error": "bad", "warning": "unsure", "note": "plain"}


def document(record: Record, derived: Derived) -> Document:
    """The whole report, in the order in which it is read."""
    trial = record.payload if isinstance(record.payload, TrialPayload) else None
    sections = [next_section(trial), promises_section(trial)] if trial else []
    sections += [
        _load_section(record, trial),
        _latency_section(record, derived),
        _stages_section(record, derived),
        _system_section(record, derived),
        _seconds_section(record, derived),
    ]
    if trial:
        sections.append(_model_section(trial))
    sections += [_trust_section(record), _gaps_section(derived), _repeat_section(record)]
    return Document(headline(record, derived), tuple(sections))


def _load_section(record: Record, trial: TrialPayload | None) -> Section:
    steps = [s for s in loaded(record) if s[0].kind in ("step", "hold")] or loaded(record)
    blocks: list[Block] = []
    if trial and trial.knee:
        blocks.append(Note(f"Knee: {knee_text(trial.knee)}. {_sentence(trial.knee.why)}"))
    if any(load.mode == "closed" for _, load in steps):
        text = "Closed loop: the generator waited for answers, so waiting that users would feel is not in these figures."
        blocks.append(Note(text, "unsure"))
    if steps:
        blocks.append(steps_chart(steps, trial.knee if trial else None, _limit_ms(trial)))
    else:
        blocks.append(Note(f"Load: {NOT_MEASURED}."))
    blocks += [
        Note(f"{phase.name} was cut short: its figures cover {load.duration_s:.3g} s.", "unsure")
        for phase, load in loaded(record)
        if load.cut_short
    ]
    blocks += [
        Note(f"{phase.name}: {phase.note}")
        for phase in record.payload.phases
        if phase.note and phase.kind in NOTED
    ]
    return Section("load", "Load", "How much it carries", tuple(blocks))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) or not text else ".")


def _limit_ms(trial: TrialPayload | None) -> float | None:
    """The promised p99, where there is one in milliseconds."""
    promises = trial.verdict.promises if trial else []
    return next((p.limit for p in promises if "p99" in p.promise and p.limit_text.endswith("ms")), None)


def _latency_section(record: Record, derived: Derived) -> Section:
    blocks: list[Block] = [Note(tail.text, "unsure") for tail in derived.tails]
    names = list(dict.fromkeys(curve.phase for curve in derived.curves))
    if not names:
        return Section("latency", "Latency", "How long an answer takes", (Note(f"Latency: {NOT_MEASURED}."),))
    step = reference_step(record, derived)
    chosen = _spread(names, label(step[0]) if step else None)
    blocks.append(spectrum_chart(derived.curves, [s for s in loaded(record) if label(s[0]) in names], chosen))
    return Section("latency", "Latency", "How long an answer takes", tuple(blocks))


def _spread(names: list[str], reference: str | None) -> list[str]:
    """At most `FACETS` phases, evenly chosen, the reference always among them."""
    if len(names) <= FACETS:
        return names
    places = {round(i * (len(names) - 1) / (FACETS - 1)) for i in range(FACETS)}
    if reference in names and names.index(reference) not in places:
        middle = min(places - {0, len(names) - 1}, key=lambda i: abs(i - names.index(reference)))
        places = (places - {middle}) | {names.index(reference)}
    return [names[i] for i in sorted(places)]


def _stages_section(record: Record, derived: Derived) -> Section:
    step = reference_step(record, derived)
    if step is None or not step[1].stages_ms:
        return Section("stages", "Stages", "Where the time goes", (Note(f"Time per stage: {NOT_MEASURED}."),))
    return Section(
        "stages",
        "Stages",
        "Where the time goes",
        (_stages_note(*step, derived.reference_good), stages_chart(*step)),
    )


def _stages_note(phase: Phase, load: LoadSummary, good: bool) -> Note:
    total = sum(time.mean for time in load.stages_ms.values())
    name, largest = max(load.stages_ms.items(), key=lambda item: item[1].mean)
    share = f"{largest.mean / total:.0%}" if total else NOT_MEASURED
    which = f"{label(phase)}, the highest good load," if good else label(phase)
    text = (
        f"In {which} the stages of the server take {figure_text(total)} ms of the mean request "
        f"(n={largest.n:,}); {name} is the largest with {share}."
    )
    service = load.service_ms.mean
    if service is None:
        return Note(text)
    text += f" The client sees {load.service_ms.text('mean')}; "
    if service < total:
        return Note(text + "that is less than the stages add up to, so do not trust these stages.", "unsure")
    return Note(
        text + f"{figure_text(service - total)} ms lie outside the stages: network, write and the client."
    )


def _system_section(record: Record, derived: Derived) -> Section:
    system = record.payload.system
    blocks: list[Block] = []
    if derived.usage:
        blocks.append(usage_chart(derived.usage, record.payload.phases))
    else:
        blocks.append(Note(f"CPU and memory over time: {NOT_MEASURED}."))
    blocks.append(_process_table(system))
    return Section("system", "Resources", "What it uses", tuple(blocks))


def _process_table(system: SystemSummary | None) -> Table:
    rows = (
        ("server", *_process_cells(system.server if system else None)),
        ("generator", *_process_cells(system.generator if system else None)),
    )
    headers = (
        "process",
        "peak memory (MiB)",
        "CPU time (s)",
        "mean CPUs (cores)",
        "peak threads",
        "peak open files",
    )
    return Table(headers, rows, frozenset({1, 2, 3, 4, 5}))


def _process_cells(process: ProcessSummary | None) -> tuple[str, ...]:
    if process is None:
        return (NOT_MEASURED,) * 5
    peak = None if process.peak_rss_bytes is None else process.peak_rss_bytes / MIB
    return (
        _known(peak, "{:,.1f}"),
        _known(process.cpu_s, "{:,.1f}"),
        _known(process.mean_cpus, "{:.2f}"),
        _known(process.peak_threads, "{:,}"),
        _known(process.peak_fds, "{:,}"),
    )


def _known(value: float | None, form: str) -> str:
    return NOT_MEASURED if value is None else form.format(value)


def _seconds_section(record: Record, derived: Derived) -> Section:
    events = sorted(record.payload.events, key=lambda event: event.t_s)
    blocks: list[Block] = []
    if derived.slots:
        blocks.append(seconds_chart(derived.slots, record.payload.phases, events))
    else:
        blocks.append(Note(f"Load over time: {NOT_MEASURED}."))
    if events:
        rows = tuple((str(i), f"{e.t_s:.1f}", e.kind, e.text) for i, e in enumerate(events, 1))
        folded = f"The {len(events)} events" if len(events) > OPEN_EVENTS else ""
        blocks.append(Table(("no.", "at (s)", "event", "what happened"), rows, frozenset({1}), folded=folded))
    return Section("time", "Timeline", "What happened when", tuple(blocks))


def _model_section(trial: TrialPayload) -> Section:
    blocks = (*_findings_blocks(trial.findings), _golden_block(trial.golden), _batching_block(trial.batching))
    return Section("model", "Model", "The model and its package", blocks)


def _findings_blocks(findings: list[FindingRow] | None) -> tuple[Block, ...]:
    """Errors and warnings in the open; notes, which ask for nothing now, folded below."""
    if findings is None:
        return (Note(f"Package check: {NOT_MEASURED}."),)
    urgent = [f for f in findings if f.severity != "note"]
    notes = [f for f in findings if f.severity == "note"]
    headers = ("severity", "finding", "what", "where", "owner")
    empty = "The package check found nothing that must be mended."
    first = Table(headers, tuple(map(_finding_row, urgent)), firm=frozenset({0, 1, 4}), empty=empty)
    if not notes:
        return (first,)
    folded = f"{len(notes)} notes of the package check" if len(notes) > 1 else "One note of the package check"
    return (first, Table(headers, tuple(map(_finding_row, notes)), firm=frozenset({0, 1, 4}), folded=folded))


def _finding_row(finding: FindingRow) -> tuple[str | Mark, ...]:
    hint = f" Hint: {finding.hint}." if finding.hint else ""
    return (
        Mark(SEVERITY[finding.severity], finding.severity),
        finding.code,
        _sentence(finding.text) + hint,
        (finding.file or "") + (f":{finding.line}" if finding.line is not None else ""),
        finding.owner or "",
    )


def _golden_block(golden: GoldenResult | None) -> Block:
    if golden is None:
        return Note(f"Golden rows: {NOT_MEASURED}.")
    largest = NOT_MEASURED if golden.max_abs_error is None else f"{golden.max_abs_error:.3g}"
    worst = f" Worst: {golden.worst}." if golden.worst else ""
    text = (
        f"Golden rows: {golden.agreed:,} of {golden.rows:,} served answers agree with the package "
        f"(tolerance {golden.tolerance}, largest absolute error {largest}).{worst}"
    )
    return Note(text, "good" if golden.agreed == golden.rows else "bad")


def _batching_block(batching: BatchingFinding | None) -> Block:
    if batching is None:
        return Note(f"Batching: {NOT_MEASURED}.")
    axis = f" along axis {batching.axis}" if batching.axis else ""
    limit = f", at most {batching.max_rows:,} rows a run" if batching.max_rows is not None else ""
    rows = NOT_MEASURED if batching.mean_rows is None else f"{batching.mean_rows:.2f}"
    return Note(
        f"Batching: {batching.mode}{axis}{limit}. {_sentence(batching.why)} Mean rows in a run: {rows}."
    )


def _trust_section(record: Record) -> Section:
    rows = tuple(_health_row(phase, load) for phase, load in loaded(record))
    headers = (
        "phase",
        "late p99",
        "CPU share",
        "run-queue share",
        "intended",
        "not sent",
        "kept up",
    )
    health = Table(headers, rows, frozenset({2, 3, 4, 5}), empty=f"Generator: {NOT_MEASURED}.")
    note = Note(
        "A generator that runs late or out of CPU measures itself. Wanted: 99 % of the requests at most 1 ms late, "
        "less than 70 % of its CPU, less than 1 % waiting for a CPU; a host with CPU pressure under 5 % and no throttling."
    )
    noise = Facts(_host_noise(record.payload.system))
    return Section("trust", "Trust", "Can these figures be trusted?", (note, health, noise))


def _health_row(phase: Phase, load: LoadSummary) -> tuple[str | Mark, ...]:
    health = load.generator
    kept = Mark("bad", "no", health.why) if health.saturated else Mark("good", "yes")
    return (
        label(phase),
        load.late_ms.text("p99"),
        _known(health.cpu_share, "{:.1%}"),
        _known(health.run_queue_share, "{:.2%}"),
        f"{load.intended:,}",
        f"{load.not_sent:,}",
        kept,
    )


def _host_noise(system: SystemSummary | None) -> tuple[tuple[str, str], ...]:
    found = []
    for name, signal in HOST_SIGNALS.items():
        value: float | None = getattr(system, name) if system else None
        if name.startswith("psi"):
            found.append((f"{signal} (mean)", _known(value, "{:.1f} % of the time")))
        else:
            found.append((signal, _known(value, "{:,.2f} s")))
    return tuple(found)


def _gaps_section(derived: Derived) -> Section:
    rows = tuple((name, why) for name, why in sorted(derived.not_measured.items()))
    return Section(
        "gaps", "Gaps", "Not measured", (Table(("signal", "why"), rows, empty="Every signal was there."),)
    )


def _repeat_section(record: Record) -> Section:
    host, package = record.host, record.package
    quota = "no quota" if host.cpu_limit is None else f"quota of {host.cpu_limit:g}"
    memory = NOT_MEASURED if host.memory_bytes is None else f"{host.memory_bytes / 2**30:.1f} GiB"
    limit = (
        "no limit"
        if host.memory_limit_bytes is None
        else f"limit of {host.memory_limit_bytes / MIB:,.0f} MiB"
    )
    pairs = [
        (
            "record",
            f"{record.kind} {record.id}, schema {record.schema_version}, {record.status.replace('_', ' ')}",
        ),
        ("package", f"{package.name} {package.version}" if package else "none"),
        ("package digest", (package.digest if package else None) or NOT_MEASURED),
        ("seed", "none" if record.seed is None else str(record.seed)),
        ("seatrial", record.tool_version),
        (
            "CPU",
            f"{host.cpu_model or NOT_MEASURED}; {host.logical_cpus} logical, {host.affinity_cpus} allowed, {quota}",
        ),
        ("CPU features", ", ".join(host.cpu_flags) or "none of those that matter"),
        ("memory", f"{memory}, {limit}"),
        ("system", f"{host.os}, kernel {host.kernel}"),
        ("versions", ", ".join([f"Python {host.python}", *(f"{k} {v}" for k, v in host.versions.items())])),
        ("like hosts", host.like),
        *_flat("plan", record.payload.plan),
        *_flat("environment", record.payload.environment),
    ]
    files = Table(
        ("file", "bytes", "SHA-256"),
        tuple((f.path, f"{f.bytes:,}", f.sha256[:16] + "…") for f in record.files),
        frozenset({1}),
        empty="The record lists no files.",
    )
    blocks = (
        Note("The command to repeat this measurement:"),
        Code(record.command),
        Facts(tuple(pairs)),
        files,
    )
    return Section("repeat", "Repeat", "Environment, and how to repeat it", blocks)


def _flat(prefix: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (f"{prefix}: {key}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in values.items()
    ]
