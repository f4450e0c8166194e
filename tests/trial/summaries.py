"""Builds load summaries for the pure parts of the trial; used by tests only."""

from __future__ import annotations

from typing import Any

from seatrial.records import GeneratorHealth, LoadSummary, Percentiles, Quantile, StageTime

STAGES = {"queue": 9.0, "run": 2.0}
NEEDS = {"p50": 11, "p90": 64, "p95": 130, "p99": 662, "p999": 6636}


def percentiles(n: int, **values: float) -> Percentiles:
    """Quantiles with an interval of one tenth around each value where `n` is large enough."""
    quantiles = {}
    for name, needs in NEEDS.items():
        value = values.get(name, 1.0)
        if n >= needs:
            quantiles[name] = Quantile(n=n, value=value, lower=value * 0.9, upper=value * 1.1)
        else:
            quantiles[name] = Quantile(n=n, value=value if n else None, needs=needs)
    return Percentiles(n=n, max=max(values.values(), default=1.0) if n else None, **quantiles)


def load(
    *, rate: float = 100, n: int = 2000, ok: int | None = None, saturated: bool = False, **changes: Any
) -> LoadSummary:
    """A phase of `n` requests at `rate`; quantiles of the response by name in `changes`."""
    quantiles = {name: changes.pop(name) for name in NEEDS if name in changes}
    right = n if ok is None else ok
    figures: dict[str, Any] = {
        "mode": "open",
        "arrivals": "poisson",
        "rate_per_s": rate,
        "duration_s": n / rate,
        "seed": 1,
        "intended": n,
        "sent": n,
        "completed": n,
        "ok": right,
        "errors": {"http_error": n - right} if right < n else {},
        "not_sent": 0,
        "offered_per_s": rate,
        "achieved_per_s": rate,
        "goodput_per_s": rate * right / n if n else 0,
        "response_ms": percentiles(n, **quantiles),
        "service_ms": percentiles(n, **quantiles),
        "late_ms": percentiles(n),
        "stages_ms": {name: StageTime(mean=1, p50=1, p99=p99, n=n) for name, p99 in STAGES.items()} if n else {},
        "generator": GeneratorHealth(cpu_share=0.1, saturated=saturated, why="p99 late 9 ms" if saturated else ""),
        "bytes_in": 0,
        "bytes_out": 0,
    }  # fmt: skip
    return LoadSummary(**(figures | changes))
