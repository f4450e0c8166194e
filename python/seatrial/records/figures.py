"""Measured figures: quantiles that always carry their sample size, and the summary of one load phase.

Only the types and their texts live here; bench computes the values.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "GeneratorHealth",
    "LoadSummary",
    "Percentiles",
    "Quantile",
    "QuantileName",
    "SecondPoint",
    "StageTime",
    "Words",
    "figure_text",
]

QuantileName = Literal["p50", "p90", "p95", "p99", "p999"]


class Words(BaseModel):
    """Base of everything in a record: unknown keys, NaN and later changes are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def figure_text(value: float) -> str:
    """Three significant digits, thousands separated, no exponent.

    >>> figure_text(12.4444), figure_text(0.1), figure_text(123456.7), figure_text(0.0)
    ('12.4', '0.100', '123,457', '0')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    return f"{value:#.3g}" if size >= 1e-4 else f"{value:.6f}"


class Quantile(Words):
    """One quantile in milliseconds together with its sample size and what is known about its error.

    Certified means that `lower` and `upper`, the order statistics of the interval, exist. Otherwise `needs`
    says how many samples it would take.
    """

    n: int = Field(ge=0)
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    needs: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _consistent(self) -> Quantile:
        if (self.lower is None) != (self.upper is None):
            raise ValueError("an interval needs both `lower` and `upper`")
        if self.value is None and self.lower is not None:
            raise ValueError("an interval without a value")
        if self.value is not None and self.n == 0:
            raise ValueError("a value from no samples")
        if self.lower is None and self.needs is None:
            raise ValueError("a quantile without an interval says in `needs` how many samples it would take")
        return self

    @property
    def certified(self) -> bool:
        """Whether the interval exists."""
        return self.upper is not None

    def __str__(self) -> str:
        """Never without the sample size.

        >>> str(Quantile(n=6000, value=12.4, lower=11.9, upper=13.0))
        '12.4 ms [11.9, 13.0], n=6,000'
        >>> str(Quantile(n=120, value=12.4, needs=662))
        '12.4 ms (not certified: n=120, needs 662)'
        >>> str(Quantile(n=0, needs=11))
        'not measured (n=0)'
        """
        if self.value is None:
            return f"not measured (n={self.n:,})"
        value = f"{figure_text(self.value)} ms"
        if self.lower is None or self.upper is None:
            return f"{value} (not certified: n={self.n:,}, needs {self.needs:,})"
        return f"{value} [{figure_text(self.lower)}, {figure_text(self.upper)}], n={self.n:,}"


class Percentiles(Words):
    """Order statistics of one set of durations in milliseconds; all quantiles share the sample size `n`."""

    n: int = Field(ge=0)
    p50: Quantile
    p90: Quantile
    p95: Quantile
    p99: Quantile
    p999: Quantile
    max: float | None = None
    mean: float | None = None
    n_effective: float | None = None
    """Sample size after correction for autocorrelation, when it was estimated."""

    @model_validator(mode="after")
    def _one_sample(self) -> Percentiles:
        if any(q.n != self.n for q in self.quantiles.values()):
            raise ValueError(f"the quantiles are not from the same {self.n} samples")
        return self

    @property
    def quantiles(self) -> dict[QuantileName, Quantile]:
        """The five quantiles by name, in order."""
        return {"p50": self.p50, "p90": self.p90, "p95": self.p95, "p99": self.p99, "p999": self.p999}

    def text(self, figure: QuantileName | Literal["max", "mean"]) -> str:
        """One figure with unit, interval and sample size, as in `Quantile.__str__`."""
        if figure == "max" or figure == "mean":
            value = self.max if figure == "max" else self.mean
            return (
                f"not measured (n={self.n:,})" if value is None else f"{figure_text(value)} ms, n={self.n:,}"
            )
        return str(self.quantiles[figure])

    @classmethod
    def empty(cls) -> Percentiles:
        """No sample at all; `needs` is the least number that certifies a quantile at confidence 0.99."""
        needs = {"p50": 11, "p90": 64, "p95": 130, "p99": 662, "p999": 6636}
        p50, p90, p95, p99, p999 = (Quantile(n=0, needs=k) for k in needs.values())
        return cls(n=0, p50=p50, p90=p90, p95=p95, p99=p99, p999=p999)


class StageTime(Words):
    """Time in one stage of the server, in milliseconds, over `n` answered requests."""

    mean: float
    p50: float
    p99: float
    n: int = Field(gt=0)


class GeneratorHealth(Words):
    """Whether the load generator itself kept up. A saturated generator carries no verdict."""

    cpu_share: float | None = None
    run_queue_share: float | None = None
    late_p99_ms: float | None = None
    saturated: bool = False
    why: str = ""


class SecondPoint(Words):
    """One second of a phase; `t` is seconds from the start of the phase. Rates are per second.

    `n` is the sample size of `p50_ms` and `p99_ms`, the responses of the requests that were due in this second.
    """

    t: float
    offered: float
    achieved: float
    ok: int
    errors: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    n: int | None = None
    in_flight: int

    @model_validator(mode="after")
    def _sample_size(self) -> SecondPoint:
        if self.n is None and (self.p50_ms is not None or self.p99_ms is not None):
            raise ValueError("a percentile of a second without its sample size `n`")
        return self


class LoadSummary(Words):
    """What one run of the generator found.

    `response = end - intended` is judged, `service = end - sent` stands beside it.
    """

    mode: Literal["open", "closed"]
    arrivals: str
    """`poisson`, `constant`, `trace`, or `none` for a closed loop."""
    rate_per_s: float | None
    duration_s: float
    seed: int | None
    intended: int
    sent: int
    completed: int
    ok: int
    errors: dict[str, int]
    """By kind: http_error, timeout, connect, reset, protocol."""
    not_sent: int
    cut_short: bool = False
    offered_per_s: float
    achieved_per_s: float
    goodput_per_s: float
    """Right answers inside the latency budget, per second; all right answers where there is no budget."""
    response_ms: Percentiles
    service_ms: Percentiles
    late_ms: Percentiles
    stages_ms: dict[str, StageTime] = Field(default_factory=dict)
    generator: GeneratorHealth
    series: list[SecondPoint] = Field(default_factory=list)
    bytes_in: int
    bytes_out: int
