"""The charts over load: rates and p99 by step, the latency spectrum, the stages of one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.records import Knee, LoadSummary, Percentiles, Phase, StageTime, figure_text
from seatrial.report.axes import Frame, Scale, linear_scale, log_scale, path, tail_scale, x_axis, y_axis
from seatrial.report.derive import Curve, label, stage_order
from seatrial.report.document import NOT_MEASURED, Chart, Table
from seatrial.report.markup import Markup, el, join

__all__ = ["knee_text", "picture", "spectrum_chart", "stages_chart", "steps_chart"]

Step = tuple[Phase, LoadSummary]
NARROW = 480
# Rates that differ by more than this are drawn on a log scale, so that the low steps can be told apart.
WIDE_RANGE = 12
# Height of one row of the waterfall.
ROW = 30


def picture(ident: str, size: tuple[int, int], texts: tuple[str, str], *children: Markup) -> Markup:
    """An SVG with a title and a description for those who do not see it."""
    width, height = size
    name, about = f"{ident}-{width}-t", f"{ident}-{width}-d"
    return el(
        "svg",
        el("title", texts[0], id=name),
        el("desc", texts[1], id=about),
        children,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby=f"{name} {about}",
        class_="wide" if width > NARROW else "narrow",
    )


def knee_text(knee: Knee) -> str:
    """The knee as an interval with its type, never a bare number."""
    lower = NOT_MEASURED if knee.lower is None else f"{knee.lower:,.6g}/s"
    upper = NOT_MEASURED if knee.upper is None else f"{knee.upper:,.6g}/s"
    return {
        "found": f"between {lower} and {upper}",
        "at_least": f"at least {lower}",
        "generator_limited": "not found: the generator was the limit"
        + (f"; at least {lower}" if knee.lower else ""),
        "below_first_step": f"below the first step ({upper})",
        "invalid": "invalid",
    }[knee.type]


def steps_chart(steps: Sequence[Step], knee: Knee | None, limit_ms: float | None) -> Chart:
    """Offered, achieved and goodput by step above, p99 of response with its interval below, on one rate axis."""
    ordered = sorted(steps, key=lambda step: step[1].offered_per_s)
    about = (
        "Upper panel: answers per second against the rate offered. Lower panel: response p99 in milliseconds."
    )
    legend = [
        ("offered", "offered"),
        ("achieved", "achieved"),
        ("goodput", "goodput, in budget"),
        ("tail", "response p99"),
    ]
    if limit_ms is not None:
        legend.append(("limit", f"promised p99, {figure_text(limit_ms)} ms"))
    return Chart(
        ident="steps",
        title="Throughput and response p99 by step",
        about=about,
        legend=tuple(legend),
        draw=lambda width: _draw_steps(ordered, knee, limit_ms, width),
        table=_steps_table(ordered),
    )


def _steps_table(steps: Sequence[Step]) -> Table:
    rows = tuple(
        (
            label(phase),
            f"{load.offered_per_s:,.1f}",
            f"{load.achieved_per_s:,.1f}",
            f"{load.goodput_per_s:,.1f}",
            load.response_ms.text("p50"),
            load.response_ms.text("p99"),
            _errors_text(load.errors),
            f"{load.not_sent:,}",
        )
        for phase, load in steps
    )
    headers = (
        "phase", "offered (requests/s)", "achieved (requests/s)", "goodput (requests/s)",
        "response p50", "response p99", "errors", "not sent",
    )  # fmt: skip
    return Table(headers, rows, frozenset({1, 2, 3, 6, 7}))


def _errors_text(errors: Mapping[str, int]) -> str:
    """The total, and where there are any how many of which kind."""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in errors.items() if count)
    return f"{sum(errors.values()):,}" + (f" ({kinds})" if kinds else "")


def _draw_steps(steps: Sequence[Step], knee: Knee | None, limit_ms: float | None, width: int) -> Markup:
    left = 56
    upper, lower = Frame(left, 34, width - left - 16, 210), Frame(left, 304, width - left - 16, 130)
    offered = [load.offered_per_s for _, load in steps]
    rates = [*offered, *(load.achieved_per_s for _, load in steps)]
    low, high = min(offered), max(offered)
    wide = low > 0 and high > WIDE_RANGE * low
    if wide:
        x, y = log_scale(low, high), log_scale(low, max(rates))
    else:
        x = linear_scale(0, high * 1.04, 8 if width > NARROW else 4, fitted=True)
        y = linear_scale(0, max(rates), 5)
    lines = [_rate_line(upper, x, y, steps, name) for name in ("achieved", "goodput")]
    ends = (low if wide else 0.0, high)
    ideal = path([(x.x(upper, rate), y.y(upper, rate)) for rate in ends], "offered")
    scale = ", log scale" if wide else ""
    texts = ("Throughput and response p99 by step", _steps_in_words(steps, knee))
    return picture(
        "steps",
        (width, 482),
        texts,
        _knee_band((upper, lower), x, knee, steps),
        y_axis(upper, y, f"answers per second (requests/s{scale})"),
        x_axis(upper, x, ""),
        ideal,
        *lines,
        _tail_panel(lower, x, steps, limit_ms),
        x_axis(lower, x, f"offered rate (requests/s{scale})"),
    )


def _steps_in_words(steps: Sequence[Step], knee: Knee | None) -> str:
    parts = [
        f"{load.offered_per_s:,.0f} offered: {load.achieved_per_s:,.0f} achieved, {load.goodput_per_s:,.0f} good"
        for _, load in steps
    ]
    return "Requests per second. " + "; ".join(parts) + (f". Knee {knee_text(knee)}." if knee else ".")


def _rate_line(frame: Frame, x: Scale, y: Scale, steps: Sequence[Step], name: str) -> Markup:
    values = [(load.offered_per_s, getattr(load, f"{name}_per_s"), phase.name) for phase, load in steps]
    points = [(x.x(frame, a), y.y(frame, b)) for a, b, _ in values]
    tips = [f"{phase}: {b:,.1f} requests/s {name} of {a:,.1f} offered" for a, b, phase in values]
    return join([path(points, name), *(_marker(p, name, tip) for p, tip in zip(points, tips, strict=True))])


def _marker(point: tuple[float, float], name: str, tip: str) -> Markup:
    if name == "goodput":
        shape = {"x": point[0] - 4, "y": point[1] - 4, "width": 8, "height": 8}
        return el("rect", el("title", tip), class_=f"dot {name}", **shape)
    return el("circle", el("title", tip), cx=point[0], cy=point[1], r=4, class_=f"dot {name}")


def _offered(knee: Knee, steps: Sequence[Step]) -> tuple[float | None, float | None]:
    """The knee's bounds at the rates truly offered: random arrivals are never exactly as many as planned."""
    offered = {load.rate_per_s: load.offered_per_s for _, load in steps}
    return offered.get(knee.lower, knee.lower), offered.get(knee.upper, knee.upper)


