"""The figures on the cards are those of metrics.yaml, and those follow from the stored predictions."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

HALF_OF_LAST_DIGIT = 5.1e-5


def test_movie_auc_is_the_mann_whitney_statistic_of_the_stored_scores(prepared: Path) -> None:
    labels, scores = _movie(prepared)
    figures = _metrics(prepared / "01-movie-ctr")
    masks = {
        "known_users": labels[:, 2] == 0,
        "new_users": labels[:, 2] == 1,
        "new_films": labels[:, 3] == 1,
    }
    _agrees(figures["metrics"]["auc"], _auc(labels[:, 0], scores))
    for name, mask in masks.items():
        _agrees(figures["slices"][name]["auc"], _auc(labels[mask, 0], scores[mask]))
        assert figures["slices"][name]["n_rows"] == mask.sum()


def test_movie_interval_is_that_of_users_drawn_with_replacement(prepared: Path) -> None:
    labels, scores = _movie(prepared)
    rng = np.random.default_rng(99)
    members = [np.flatnonzero(labels[:, 1] == user) for user in np.unique(labels[:, 1])]
    drawn = []
    for _ in range(300):
        rows = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        drawn.append(_auc(labels[rows, 0], scores[rows]))
    low, high = _metrics(prepared / "01-movie-ctr")["metrics"]["auc_95_by_user"]
    again = np.quantile(drawn, [0.025, 0.975])
    assert np.allclose([low, high], again, atol=0.006), (
        f"seed 99, 300 drawings of {len(members)} users: {again}"
    )


def test_movie_delong_interval_has_the_variance_of_its_placements(prepared: Path) -> None:
    labels, scores = _movie(prepared)
    liked, other = scores[labels[:, 0] == 1], scores[labels[:, 0] == 0]
    above = np.array([(s > other).mean() + (s == other).mean() / 2 for s in liked])
    below = np.array([(liked > s).mean() + (liked == s).mean() / 2 for s in other])
    error = math.sqrt(above.var(ddof=1) / len(liked) + below.var(ddof=1) / len(other))
    low, high = _metrics(prepared / "01-movie-ctr")["metrics"]["auc_95_delong"]
    _agrees(low, above.mean() - stats.norm.ppf(0.975) * error)
    _agrees(high, above.mean() + stats.norm.ppf(0.975) * error)


def test_movie_log_loss_and_calibration_follow_from_the_scores(prepared: Path) -> None:
    labels, scores = _movie(prepared)
    figures = _metrics(prepared / "01-movie-ctr")["metrics"]
    liked = labels[:, 0]
    _agrees(figures["log_loss"], -np.mean(liked * np.log(scores) + (1 - liked) * np.log(1 - scores)))
    order = np.argsort(scores, kind="stable").reshape(10, -1)
    _agrees(figures["calibration_error"], np.abs(scores[order].mean(1) - liked[order].mean(1)).mean())


def test_movie_model_beats_the_rate_of_the_film_beyond_chance(prepared: Path) -> None:
    advantage = _metrics(prepared / "01-movie-ctr")["advantage"]
    assert advantage["item_rate_so_far"]["auc_95_by_user"][0] > 0
    assert advantage["logistic_regression_without_history"]["auc_95_by_user"][0] > 0


def test_file_type_accuracy_follows_from_the_stored_predictions(prepared: Path) -> None:
    with (prepared / "02-file-type/evaluation/predictions.csv").open() as stream:
        rows = [r for r in csv.DictReader(stream) if r["promised"]]
    figures = _metrics(prepared / "02-file-type")
    _check_share(figures["metrics"], [r["promised"] == r["found"] for r in rows])
    for kind, slice_figures in figures["slices"].items():
        _check_share(slice_figures, [r["found"] == kind for r in rows if r["promised"] == kind])


def test_embedding_recall_follows_from_the_stored_ranks(prepared: Path) -> None:
    ranks = np.loadtxt(prepared / "03-text-embedding/evaluation/ranks.csv", skiprows=1)
    figures = _metrics(prepared / "03-text-embedding")["metrics"]
    assert figures["n_queries"] == len(ranks)
    _agrees(figures["recall_at_1"], (ranks == 1).mean())
    _agrees(figures["recall_at_10"], (ranks <= 10).mean())
    _agrees(figures["mean_reciprocal_rank"], (1 / ranks).mean())


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("01-movie-ctr", ("metrics", "slices", "baselines", "advantage")),
        ("02-file-type", ("metrics", "slices")),
        ("03-text-embedding", ("metrics", "advantage")),
    ],
)
def test_the_card_holds_the_figures_of_the_evaluation(
    prepared: Path, name: str, keys: tuple[str, ...]
) -> None:
    card = (prepared / name / "card.md").read_text()
    section = card.split("## Offline evaluation")[1].split("\n## ")[0]
    figures = _metrics(prepared / name)
    on_the_card = ("auc", "auc_95_by_user", "accuracy", "accuracy_95", "recall_at_1", "mean_reciprocal_rank")
    wanted = [f for key in keys for f in _leaves(figures[key], on_the_card)]
    assert wanted
    missing = [f"{v:.4f}" for v in wanted if f"{v:.4f}" not in section]
    assert missing == []
    known = {f"{v:.4f}" for v in _leaves(figures, None)}
    assert [v for v in re.findall(r"-?\b\d\.\d{4}\b", section) if v not in known] == []


def _leaves(node: dict[str, Any], keys: tuple[str, ...] | None) -> list[float]:
    """The figures under these keys, or all of them."""
    found: list[float] = []
    for key, value in node.items():
        if isinstance(value, dict):
            found += _leaves(value, keys)
        elif keys is None or key in keys:
            found += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, float)]
    return found


def _movie(prepared: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    folder = prepared / "01-movie-ctr/evaluation"
    labels = np.loadtxt(folder / "labels.csv", delimiter=",", skiprows=1)
    return labels, np.loadtxt(folder / "scores.csv", skiprows=1)


def _metrics(package: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((package / "evaluation/metrics.yaml").read_text())
    return loaded


def _auc(label: np.ndarray[Any, Any], score: np.ndarray[Any, Any]) -> float:
    liked, other = score[label == 1], score[label == 0]
    return float(stats.mannwhitneyu(liked, other).statistic / (len(liked) * len(other)))


def _check_share(figures: dict[str, Any], right: list[bool]) -> None:
    assert figures["n_files"] == len(right)
    _agrees(figures["accuracy"], sum(right) / len(right))
    interval = stats.binomtest(sum(right), len(right)).proportion_ci(method="wilson")
    _agrees(figures["accuracy_95"][0], interval.low)
    _agrees(figures["accuracy_95"][1], interval.high)


def _agrees(stated: float, computed: float) -> None:
    assert abs(stated - computed) <= HALF_OF_LAST_DIGIT, f"stated {stated}, computed {computed}"
