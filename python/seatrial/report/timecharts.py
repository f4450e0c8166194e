"""The charts over time, on the one axis of the record: seconds of load with events, CPU and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.records import Event, Phase, figure_text
from seatrial.report.axes import (
    LETTER,
    Frame,
    Scale,
    linear_scale,
    log_scale,
    path,
    tick_text,
    time_unit,
    x_axis,
    y_axis,
)
from seatrial.report.charts import NARROW, picture
from seatrial.report.derive import Slot, Usage, label
from seatrial.report.document import NOT_MEASURED, Chart, Table
from seatrial.report.markup import Markup, el

__all__ = ["seconds_chart", "usage_chart"]

MIB = 1024 * 1024
LEFT = 56
# Kinds of events that say where a phase begins and how it ended.
BANDS = ("phase", "step", "hold", "end")


def _time_scale(end_s: float, width: int) -> tuple[Scale, str]:
    divisor, unit = time_unit(end_s)
    inner = linear_scale(0, max(end_s, 1e-9) / divisor, 8 if width > NARROW else 4, fitted=True)
    scale = Scale(
        share=lambda t: inner.share(t / divisor),
        ticks=tuple((v * divisor, tick_text(v)) for v, _ in inner.ticks),
    )
    return scale, f"{unit} since the start of the record"


def _phase_bands(frames: Sequence[Frame], x: Scale, phases: Sequence[Phase]) -> Markup:
    """Shades every second phase and names those that are wide enough."""
    top, bottom = frames[0].top, frames[-1].bottom
    parts = []
    for index, phase in enumerate(phases):
        start, end = x.x(frames[0], phase.started_s), x.x(frames[0], phase.ended_s)
        tip = el("title", f"{phase.name}: {phase.started_s:.1f} s to {phase.ended_s:.1f} s")
        shape = {"x": start, "y": top, "width": max(end - start, 0.5), "height": bottom - top}
        parts.append(el("rect", tip, class_="phase odd" if index % 2 else "phase", **shape))
        if end - start > 0.93 * LETTER * len(phase.name) + 2:
            parts.append(
                el("text", phase.name, x=(start + end) / 2, y=top - 6, text_anchor="middle", class_="small")
            )
    return el("g", parts)


def _event_lines(frame: Frame, x: Scale, events: Sequence[Event]) -> Markup:
    """Numbered as in the list of events. The phases are bands already, so their own events get no line."""
    parts: list[Markup] = []
    free = -1.0
    for number, event in enumerate(events, 1):
        at = x.x(frame, event.t_s)
        if event.kind in BANDS or at < free:
            continue
        free = at + 18
        line = el("line", x1=at, x2=at, y1=frame.top, y2=frame.bottom, class_="event")
        flag = el("circle", cx=at, cy=frame.bottom - 13, r=8, class_="flag")
        name = el("text", str(number), x=at, y=frame.bottom - 9, text_anchor="middle", class_="flagtext")
        tip = el("title", f"{number}. {event.t_s:.1f} s, {event.kind}: {event.text}")
        parts.append(el("g", tip, line, flag, name))
    return el("g", parts)


def _segments(
    slots: Sequence[Slot], point: Callable[[Slot], tuple[float, float] | None]
) -> list[tuple[float, float] | None]:
    """Points with a gap wherever the phase changes or time was left out."""
    found: list[tuple[float, float] | None] = []
    before: Slot | None = None
    for slot in slots:
        if before is not None and (slot.phase != before.phase or slot.t_s - before.t_s > 2.5 * slot.width_s):
            found.append(None)
        found.append(point(slot))
        before = slot
    return found


def seconds_chart(slots: Sequence[Slot], phases: Sequence[Phase], events: Sequence[Event]) -> Chart:
    """Rates above, response percentiles of each second below, events as numbered lines."""
    width_s = max(slot.width_s for slot in slots)
    span = "second" if width_s == 1 else f"{width_s:g} s (the slowest second of each)"
    return Chart(
        ident="seconds",
        title="Load and response over time",
        about=f"Upper panel: requests per second. Lower panel: response p50 and p99 by {span}, not certified: "
        "their sample sizes stand in the table.",
        legend=(
            ("offered", "offered"),
            ("achieved", "achieved"),
            ("response", "response p50"),
            ("tail", "response p99"),
        ),
        draw=lambda width: _draw_seconds(slots, phases, events, width),
        table=_seconds_table(slots),
        brief=_seconds_brief(slots),
    )


def _draw_seconds(
    slots: Sequence[Slot], phases: Sequence[Phase], events: Sequence[Event], width: int
) -> Markup:
    rate, delay = Frame(LEFT, 54, width - LEFT - 16, 140), Frame(LEFT, 250, width - LEFT - 16, 170)
    end = max([s.t_s + s.width_s for s in slots] + [p.ended_s for p in phases] + [e.t_s for e in events])
    x, title = _time_scale(end, width)
    whole = _whole_seconds(slots, phases)
    y = linear_scale(0, max(max(s.offered, s.achieved) for s in slots), 4)
    times = [v for s in slots for v in (s.p50_ms, s.p99_ms) if v is not None]
    z = log_scale(min(times), max(times)) if times else linear_scale(0, 1)
    lines = [
        path(_segments(whole, lambda s, n=name: (x.x(rate, s.t_s), y.y(rate, getattr(s, n)))), name)  # type: ignore[misc]
        for name in ("offered", "achieved")
    ]
    for class_, attribute in (("response", "p50_ms"), ("tail", "p99_ms")):
        lines.append(path(_segments(slots, _delay_point(delay, x, z, attribute)), class_))
    texts = (
        "Load and response over time",
        f"{len(slots)} points over {end:,.0f} seconds, {len(events)} events.",
    )
    return picture(
        "seconds",
        (width, 474),
        texts,
        _phase_bands((rate, delay), x, phases),
        y_axis(rate, y, "requests per second", lift=30),
        y_axis(delay, z, "response (ms, log scale)" if times else f"response (ms): {NOT_MEASURED}"),
        x_axis(rate, x, ""),
        x_axis(delay, x, title),
        *lines,
        _event_lines(Frame(rate.left, rate.top, rate.width, delay.bottom - rate.top), x, events),
        _slot_tips(Frame(rate.left, rate.top, rate.width, delay.bottom - rate.top - 8), x, slots),
    )


def _whole_seconds(slots: Sequence[Slot], phases: Sequence[Phase]) -> list[Slot]:
    """Without the rest of a second at a phase's end, whose counts are no rates. The table has it."""
    ends = {label(phase): phase.ended_s for phase in phases}
    return [slot for slot in slots if slot.t_s + 0.5 <= ends[slot.phase]]


