"""From the rows of a run to its figures. Nothing is estimated that was not recorded; nothing recorded is left out.

What counts where: `response` and `service` hold right answers and, at the time they were given up, requests that
timed out or were never sent (these have no service). Refusals and broken answers are counted in `errors` and have no
place among latencies, where a quick failure would flatter the figures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.bench.generator import EVENTS, LOAD
from seatrial.bench.quantiles import percentiles
from seatrial.errors import RecordError
from seatrial.records import (
    GeneratorHealth,
    LoadSummary,
    Percentiles,
    SecondPoint,
    StageTime,
    figure_text,
    read_stream,
)

__all__ = ["ERRORS", "Rows", "read_rows", "summarise"]

OK, HTTP_ERROR, TIMEOUT, CONNECT, RESET, PROTOCOL, NOT_SENT = range(7)
ERRORS = {
    "http_error": HTTP_ERROR,
    "timeout": TIMEOUT,
    "connect": CONNECT,
    "reset": RESET,
    "protocol": PROTOCOL,
}
STAGES = ("accept", "parse", "feature", "queue", "form", "copy_in", "run", "copy_out", "encode")

# Above these the generator, not the server, is what was measured.
MOST_LATE_MS = 1.0
MOST_LATE_SHARE = 0.02
MOST_CPU_SHARE = 0.7


@dataclass(frozen=True)
class Rows:
    """The columns of `requests.arrow` as arrays; times in nanoseconds from the origin, NaN where absent."""

    intended: Any
    sent: Any
    end: Any
    outcome: Any
    bytes_in: int
    bytes_out: int
    stages: Mapping[str, Any]
    metadata: Mapping[str, str]

    @property
    def judged(self) -> Any:
        """Which rows have a place among latencies."""
        return (self.outcome == OK) | (self.outcome == TIMEOUT) | (self.outcome == NOT_SENT)

    @property
    def response_ms(self) -> Any:
        """`end - intended` of every row."""
        return (self.end - self.intended) / 1e6


def summarise(folder: Path, *, budget_ms: float | None = None) -> LoadSummary:
    """The figures of one run. `budget_ms` is the promised p99: the bound of goodput, and of lateness with it."""
    config, done, seconds = _documents(folder)
    rows = read_rows(folder / "requests.arrow")
    schedule = config["schedule"]
    elapsed = _elapsed(schedule, rows, done, seconds)
    late = percentiles((rows.sent - rows.intended)[~_absent(rows.sent)] / 1e6)
    counts = _counts(rows, done, seconds)
    good = rows.outcome == OK
    in_budget = good if budget_ms is None else good & (rows.response_ms <= budget_ms)
    # What is answered after the end raises no rate: the rest of a backlog is not what the server carries.
    in_time = rows.end <= elapsed * 1e9
    answered = (rows.outcome == OK) | (rows.outcome == HTTP_ERROR)
    return LoadSummary(
        mode=schedule["mode"],
        arrivals=schedule.get("arrivals", "none"),
        rate_per_s=schedule.get("rate_per_s"),
        duration_s=elapsed,
        seed=schedule.get("seed"),
        **counts,
        completed=int(answered.sum()),
        ok=int(good.sum()),
        cut_short=done is None or bool(done["cut_short"]),
        offered_per_s=counts["intended"] / elapsed,
        achieved_per_s=int((answered & in_time).sum()) / elapsed,
        goodput_per_s=int((in_budget & in_time).sum()) / elapsed,
        response_ms=percentiles(rows.response_ms[rows.judged]),
        service_ms=percentiles(((rows.end - rows.sent) / 1e6)[rows.judged & ~_absent(rows.sent)]),
        late_ms=late,
        stages_ms=_stage_times(rows),
        generator=_health(done, late, counts["not_sent"], budget_ms),
        series=_series(rows, elapsed),
        bytes_in=rows.bytes_in,
        bytes_out=rows.bytes_out,
    )


def read_rows(path: Path) -> Rows:
    """The rows of a `requests.arrow`, of a torn one as far as it goes."""
    import numpy as np

    table = read_stream(path)

    def column(name: str) -> Any:
        if name not in table.column_names:
            raise RecordError(f"`{path}` lacks the column `{name}`")
        return table.column(name).to_numpy().astype(np.float64)

    metadata = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    return Rows(
        intended=column("intended_ns"),
        sent=column("sent_ns"),
        end=column("end_ns"),
        outcome=column("outcome").astype(np.uint8),
        bytes_in=int(column("bytes_in").sum()),
        bytes_out=int(column("bytes_out").sum()),
        stages={name: column(f"{name}_ns") for name in STAGES},
        metadata=metadata,
    )


def _documents(folder: Path) -> tuple[dict[str, Any], dict[str, Any] | None, list[dict[str, Any]]]:
    """`load.json`, the `done` event if it came, and the events of the seconds."""
    try:
        config = json.loads((folder / LOAD).read_text())
    except (OSError, ValueError) as error:
        raise RecordError(f"`{folder}` holds no run: {error}", hint="give the folder of one run") from error
    events = []
    try:
        for line in (folder / EVENTS).read_text().splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                break  # the torn last line of a crash
    except OSError:
        events = []  # without it only the generator's own health is unknown
    done = next((e for e in events if e.get("event") == "done"), None)
    return config, done, [e for e in events if e.get("event") == "second"]


def _absent(values: Any) -> Any:
    import numpy as np

    return np.isnan(values)


def _elapsed(
    schedule: Mapping[str, Any], rows: Rows, done: Mapping[str, Any] | None, seconds: list[dict[str, Any]]
) -> float:
    """The length of the timetable, or what was played of it."""
    planned = float(schedule["duration_s"])
    if done is not None and not done["cut_short"]:
        return planned
    last = [float(rows.end.max()) / 1e9] if len(rows.end) else []
    said = [float(e["t"]) for e in ([done] if done is not None else seconds[-1:])]
    return max(min(planned, max([*last, *said], default=planned)), 1e-3)


def _counts(rows: Rows, done: Mapping[str, Any] | None, seconds: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts from the rows; what a dead generator had out comes from its last word."""
    said: Mapping[str, Any] = done or (seconds[-1] if seconds else {})
    not_sent = int((rows.outcome == NOT_SENT).sum())
    return {
        "intended": max(len(rows.outcome), int(said.get("intended", 0))),
        "sent": max(len(rows.outcome) - not_sent, int(said.get("sent", 0))),
        "errors": {kind: n for kind, code in ERRORS.items() if (n := int((rows.outcome == code).sum()))},
        "not_sent": not_sent,
    }


