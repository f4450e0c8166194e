"""Offline measures of a click model in numpy: AUC with intervals, log loss, calibration."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["auc", "auc_interval_by_user", "auc_interval_delong", "calibration_error", "log_loss"]

Z95 = 1.959963984540054


def auc(label: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Chance that a liked row scores above a disliked one, ties counting half (Mann-Whitney).

    >>> auc(np.array([0, 1, 1]), np.array([0.1, 0.1, 0.9]))
    0.75
    """
    weight = np.ones(len(label)) if weight is None else weight
    _, place = np.unique(score, return_inverse=True)
    liked = np.bincount(place, weight * (label > 0))
    other = np.bincount(place, weight * (label <= 0))
    below = np.cumsum(other) - other
    return float((liked * (below + other / 2)).sum() / (liked.sum() * other.sum()))


def auc_interval_delong(label: np.ndarray, score: np.ndarray) -> tuple[float, float]:
    """95 % interval after DeLong et al. (1988), rows taken as independent."""
    liked, other = np.sort(score[label > 0]), np.sort(score[label <= 0])
    above = _share_below(score[label > 0], other)
    under = 1 - _share_below(score[label <= 0], liked)
    error = math.sqrt(above.var(ddof=1) / len(liked) + under.var(ddof=1) / len(other))
    centre = float(above.mean())
    return centre - Z95 * error, centre + Z95 * error


def auc_interval_by_user(
    label: np.ndarray, score: np.ndarray, user: np.ndarray, seed: int, n: int = 2000
) -> tuple[float, float]:
    """95 % bootstrap interval with whole users drawn, because a person's rows are alike."""
    rng = np.random.default_rng(seed)
    _, member = np.unique(user, return_inverse=True)
    n_users = int(member.max()) + 1
    drawn = []
    for _ in range(n):
        times = np.bincount(rng.integers(0, n_users, n_users), minlength=n_users)
        drawn.append(auc(label, score, times[member].astype(float)))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def log_loss(label: np.ndarray, score: np.ndarray) -> float:
    """Mean negative log likelihood in nats."""
    score = np.clip(score.astype(float), 1e-7, 1 - 1e-7)
    return float(-np.where(label > 0, np.log(score), np.log(1 - score)).mean())


def calibration_error(label: np.ndarray, score: np.ndarray, bins: int = 10) -> float:
    """Mean distance of predicted and observed rate over bins of equally many rows, weighted by rows."""
    parts = np.array_split(np.argsort(score, kind="stable"), bins)
    gaps = [abs(score[p].mean() - label[p].mean()) * len(p) for p in parts]
    return float(sum(gaps) / len(label))


def _share_below(values: np.ndarray, sorted_others: np.ndarray) -> np.ndarray:
    low = np.searchsorted(sorted_others, values, side="left")
    high = np.searchsorted(sorted_others, values, side="right")
    return (low + high) / (2 * len(sorted_others))
