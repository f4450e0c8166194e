"""What the click model must beat: the film's rate alone, and a logistic regression on the same inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from making.movie_ctr.features import HISTORY, PRIOR, PRIOR_WEIGHT, Rows
from making.movie_ctr.measures import log_loss

__all__ = ["baseline_scores"]

STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # inverse regularisation; the validation part chooses


def baseline_scores(*parts: Rows) -> dict[str, np.ndarray]:
    """Scores of the test rows by baseline, from the training, validation and test part."""
    train, _, test = parts
    return {
        "item_rate_of_training": _item_rate(train, test),
        "item_rate_so_far": test.history[:, HISTORY.index("item_like_rate")],
        "logistic_regression_without_history": _logistic(
            *(replace(p, history=p.history[:, :0]) for p in parts)
        ),
        "logistic_regression": _logistic(*parts),
    }


def _item_rate(train: Rows, test: Rows) -> np.ndarray:
    n = np.bincount(train.ids[:, 1], minlength=int(test.ids[:, 1].max()) + 1)
    likes = np.bincount(train.ids[:, 1], train.label, minlength=len(n))
    return ((likes + PRIOR * PRIOR_WEIGHT) / (n + PRIOR_WEIGHT))[test.ids[:, 1]]


def _logistic(train: Rows, valid: Rows, test: Rows) -> np.ndarray:
    encoder = OneHotEncoder(handle_unknown="ignore").fit(train.ids)

    def columns(rows: Rows) -> sparse.csr_matrix:
        return sparse.hstack([encoder.transform(rows.ids), rows.genres, rows.history]).tocsr()

    fitted = [LogisticRegression(C=c, max_iter=2000).fit(columns(train), train.label) for c in STRENGTHS]
    best = min(fitted, key=lambda m: log_loss(valid.label, m.predict_proba(columns(valid))[:, 1]))
    return best.predict_proba(columns(test))[:, 1]