def _delay_point(
    frame: Frame, x: Scale, y: Scale, attribute: str
) -> Callable[[Slot], tuple[float, float] | None]:
    def point(slot: Slot) -> tuple[float, float] | None:
        value: float | None = getattr(slot, attribute)
        return None if value is None else (x.x(frame, slot.t_s), y.y(frame, value))

    return point


def _slot_tips(frame: Frame, x: Scale, slots: Sequence[Slot]) -> Markup:
    """Invisible columns, so that the figures of a moment appear wherever the pointer is."""
    return el(
        "g",
        [
            el(
                "rect",
                el("title", _slot_text(slot)),
                x=x.x(frame, slot.t_s),
                y=frame.top,
                width=max(x.x(frame, slot.t_s + slot.width_s) - x.x(frame, slot.t_s), 1.0),
                height=frame.height,
                class_="hit",
            )
            for slot in slots
        ],
    )


def _slot_text(slot: Slot) -> str:
    delays = f"p50 {_ms(slot.p50_ms)}, p99 {_ms(slot.p99_ms)}, n={slot.n:,}"
    return (
        f"{slot.t_s:.0f} s, {slot.phase}: offered {slot.offered:,.0f}/s, achieved {slot.achieved:,.0f}/s, "
        f"errors {slot.errors:,}, in flight {slot.in_flight:,}; response {delays}"
    )


