"""Set-up of 01-movie-ctr: MovieLens rows are not ours to hand on, so they are taken from the recbole wheel.

Writes samples/, vocab/ and evaluation/labels.csv; the scores they are joined with are committed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from making.movie_ctr.features import N_TEST, N_TRAIN, N_VALID, Rows, build
from making.movie_ctr.raw import raw_instances
from making.wire import Tensors, golden, instances, request, write_lines

__all__ = ["prepare"]

N_REQUESTS, N_GOLDEN = 1000, 50
TOLERANCE = 1e-5


def prepare(folder: Path) -> None:
    """Writes the rows of the test period and the vocabularies into the package."""
    rows, vocabularies = build()
    test = rows.part(N_TRAIN + N_VALID, N_TRAIN + N_VALID + N_TEST)
    scores = np.loadtxt(folder / "evaluation" / "scores.csv", skiprows=1, dtype=np.float32)
    samples = folder / "samples"
    write_lines(
        samples / "requests.jsonl",
        (request(_inputs(test, i)) for i in range(0, N_TEST, N_TEST // N_REQUESTS)),
    )
    write_lines(
        samples / "golden.jsonl",
        (
            golden(_inputs(test, i), {"score": scores[i].reshape(1, 1)}, TOLERANCE)
            for i in range(0, N_TEST, N_TEST // N_GOLDEN)
        ),
    )
    places = range(N_TRAIN + N_VALID, N_TRAIN + N_VALID + N_TEST, N_TEST // N_REQUESTS)
    write_lines(samples / "features.jsonl", (instances([row]) for row in raw_instances(rows, places)))
    for name, words in vocabularies._asdict().items():
        _write(folder / "vocab" / f"{name}.txt", ["unknown", *words])
    _write(folder / "evaluation" / "labels.csv", ["liked,user,new_user,new_film", *_labels(test)])


def _inputs(rows: Rows, i: int) -> Tensors:
    return {name: getattr(rows, name)[i : i + 1] for name in ("ids", "genres", "history")}


def _labels(rows: Rows) -> list[str]:
    return [
        f"{int(liked)},{user},{int(ids[0] == 0)},{int(ids[1] == 0)}"
        for liked, user, ids in zip(rows.label, rows.user, rows.ids, strict=True)
    ]


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