def _knee_band(frames: tuple[Frame, Frame], x: Scale, knee: Knee | None, steps: Sequence[Step]) -> Markup:
    if knee is None or knee.type == "invalid" or (knee.lower is None and knee.upper is None):
        return Markup("")
    upper, (low, high) = frames[0], _offered(knee, steps)
    start = x.x(upper, low if low is not None else 0)
    end = min(x.x(upper, high), upper.right) if high is not None else upper.right
    label = "knee" if knee.type == "found" else "at least" if knee.lower is not None else "below"
    middle, anchor = ((start + end) / 2, "middle") if knee.upper is not None else (start, "end")
    bands = [
        (
            el("rect", x=start, y=f.top, width=max(end - start, 1.0), height=f.height, class_="knee"),
            el("line", x1=start, x2=start, y1=f.top, y2=f.bottom, class_="kneeline"),
        )
        for f in frames
    ]
    name = el(
        "text", label, x=min(middle, upper.right - 20), y=upper.top - 6, text_anchor=anchor, class_="strong"
    )
    return el("g", el("title", f"Knee {knee_text(knee)}"), bands, name)


def _tail_panel(frame: Frame, x: Scale, steps: Sequence[Step], limit_ms: float | None) -> Markup:
    """Whiskers are the interval; a hollow point is not certified."""
    tails = [(load.offered_per_s, load.response_ms.p99, phase.name) for phase, load in steps]
    values = [v for _, q, _ in tails for v in (q.value, q.lower, q.upper) if v is not None]
    values += [limit_ms] if limit_ms is not None else []
    if not values:
        return el("text", f"response p99: {NOT_MEASURED}", x=frame.left + 8, y=frame.top + 30)
    wide = max(values) > 20 * max(min(values), 1e-6)
    y = log_scale(min(values), max(values)) if wide else linear_scale(0, max(values), 4)
    title = "response p99 (ms, log scale)" if wide else "response p99 (ms)"
    parts: list[Markup] = [y_axis(frame, y, title)]
    if limit_ms is not None:
        at = y.y(frame, limit_ms)
        parts.append(el("line", x1=frame.left, x2=frame.right, y1=at, y2=at, class_="line limit"))
    points = [
        (x.x(frame, rate), y.y(frame, q.value)) if q.value is not None else None for rate, q, _ in tails
    ]
    parts.append(path(points, "tail"))
    for point, (_, q, name) in zip(points, tails, strict=True):
        if point is None:
            continue
        if q.lower is not None and q.upper is not None:
            low, high = y.y(frame, q.lower), y.y(frame, q.upper)
            parts.append(el("line", x1=point[0], x2=point[0], y1=low, y2=high, class_="whisker tail"))
        shape = "dot tail" if q.certified else "dot tail hollow"
        parts.append(
            el("circle", el("title", f"{name}: p99 {q}"), cx=point[0], cy=point[1], r=4, class_=shape)
        )
    return join(parts)


