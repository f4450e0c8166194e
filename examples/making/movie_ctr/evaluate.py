"""Writes the evaluation of the click model: stored scores, and metrics.yaml with intervals and slices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml

from making.movie_ctr.features import Rows
from making.movie_ctr.measures import (
    auc,
    auc_interval_by_user,
    auc_interval_delong,
    calibration_error,
    log_loss,
)

__all__ = ["metrics", "slices", "write_evaluation"]

BOOTSTRAP_SEED = 7
DIGITS = 4


def write_evaluation(folder: Path, test: Rows, scores: dict[str, np.ndarray]) -> None:
    """Stores the first entry's scores row by row, and the metrics of all."""
    folder.mkdir(parents=True, exist_ok=True)
    (name, model), *others = scores.items()
    (folder / "scores.csv").write_text("score\n" + "".join(f"{s:.9g}\n" for s in model))
    document = {
        "part": "the last 10,000 of 100,000 interactions by time, none of them trained on",
        "label": "rating of 4 or 5 stars",
        "model": name,
        "metrics": metrics(test, model),
        "slices": {k: metrics_of_slice(test, model, mask) for k, mask in slices(test).items()},
        "baselines": {k: metrics(test, s) for k, s in others},
        "advantage": {k: advantage(test, model, s) for k, s in others},
    }
    text = yaml.safe_dump(document, sort_keys=False, width=100)
    (folder / "metrics.yaml").write_text(text)
    print(text)


def metrics(rows: Rows, score: np.ndarray) -> dict[str, object]:
    """All figures of one model; intervals are 95 %, the first with whole users drawn."""
    return {
        "n_rows": len(score),
        "n_users": len(np.unique(rows.user)),
        "liked_share": _short(rows.label.mean()),
        "auc": _short(auc(rows.label, score)),
        "auc_95_by_user": [
            _short(v) for v in auc_interval_by_user(rows.label, score, rows.user, BOOTSTRAP_SEED)
        ],
        "auc_95_delong": [_short(v) for v in auc_interval_delong(rows.label, score)],
        "log_loss": _short(log_loss(rows.label, score)),
        "calibration_error": _short(calibration_error(rows.label, score)),
    }


def metrics_of_slice(rows: Rows, score: np.ndarray, mask: np.ndarray) -> dict[str, object]:
    """The figures of a part of the rows."""
    return metrics(Rows(*(getattr(rows, name)[mask] for name in rows.__dataclass_fields__)), score[mask])


def slices(rows: Rows) -> dict[str, np.ndarray]:
    """Row masks of the parts that a reader asks about first."""
    few = rows.history[:, 1] <= 0.2
    return {
        "known_users": rows.ids[:, 0] > 0,
        "new_users": rows.ids[:, 0] == 0,
        "new_users_up_to_5_ratings": (rows.ids[:, 0] == 0) & few,
        "new_films": rows.ids[:, 1] == 0,
        "women": rows.ids[:, 3] == 2,
        "men": rows.ids[:, 3] == 1,
    }


def advantage(rows: Rows, score: np.ndarray, other: np.ndarray) -> dict[str, object]:
    """How much higher the AUC is, with a paired interval by user."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    _, member = np.unique(rows.user, return_inverse=True)
    n = int(member.max()) + 1
    drawn = []
    for _ in range(2000):
        times = np.bincount(rng.integers(0, n, n), minlength=n)[member].astype(float)
        drawn.append(auc(rows.label, score, times) - auc(rows.label, other, times))
    low, high = np.quantile(drawn, [0.025, 0.975])
    gap = auc(rows.label, score) - auc(rows.label, other)
    return {"auc": _short(gap), "auc_95_by_user": [_short(low), _short(high)]}


def _short(value: float) -> float:
    return round(float(value), DIGITS)
