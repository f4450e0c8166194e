"""Figures of one phase from its `requests.arrow`: the whole latency spectrum and seconds, by arrays, not by rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.errors import RecordError
from seatrial.records import Percentiles, SecondPoint, read_stream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Requests", "read_requests", "seconds", "spectrum"]

OK, HTTP_ERROR, TIMEOUT, NOT_SENT = 0, 1, 2, 6
SPECTRUM_POINTS = 90


@dataclass(frozen=True)
class Requests:
    """Columns of one phase in seconds or milliseconds; NaN where a moment did not happen."""

    intended_s: Floats
    sent_s: Floats
    end_s: Floats
    outcome: Any

    @property
    def judged(self) -> Any:
        """Which requests have a place among latencies: a refusal would flatter them, a time-out belongs to them."""
        return (self.outcome == OK) | (self.outcome == TIMEOUT) | (self.outcome == NOT_SENT)

    @property
    def response_ms(self) -> Floats:
        """From the intended moment to the end."""
        return (self.end_s - self.intended_s) * 1000.0

    @property
    def service_ms(self) -> Floats:
        """From the moment of sending to the end."""
        return (self.end_s - self.sent_s) * 1000.0


def read_requests(file: Path) -> Requests | None:
    """The columns, or None when the file is absent, empty or torn before its first batch."""
    import numpy as np

    if not file.is_file():
        return None
    try:
        table = read_stream(file)
        columns = {name: table.column(name) for name in ("intended_ns", "sent_ns", "end_ns", "outcome")}
    except (RecordError, KeyError):
        return None
    if table.num_rows == 0:
        return None
    intended, sent, end = (
        np.asarray(columns[name].cast("float64").to_numpy(), dtype=np.float64) / 1e9
        for name in ("intended_ns", "sent_ns", "end_ns")
    )
    return Requests(intended, sent, end, np.asarray(columns["outcome"].to_numpy()))


def spectrum(
    requests: Requests, durations_ms: Floats, recorded: Percentiles
) -> list[tuple[float, float]] | None:
    """Order statistics from the fastest to the slowest request, at places even on the tail axis.

    Only when the same requests gave the recorded percentiles (same count, same p50 and p99): the record decides
    what a sample is, and a second answer to the same question would be a defect. Otherwise None.
    """
    import numpy as np

    answered = np.isfinite(durations_ms)
    for chosen in (answered & requests.judged, answered & (requests.outcome == OK)):
        values = np.sort(durations_ms[chosen])
        if len(values) == recorded.n and _same(values, recorded):
            shares = 1 - 10.0 ** -np.linspace(0, np.log10(len(values)), SPECTRUM_POINTS)
            ranks = np.clip(np.ceil(shares * len(values)).astype(np.int64) - 1, 0, len(values) - 1)
            ranks[-1] = len(values) - 1  # The axis ends at 1 - 1/n, where the slowest request stands.
            return [(float(q), float(v)) for q, v in zip(shares, values[ranks], strict=True)]
    return None


def _same(values: Floats, recorded: Percentiles) -> bool:
    for share, quantile in ((0.5, recorded.p50), (0.99, recorded.p99)):
        if quantile.value is None or not len(values):
            return False
        place = share * len(values)
        low, high = values[max(int(place) - 2, 0)], values[min(int(place) + 2, len(values) - 1)]
        if not low * 0.999 - 1e-6 <= quantile.value <= high * 1.001 + 1e-6:
            return False
    return True


def seconds(requests: Requests) -> list[SecondPoint]:
    """One point a second of the phase. Percentiles are of the requests that were due in that second."""
    import numpy as np

    count = int(np.nanmax(np.fmax(requests.intended_s, requests.end_s))) + 1
    done = np.isfinite(requests.end_s)
    right = done & (requests.outcome == OK)
    wrong = (requests.outcome != OK) & (requests.outcome != NOT_SENT)
    offered = _per_second(requests.intended_s, count)
    left = _per_second(requests.end_s[done & np.isfinite(requests.sent_s)], count)
    answered = _per_second(requests.end_s[done & np.isin(requests.outcome, (OK, HTTP_ERROR))], count)
    ok = _per_second(requests.end_s[right], count)
    errors = _per_second(np.where(done, requests.end_s, requests.intended_s)[wrong], count)
    sent = _per_second(requests.sent_s[np.isfinite(requests.sent_s)], count)
    in_flight = np.cumsum(sent) - np.cumsum(left)
    judged = requests.judged & done
    second = np.clip(requests.intended_s[judged].astype(np.int64), 0, count - 1)
    middle, tail = _quantiles_per_second(second, requests.response_ms[judged], count)
    sizes = np.bincount(second, minlength=count)
    return [
        SecondPoint(
            t=float(t),
            offered=float(offered[t]),
            achieved=float(answered[t]),
            ok=int(ok[t]),
            errors=int(errors[t]),
            p50_ms=middle[t],
            p99_ms=tail[t],
            n=int(sizes[t]),
            in_flight=max(int(in_flight[t]), 0),
        )
        for t in range(count)
    ]


def _per_second(moments_s: Floats, count: int) -> Any:
    import numpy as np

    return np.bincount(np.clip(moments_s.astype(np.int64), 0, count - 1), minlength=count)


def _quantiles_per_second(
    second: Any, values: Floats, count: int
) -> tuple[list[float | None], list[float | None]]:
    """The p50 and p99 order statistics of each second's group, None for an empty one."""
    import numpy as np

    order = np.lexsort((values, second))
    ordered = values[order]
    sizes = np.bincount(second, minlength=count)
    starts = np.cumsum(sizes) - sizes

    def at(share: float) -> list[float | None]:
        ranks = starts + np.maximum(np.ceil(share * sizes).astype(np.int64) - 1, 0)
        return [float(ordered[r]) if size else None for r, size in zip(ranks, sizes, strict=True)]

    return at(0.5), at(0.99)