def spectrum_chart(curves: Sequence[Curve], loads: Sequence[Step], chosen: Sequence[str]) -> Chart:
    """One small panel a phase, all on the same axes."""
    shown = [curve for curve in curves if curve.phase in chosen]
    values = [v for curve in shown for _, v in curve.points if v > 0]
    y = log_scale(min(values), max(values))
    x = tail_scale(max(max(q for q, _ in curve.points) for curve in shown))

    def draw(_: int) -> Markup:
        return join(_spectrum_panel([c for c in shown if c.phase == phase], x, y) for phase in chosen)

    return Chart(
        ident="spectrum",
        title="Latency spectrum by phase",
        about="Share of requests that were at least this fast; each further nine takes the same room. "
        "Dotted where the sample is too small to certify the percentile.",
        legend=(
            ("response", "response, from the intended moment"),
            ("service", "service, from the moment of sending"),
        ),
        draw=draw,
        table=_spectrum_table(loads),
        facets=True,
    )


def _spectrum_table(loads: Sequence[Step]) -> Table:
    names: tuple[tuple[str, str], ...] = (("response", "response_ms"), ("service", "service_ms"))
    rows = []
    for phase, load in loads:
        for name, attribute in names:
            figures: Percentiles = getattr(load, attribute)
            rows.append(
                (label(phase), name, *(str(q) for q in figures.quantiles.values()), figures.text("max"))
            )
    return Table(("phase", "measure", "p50", "p90", "p95", "p99", "p99.9", "max"), tuple(rows))