def _stage_times(rows: Rows) -> dict[str, StageTime]:
    import numpy as np

    found = {}
    for name, column in rows.stages.items():
        values = np.sort(column[(rows.outcome == OK) & ~np.isnan(column)]) / 1e6
        if len(values):
            figures = percentiles(values)
            found[name] = StageTime(
                mean=float(values.mean()),
                p50=float(figures.p50.value or 0),
                p99=float(figures.p99.value or 0),
                n=len(values),
            )
    return found


def _health(
    done: Mapping[str, Any] | None, late: Percentiles, not_sent: int, budget_ms: float | None
) -> GeneratorHealth:
    late_p99, share, waited = late.p99.value, None, None
    limit = max(MOST_LATE_MS, MOST_LATE_SHARE * (budget_ms or 0.0))
    if done is not None and done["wall_s"] > 0:
        share = max(0.0, done["cpu_s"] - done["spin_s"]) / done["wall_s"]
        if done["run_queue_wait_s"] is not None:
            waited = done["run_queue_wait_s"] / done["wall_s"]
    reasons = []
    if late_p99 is not None and late_p99 > limit:
        late_text = f"p99 of lateness is {figure_text(late_p99)} ms (n={late.n:,})"
        reasons.append(f"{late_text}, above {limit:g} ms")
    if share is not None and share > MOST_CPU_SHARE:
        reasons.append(f"it used {share:.0%} of its core, above {MOST_CPU_SHARE:.0%}")
    if not_sent:
        reasons.append(f"{not_sent:,} requests found no free place among those in flight")
    if done is None:
        reasons.append("generator died before its end")
    return GeneratorHealth(
        cpu_share=share,
        run_queue_share=waited,
        late_p99_ms=late_p99,
        saturated=bool(reasons) and reasons != ["generator died before its end"],
        why="; ".join(reasons),
    )


def _series(rows: Rows, elapsed: float) -> list[SecondPoint]:
    """One point a second. Counts of answers and errors by the second they came in, latency by the second it was due."""
    import numpy as np

    if not len(rows.end):
        return []
    n_seconds = int(max(np.ceil(elapsed), np.floor(rows.end.max() / 1e9) + 1))
    due = (rows.intended // 1e9).astype(int)
    ended = (rows.end // 1e9).astype(int)
    answered = (rows.outcome == OK) | (rows.outcome == HTTP_ERROR)
    sent = rows.sent[~_absent(rows.sent)]

    def per_second(seconds: Any) -> Any:
        return np.bincount(seconds, minlength=n_seconds)

    offered, achieved = per_second(due), per_second(ended[answered])
    ok, errors = per_second(ended[rows.outcome == OK]), per_second(ended[rows.outcome != OK])
    out = per_second((sent // 1e9).astype(int)).cumsum() - per_second(ended[~_absent(rows.sent)]).cumsum()
    judged = per_second(due[rows.judged])
    p50, p99 = _grouped_quantiles(due[rows.judged], rows.response_ms[rows.judged], n_seconds)
    widths = [min(1.0, elapsed - t) if elapsed - t > 0 else 1.0 for t in range(n_seconds)]
    return [
        SecondPoint(
            t=float(t),
            offered=float(offered[t] / widths[t]),
            achieved=float(achieved[t] / widths[t]),
            ok=int(ok[t]),
            errors=int(errors[t]),
            p50_ms=p50[t],
            p99_ms=p99[t],
            n=int(judged[t]),
            in_flight=int(out[t]),
        )
        for t in range(n_seconds)
    ]


def _grouped_quantiles(
    groups: Any, values: Any, n_groups: int
) -> tuple[list[float | None], list[float | None]]:
    """The p50 and p99 order statistics of each group; None for an empty one."""
    import numpy as np

    from seatrial.bench.quantiles import order_statistic

    ordered = values[np.lexsort((values, groups))]
    sizes = np.bincount(groups, minlength=n_groups)
    starts = np.concatenate(([0], np.cumsum(sizes)))

    def pick(p: float) -> list[float | None]:
        return [
            float(ordered[starts[g] + order_statistic(int(sizes[g]), p) - 1]) if sizes[g] else None
            for g in range(n_groups)
        ]

    return pick(0.5), pick(0.99)