def _ms(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{figure_text(value)} ms"


def _seconds_table(slots: Sequence[Slot]) -> Table:
    headers = (
        "from (s)", "phase", "offered (requests/s)", "achieved (requests/s)", "errors", "in flight",
        "response p50", "response p99", "n",
    )  # fmt: skip
    rows = tuple(
        (
            f"{s.t_s:.0f}", s.phase, f"{s.offered:,.0f}", f"{s.achieved:,.0f}", f"{s.errors:,}", f"{s.in_flight:,}",
            _ms(s.p50_ms), _ms(s.p99_ms), f"{s.n:,}",
        )
        for s in slots
    )  # fmt: skip
    return Table(headers, rows, frozenset({0, 2, 3, 4, 5, 6, 7, 8}))


def _seconds_brief(slots: Sequence[Slot]) -> Table:
    """One row a phase: the slowest stretch with its sample size."""
    rows = []
    for name in dict.fromkeys(slot.phase for slot in slots):
        mine = [slot for slot in slots if slot.phase == name]
        worst = max(mine, key=lambda slot: slot.p99_ms or 0.0)
        offered = sum(s.offered for s in mine) / len(mine)
        achieved = sum(s.achieved for s in mine) / len(mine)
        slowest = f"{_ms(worst.p99_ms)} at {worst.t_s:.0f} s, n={worst.n:,}"
        rows.append(
            (name, f"{offered:,.0f}", f"{achieved:,.0f}", f"{sum(s.errors for s in mine):,}", slowest)
        )
    headers = (
        "phase",
        "offered (requests/s)",
        "achieved (requests/s)",
        "errors",
        "slowest second, response p99",
    )
    return Table(headers, tuple(rows), frozenset({1, 2, 3}))


def usage_chart(usage: Sequence[Usage], phases: Sequence[Phase]) -> Chart:
    """CPUs in use above, resident memory below, for server and generator."""
    return Chart(
        ident="usage",
        title="CPU and memory over time",
        about="Upper panel: CPUs in use, 1 is one core fully used. Lower panel: resident memory in MiB.",
        legend=(("server", "server"), ("generator", "generator")),
        draw=lambda width: _draw_usage(usage, phases, width),
        table=_usage_table(usage),
        brief=_usage_brief(usage),
    )


def _draw_usage(usage: Sequence[Usage], phases: Sequence[Phase], width: int) -> Markup:
    cpu, memory = Frame(LEFT, 54, width - LEFT - 16, 120), Frame(LEFT, 230, width - LEFT - 16, 120)
    end = max([u.t_s for u in usage] + [p.ended_s for p in phases])
    x, title = _time_scale(end, width)
    y = linear_scale(0, max((u.cpus for u in usage if u.cpus is not None), default=1.0), 4)
    z = linear_scale(0, max((u.rss_bytes for u in usage if u.rss_bytes is not None), default=MIB) / MIB, 4)
    lines, tips = [], []
    for process in ("server", "generator"):
        mine = [u for u in usage if u.process == process]
        lines.append(path([_usage_point(cpu, x, y, u.t_s, u.cpus) for u in mine], process))
        sizes = [None if u.rss_bytes is None else u.rss_bytes / MIB for u in mine]
        lines.append(
            path([_usage_point(memory, x, z, u.t_s, v) for u, v in zip(mine, sizes, strict=True)], process)
        )
        tips += [_usage_tip(cpu, (x, y), u, u.cpus) for u in mine]
        tips += [_usage_tip(memory, (x, z), u, v) for u, v in zip(mine, sizes, strict=True)]
    texts = (
        "CPU and memory over time",
        f"Server and generator, {len(usage)} points over {end:,.0f} seconds.",
    )
    return picture(
        "usage",
        (width, 404),
        texts,
        _phase_bands((cpu, memory), x, phases),
        y_axis(cpu, y, "CPUs in use (cores)", lift=30),
        y_axis(memory, z, "resident memory (MiB)"),
        x_axis(cpu, x, ""),
        x_axis(memory, x, title),
        *lines,
        el("g", tips),
    )


def _usage_point(
    frame: Frame, x: Scale, y: Scale, t_s: float, value: float | None
) -> tuple[float, float] | None:
    return None if value is None else (x.x(frame, t_s), y.y(frame, value))


def _usage_tip(frame: Frame, scales: tuple[Scale, Scale], usage: Usage, value: float | None) -> Markup:
    point = _usage_point(frame, *scales, usage.t_s, value)
    if point is None:
        return Markup("")
    tip = f"{usage.t_s:.0f} s, {usage.process}: {_cpus(usage.cpus)}, {_mib(usage.rss_bytes)}"
    return el("circle", el("title", tip), cx=point[0], cy=point[1], r=6, class_="hit")


def _cpus(value: float | None) -> str:
    return f"CPU {NOT_MEASURED}" if value is None else f"{value:.2f} CPUs"


def _mib(value: int | None) -> str:
    return f"memory {NOT_MEASURED}" if value is None else f"{value / MIB:,.1f} MiB"


def _usage_table(usage: Sequence[Usage]) -> Table:
    rows = tuple((f"{u.t_s:.0f}", u.process, _cpus(u.cpus), _mib(u.rss_bytes)) for u in usage)
    return Table(("at (s)", "process", "CPU (cores)", "resident memory (MiB)"), rows, frozenset({0, 2, 3}))


def _usage_brief(usage: Sequence[Usage]) -> Table:
    rows = []
    for process in dict.fromkeys(u.process for u in usage):
        mine = [u for u in usage if u.process == process]
        cpus = max((u.cpus for u in mine if u.cpus is not None), default=None)
        size = max((u.rss_bytes for u in mine if u.rss_bytes is not None), default=None)
        rows.append((process, _cpus(cpus), _mib(size)))
    return Table(
        ("process", "highest CPU (cores)", "highest resident memory (MiB)"), tuple(rows), frozenset({1, 2})
    )