def _spectrum_panel(curves: Sequence[Curve], x: Scale, y: Scale) -> Markup:
    if not curves:
        return Markup("")
    width, height = 288, 226
    frame = Frame(44, 46, width - 44 - 14, height - 46 - 44)
    ident = f"spectrum-{curves[0].phase}"
    parts = [x_axis(frame, x, "share of requests"), y_axis(frame, y, "milliseconds (log scale)")]
    for curve in curves:
        firm = [p for p in curve.points if p[0] <= curve.certified_to + 1e-9]
        weak = [p for p in curve.points if p[0] >= (firm[-1][0] if firm else 0)]
        for points, class_ in ((firm, curve.measure), (weak, f"{curve.measure} weak")):
            parts.append(path([(x.x(frame, q), y.y(frame, v)) for q, v in points], class_))
        parts += [_spectrum_tip(frame, x, y, curve, point) for point in _every(curve.points, 9)]
    name = f"{curves[0].phase}, n={curves[0].n:,}"
    parts.append(el("text", name, x=2, y=14, class_="strong"))
    about = "; ".join(f"{c.measure}: slowest of n={c.n:,} {figure_text(c.points[-1][1])} ms" for c in curves)
    return picture(ident, (width, height), (f"Latency spectrum of {name}", about), *parts)


def _every(points: Sequence[tuple[float, float]], step: int) -> Sequence[tuple[float, float]]:
    return points[::step] if len(points) > 2 * step else points


def _spectrum_tip(frame: Frame, x: Scale, y: Scale, curve: Curve, point: tuple[float, float]) -> Markup:
    share, value = point
    tip = f"{curve.measure}: {share:.3%} of n={curve.n:,} took at most {figure_text(value)} ms"
    return el("circle", el("title", tip), cx=x.x(frame, share), cy=y.y(frame, value), r=6, class_="hit")


def stages_chart(phase: Phase, load: LoadSummary) -> Chart:
    """Where the mean request spends its time, stage after stage, with the p99 of each as a whisker."""
    stages = sorted(load.stages_ms.items(), key=lambda item: stage_order(item[0]))
    return Chart(
        ident="stages",
        title=f"Time per stage in {label(phase)}, n={max(t.n for _, t in stages):,}",
        about="Bars: mean time, one after the other as a request passes them. Whiskers: p99 of the stage alone; "
        "p99s do not add up.",
        legend=(("stage", "mean"), ("stage-tail", "p99 of the stage")),
        draw=lambda width: _draw_stages(stages, load, width),
        table=_stages_table(stages, load),
    )


def _stages_table(stages: Sequence[tuple[str, StageTime]], load: LoadSummary) -> Table:
    total = sum(time.mean for _, time in stages)
    rows = [
        (
            name,
            figure_text(t.mean),
            f"{t.mean / total:.0%}" if total else "",
            figure_text(t.p50),
            figure_text(t.p99),
            f"{t.n:,}",
        )
        for name, t in stages
    ]
    rows.append(("sum of the stages", figure_text(total), "100%", "", "", ""))
    service = load.service_ms
    if service.mean is not None:
        outside = service.mean - total
        rows.append(("outside the stages: network, write, client", figure_text(outside), "", "", "", ""))
        p50, p99 = (
            figure_text(q.value) if q.value is not None else NOT_MEASURED for q in (service.p50, service.p99)
        )
        rows.append(
            ("service, seen by the client", figure_text(service.mean), "", p50, p99, f"{service.n:,}")
        )
    headers = ("stage", "mean (ms)", "share", "p50 (ms)", "p99 (ms)", "n")
    return Table(headers, tuple(rows), frozenset({1, 2, 3, 4, 5}))


