"""Scales and axes of the charts: where a value lies, which ticks a reader needs, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seatrial.report.markup import Markup, el, join

__all__ = [
    "LETTER",
    "Frame",
    "Scale",
    "linear_scale",
    "log_scale",
    "path",
    "tail_scale",
    "tick_text",
    "time_unit",
    "x_axis",
    "y_axis",
]

MOST_LOG_TICKS = 6
# Width of a letter in the font of the charts, a little generous.
LETTER = 7.2
# With more nines than this the middle and the ninetieth percentile stand too close for two labels.
MOST_NINES = 4.3
TAIL_TICKS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@dataclass(frozen=True)
class Frame:
    """The plot area inside an SVG, in its user units."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height


@dataclass(frozen=True)
class Scale:
    """Maps a value to a share of the axis, from 0 to 1, and knows its ticks."""

    share: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]

    def x(self, frame: Frame, value: float) -> float:
        """The horizontal place of a value."""
        return frame.left + self.share(value) * frame.width

    def y(self, frame: Frame, value: float) -> float:
        """The vertical place of a value."""
        return frame.bottom - self.share(value) * frame.height


def tick_text(value: float) -> str:
    """A round number without an exponent.

    >>> tick_text(1500), tick_text(0.25), tick_text(0)
    ('1,500', '0.25', '0')
    """
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def _nice_step(span: float, count: int) -> float:
    raw = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)


def linear_scale(low: float, high: float, count: int = 5, *, fitted: bool = False) -> Scale:
    """From `low` to `high`, rounded up to a tick unless `fitted`."""
    span = high - low if high > low else 1.0
    step = _nice_step(span, count)
    top = low + span if fitted else math.ceil((low + span) / step - 1e-9) * step
    first = math.ceil(low / step - 1e-9)
    last = math.floor(top / step + 1e-9)
    ticks = tuple((i * step, tick_text(round(i * step, 9))) for i in range(first, last + 1))
    return Scale(share=lambda v: (v - low) / (top - low), ticks=ticks)


def log_scale(low: float, high: float) -> Scale:
    """Decades with ticks at 1, 2 and 5; where that would be crowded only the powers of ten are labelled."""
    low, high = max(low, 1e-6), max(high, 1e-6 * 10)
    steps = [m * 10.0**e for e in range(-7, 10) for m in (1, 2, 5)]
    start = max(s for s in steps if s <= low * 1.0001)
    end = min(s for s in steps if s >= high * 0.9999 and s > start)
    inside = [s for s in steps if start * 0.999 <= s <= end * 1.001]
    crowded = len(inside) > MOST_LOG_TICKS
    ticks = tuple((s, "" if crowded and not _is_decade(s) else tick_text(s)) for s in inside)
    span = math.log(end / start)
    return Scale(share=lambda v: math.log(max(v, start) / start) / span, ticks=ticks)


def _is_decade(value: float) -> bool:
    return abs(math.log10(value) - round(math.log10(value))) < 1e-9


def tail_scale(highest: float) -> Scale:
    """Percentiles so that each further nine takes the same room: the place is -log10(1 - q)."""
    end = -math.log10(1 - highest)
    places = TAIL_TICKS if end < MOST_NINES else TAIL_TICKS[1:]
    ticks = tuple((q, f"{q:.5%}".rstrip("%").rstrip("0").rstrip(".") + "%") for q in places)
    shown = tuple((q, text) for q, text in ticks if -math.log10(1 - q) <= end + 1e-9)
    return Scale(share=lambda q: -math.log10(1 - q) / end, ticks=shown)


def time_unit(span_s: float) -> tuple[float, str]:
    """Seconds in the unit that reads best for a span, and its name."""
    if span_s > 3 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if span_s > 600 else (1.0, "seconds")


def x_axis(frame: Frame, scale: Scale, title: str) -> Markup:
    """Base line, ticks with labels where there is room for them, title at the right below."""
    marks: list[Markup] = []
    free = -math.inf
    for value, text in scale.ticks:
        x, half = scale.x(frame, value), LETTER * len(text) / 2
        marks.append(el("line", x1=x, x2=x, y1=frame.bottom, y2=frame.bottom + 4, class_="tick"))
        if text and x - half > free:
            marks.append(el("text", text, x=x, y=frame.bottom + 18, text_anchor="middle"))
            free = x + half + 4
    base = el("line", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom, class_="base")
    name = el("text", title, x=frame.right, y=frame.bottom + 37, text_anchor="end", class_="axis")
    return el("g", base, marks, name)


def y_axis(frame: Frame, scale: Scale, title: str, *, lift: float = 12) -> Markup:
    """Light grid lines with labels at the left, title `lift` above them so that nobody has to turn the head."""
    marks = [
        (
            el("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid"),
            el("text", text, x=frame.left - 8, y=y + 4, text_anchor="end") if text else None,
        )
        for y, text in ((scale.y(frame, value), text) for value, text in scale.ticks)
    ]
    return join([el("g", marks), el("text", title, x=2, y=frame.top - lift, class_="axis")])


def path(points: Sequence[tuple[float, float] | None], class_: str) -> Markup:
    """A line through points; None breaks it, so that a gap in the data stays a gap."""
    parts, command = [], "M"
    for point in points:
        if point is None:
            command = "M"
            continue
        parts.append(f"{command}{point[0]:.1f} {point[1]:.1f}")
        command = "L"
    return el("path", d="".join(parts), class_=f"line {class_}") if parts else Markup("")
