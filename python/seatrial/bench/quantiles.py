"""Exact order statistics and their binomial bounds. Pure functions over sorted numbers; no histogram, no interpolation.

The p quantile of n samples is the ceil(p n)-th smallest, p100 the maximum. The bounds follow MLPerf LoadGen's early
stopping: the upper one is the t-th largest, t the greatest number with P[Binomial(n, 1-p) <= t] <= 1 - confidence;
the lower one mirrors it. They hold for independent samples; correction for autocorrelation is not part of this rule.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from seatrial.records import Percentiles, Quantile

__all__ = ["CONFIDENCE", "QUANTILE_RULE", "least_samples", "order_statistic", "percentiles", "tail_count"]

CONFIDENCE = 0.99
QUANTILE_RULE = (
    "order statistics; binomial bounds, each side at confidence 0.99, samples taken as independent"
)

PROBABILITIES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def percentiles(milliseconds: Any) -> Percentiles:
    """The five quantiles, maximum and mean of an array of durations."""
    import numpy as np

    values = np.sort(np.asarray(milliseconds, dtype=np.float64))
    if not len(values):
        return Percentiles.empty()
    quantiles = {name: _quantile(values, p) for name, p in PROBABILITIES.items()}
    return Percentiles(n=len(values), max=float(values[-1]), mean=float(values.mean()), **quantiles)


def order_statistic(n: int, p: float) -> int:
    """The rank, from 1, of the p quantile among n sorted samples.

    >>> order_statistic(39, 0.99), order_statistic(100, 0.99), order_statistic(1000, 0.999)
    (39, 99, 999)
    """
    # p n of decimal p lands beside the whole number it means by rounding; a hair is not one more sample.
    return min(n, max(1, math.ceil(p * n - 1e-9 * max(1.0, p * n))))


def tail_count(n: int, q: float, confidence: float = CONFIDENCE) -> int:
    """The greatest t with P[Binomial(n, q) <= t] <= 1 - confidence; -1 when there is none.

    >>> tail_count(10_000, 0.01), tail_count(60_000, 0.01), tail_count(458, 0.01), tail_count(459, 0.01)
    (77, 543, -1, 0)
    """
    import numpy as np

    if n == 0:
        return -1
    deviation = math.sqrt(n * q * (1 - q))
    # Below twelve deviations the tail is under 1e-30 and cannot matter.
    first = max(0, math.floor(n * q - 12 * deviation - 20))
    counts = np.arange(first, math.ceil(n * q) + 1, dtype=np.float64)
    steps = np.log((n - counts[:-1]) / (counts[:-1] + 1)) + math.log(q) - math.log1p(-q)
    start = math.lgamma(n + 1) - math.lgamma(first + 1) - math.lgamma(n - first + 1)
    start += first * math.log(q) + (n - first) * math.log1p(-q)
    masses = np.exp(start + np.concatenate(([0.0], np.cumsum(steps))))
    return first + int(np.searchsorted(np.cumsum(masses), 1 - confidence, side="right")) - 1


@lru_cache(maxsize=64)
def least_samples(p: float, confidence: float = CONFIDENCE) -> int:
    """The fewest samples whose p quantile has an upper bound.

    >>> [least_samples(p) for p in (0.5, 0.9, 0.95, 0.99, 0.999)]
    [11, 64, 130, 662, 6636]
    """
    low, high = 1, 2
    while tail_count(high, 1 - p, confidence) < 1:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail_count(middle, 1 - p, confidence) >= 1 else (middle, high)
    return high


def _quantile(values: Any, p: float) -> Quantile:
    n = len(values)
    value = float(values[order_statistic(n, p) - 1])
    above, below = tail_count(n, 1 - p), tail_count(n, p)
    if n < least_samples(p) or above < 1 or below < 1:
        return Quantile(n=n, value=value, needs=least_samples(p))
    return Quantile(n=n, value=value, lower=float(values[below - 1]), upper=float(values[n - above]))