def _draw_stages(stages: Sequence[tuple[str, StageTime]], load: LoadSummary, width: int) -> Markup:
    """A waterfall with the figures in two columns at its right."""
    wide = width > NARROW
    total, service = sum(time.mean for _, time in stages), load.service_ms.mean
    rows = len(stages) + (1 if service is None else 2)
    left, right = (140, 150) if wide else (78, 112)
    frame = Frame(left, 30, width - left - right, rows * ROW)
    starts = [sum(t.mean for _, t in stages[:i]) for i in range(len(stages))]
    reach = [start + max(t.p99, t.mean) for start, (_, t) in zip(starts, stages, strict=True)]
    x = linear_scale(0, max(*reach, total, service or 0.0), 6 if wide else 3)
    bars = [_stage_bar(frame, x, (i * ROW, starts[i]), item) for i, item in enumerate(stages)]
    bars.append(_total_bar(frame, x, len(stages) * ROW, ("sum of stages" if wide else "sum", total), "sum"))
    if service is not None:
        item = ("service (client)" if wide else "service", service)
        bars.append(_total_bar(frame, x, (len(stages) + 1) * ROW, item, "total"))
    grid = [
        el("line", x1=at, x2=at, y1=frame.top, y2=frame.bottom, class_="grid")
        for at in (x.x(frame, value) for value, _ in x.ticks)
    ]
    heads = _stage_figures(
        frame, frame.top - 12, ("mean (ms)", "p99 (ms)") if wide else ("mean", "p99"), "axis"
    )
    words = "; ".join(_stage_words(name, time) for name, time in stages)
    axis = x_axis(frame, x, "milliseconds, mean request" if wide else "milliseconds")
    size = (width, int(frame.bottom) + 46)
    return picture(
        "stages", size, ("Time per stage in milliseconds", words), el("g", grid), axis, heads, *bars
    )


def _stage_words(name: str, time: StageTime) -> str:
    mean, p50, p99 = (figure_text(v) for v in (time.mean, time.p50, time.p99))
    return f"{name}: mean {mean} ms, p50 {p50} ms, p99 {p99} ms, n={time.n:,}"


def _narrow(value_ms: float) -> str:
    """At most four decimals: a tenth of a microsecond is the resolution of the stamps."""
    return f"{value_ms:.4f}" if 0 < value_ms < 0.01 else figure_text(value_ms)


def _stage_figures(frame: Frame, y: float, texts: tuple[str, str], class_: str) -> Markup:
    places = (
        (frame.right + 62, frame.right + 140) if frame.left > 100 else (frame.right + 56, frame.right + 110)
    )
    return join(
        el("text", text, x=at, y=y, text_anchor="end", class_=class_)
        for text, at in zip(texts, places, strict=True)
    )


def _stage_bar(frame: Frame, x: Scale, place: tuple[float, float], item: tuple[str, StageTime]) -> Markup:
    (offset, start), (name, time) = place, item
    top, middle = frame.top + offset + 6, frame.top + offset + 15
    begin, end, tail = x.x(frame, start), x.x(frame, start + time.mean), x.x(frame, start + time.p99)
    return el(
        "g",
        el("title", _stage_words(name, time)),
        el("rect", x=begin, y=top, width=max(end - begin, 1.5), height=18, rx=2, class_="stage"),
        el("line", x1=begin, x2=tail, y1=middle, y2=middle, class_="whisker stage-tail"),
        el("line", x1=tail, x2=tail, y1=middle - 5, y2=middle + 5, class_="whisker stage-tail"),
        el("text", name, x=frame.left - 10, y=middle + 4, text_anchor="end"),
        _stage_figures(frame, middle + 4, (_narrow(time.mean), _narrow(time.p99)), "figure"),
    )


def _total_bar(frame: Frame, x: Scale, offset: float, item: tuple[str, float], class_: str) -> Markup:
    top, end = frame.top + offset + 6, x.x(frame, item[1])
    return el(
        "g",
        el("title", f"{item[0]}: mean {figure_text(item[1])} ms"),
        el("rect", x=frame.left, y=top, width=max(end - frame.left, 1.5), height=18, rx=2, class_=class_),
        el("text", item[0], x=frame.left - 10, y=top + 13, text_anchor="end", class_="strong"),
        _stage_figures(frame, top + 13, (figure_text(item[1]), ""), "figure strong"),
    )
