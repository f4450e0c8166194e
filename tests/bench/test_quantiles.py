"""Order statistics and their bounds, held against SciPy and the published numbers of the LoadGen rule."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from seatrial.bench import percentiles
from seatrial.bench.quantiles import least_samples, order_statistic, tail_count

PROBABILITIES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


@pytest.mark.parametrize("q", [0.5, 0.1, 0.05, 0.01, 0.001, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 10, 11, 39, 458, 459, 661, 662, 10_000, 60_000, 3_000_000])
def test_the_tail_count_is_the_binomial_quantile(n: int, q: float) -> None:
    t = tail_count(n, q)
    assert stats.binom.cdf(t, n, q) <= 0.01 if t >= 0 else True
    assert stats.binom.cdf(t + 1, n, q) > 0.01


def test_published_numbers_of_the_rule() -> None:
    assert [least_samples(p) for p in (0.5, 0.9, 0.95, 0.99, 0.999)] == [11, 64, 130, 662, 6636]
    assert tail_count(10_000, 0.01) == 77
    assert tail_count(60_000, 0.01) == 543
    assert (tail_count(458, 0.01), tail_count(459, 0.01)) == (-1, 0)
    assert least_samples(0.99, 0.95) == 473
    assert least_samples(0.999, 0.95) == 4742
    # The same through the incomplete beta function, as LoadGen computes it: P[Bin(662, 0.01) <= 1] = I_0.99(661, 2).
    assert special.betainc(661, 2, 0.99) <= 0.01 < special.betainc(660, 2, 0.99)


@pytest.mark.parametrize("n", [*range(1, 41), 99, 100, 101, 199, 200, 999, 1000, 1001, 20_000, 10**7])
@pytest.mark.parametrize("p", ["0.5", "0.9", "0.95", "0.99", "0.999"])
def test_the_rank_is_the_exact_ceiling(n: int, p: str) -> None:
    exact = -(-(Fraction(p) * n) // 1)
    assert order_statistic(n, float(p)) == max(1, exact)


@pytest.mark.parametrize("n", [1, 2, 10, 39, 100, 662, 6636, 12_345])
def test_quantiles_equal_numpys_inverted_cdf(n: int) -> None:
    values = np.random.default_rng(n).lognormal(size=n)
    found = percentiles(values)
    for name, p in PROBABILITIES.items():
        assert found.quantiles[name].value == np.quantile(values, p, method="inverted_cdf"), f"{name}, n={n}"
    assert (found.n, found.max) == (n, values.max())


def test_p100_is_the_maximum_and_no_quantile_exceeds_it() -> None:
    # B03: 39 requests; one tool showed 600 above a maximum of 596, another 58459 as 58000.
    values = [596.0, 58.459, *range(1, 38)]
    found = percentiles(values)
    assert found.n == 39
    assert found.max == found.p99.value == found.p999.value == 596.0
    assert found.p95.value == 58.459
    assert not found.p99.certified
    assert found.p99.needs == 662
    assert found.p50.certified
    assert "n=39" in str(found.p99)


def test_bounds_cover_the_true_quantile() -> None:
    random = np.random.default_rng(3)
    truth, runs, missed = -np.log(0.01), 2000, 0
    for _ in range(runs):
        p99 = percentiles(random.exponential(size=2000)).p99
        assert p99.lower is not None
        assert p99.upper is not None
        missed += not p99.lower <= truth <= p99.upper
    # Each side misses in 1 % at most; 2 % of 2000 is 40, with a standard deviation of 6.
    assert missed <= 40 + 4 * 6, f"{missed} of {runs} runs, seed 3"


def test_no_samples_are_no_figures() -> None:
    empty = percentiles([])
    assert (empty.n, empty.max, empty.p99.value, empty.p99.needs) == (0, None, None, 662)


def test_the_bounds_are_the_published_ranks() -> None:
    """Of 10,000 samples the 77th largest bounds the p99 from above (the rule's own number), the lower likewise."""
    p99 = percentiles(np.arange(1, 10_001)).p99
    assert p99.upper == 10_001 - 77
    assert p99.lower == tail_count(10_000, 0.99)
