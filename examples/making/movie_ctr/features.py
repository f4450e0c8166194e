"""MovieLens-100k rows to model inputs: the one definition that training and set-up share.

Only exact arithmetic (integers, and division rounded to four places), so that every machine gets equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from making.wheel import wheel_file

__all__ = [
    "FIELDS",
    "GENRES",
    "HISTORY",
    "N_TEST",
    "N_TRAIN",
    "N_VALID",
    "Rows",
    "Vocabularies",
    "build",
    "ordered_tables",
]

WHEEL, VERSION = "recbole", "1.2.1"
FOLDER = "recbole/dataset_example/ml-100k/ml-100k"

N_TRAIN, N_VALID, N_TEST = 80_000, 10_000, 10_000
LIKED = 4.0

# Share of liked films in the training part, and how many ratings it weighs against a person's or film's own;
# likewise the person's own rate against the rate in one genre.
PRIOR, PRIOR_WEIGHT, TASTE_WEIGHT = 0.55, 20, 5

GENRES = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western", "unknown",
)  # fmt: skip
OCCUPATIONS = (
    "administrator", "artist", "doctor", "educator", "engineer", "entertainment", "executive", "healthcare",
    "homemaker", "lawyer", "librarian", "marketing", "none", "other", "programmer", "retired", "salesman",
    "scientist", "student", "technician", "writer",
)  # fmt: skip
AGE_EDGES = (18, 25, 35, 45, 50, 56)
YEAR_EDGES = (1940, 1950, 1960, 1970, 1980, 1985, 1990, 1991, 1992, 1993, 1994, 1995, 1996, 1997, 1998)
HISTORY = (
    "user_like_rate", "user_weight", "item_like_rate", "item_weight", "taste_like_rate", "taste_weight",
)  # fmt: skip

# Field -> number of ids, 0 being `unknown` in each. Users and items are counted from the training part.
FIELDS = {
    "user": None,
    "item": None,
    "age": len(AGE_EDGES) + 2,
    "gender": 3,
    "occupation": len(OCCUPATIONS) + 1,
    "region": 11,
    "release_year": len(YEAR_EDGES) + 2,
    "hour": 25,
    "weekday": 8,
}


class Vocabularies(NamedTuple):
    """Users and items of the training part in sorted order; the id is the position plus one."""

    user: list[str]
    item: list[str]

    def sizes(self) -> list[int]:
        """Number of ids of each field, `unknown` included."""
        known = {"user": len(self.user) + 1, "item": len(self.item) + 1}
        return [known.get(name) or size or 0 for name, size in FIELDS.items()]


@dataclass(frozen=True)
class Rows:
    """Model inputs and labels of all interactions, oldest first."""

    ids: np.ndarray
    genres: np.ndarray
    history: np.ndarray
    label: np.ndarray
    user: np.ndarray
    item: np.ndarray

    def part(self, start: int, stop: int) -> Rows:
        """The rows from `start` up to `stop`."""
        return Rows(*(getattr(self, name)[start:stop] for name in self.__dataclass_fields__))


def build() -> tuple[Rows, Vocabularies]:
    """All rows of the installed wheel, with the vocabularies of the training part."""
    inter, users, items = ordered_tables()
    genres = {key: [g for g in GENRES if g in row[3].split()] for key, row in items.items()}
    train = inter[:N_TRAIN]
    vocabularies = Vocabularies(*(sorted({r[c] for r in train}, key=int) for c in (0, 1)))
    known = [{key: i + 1 for i, key in enumerate(words)} for words in vocabularies]
    ids = [
        [known[0].get(u, 0), known[1].get(i, 0), *_person(users[u]), _year(items[i][2]), *_clock(t)]
        for u, i, _, t in inter
    ]
    label = np.array([float(r[2]) >= LIKED for r in inter], dtype=np.float32)
    return Rows(
        ids=np.array(ids, dtype=np.int64),
        genres=np.array([[float(g in genres[r[1]]) for g in GENRES] for r in inter], dtype=np.float32),
        history=_history(inter, genres, label),
        label=label,
        user=np.array([int(r[0]) for r in inter]),
        item=np.array([int(r[1]) for r in inter]),
    ), vocabularies


def ordered_tables() -> tuple[list[list[str]], dict[str, list[str]], dict[str, list[str]]]:
    """The wheel's interactions, oldest first, and its users and items by id."""
    inter = _table("inter")
    order = sorted(range(len(inter)), key=lambda i: (int(float(inter[i][3])), i))
    users = {row[0]: row for row in _table("user")}
    items = {row[0]: row for row in _table("item")}
    return [inter[i] for i in order], users, items


def _table(kind: str) -> list[list[str]]:
    path: Path = wheel_file(WHEEL, VERSION, f"{FOLDER}.{kind}")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


def _bucket(value: int, edges: tuple[int, ...]) -> int:
    return 1 + sum(value >= edge for edge in edges)


def _person(row: list[str]) -> list[int]:
    _, age, gender, occupation, zip_code = row
    region = int(zip_code[0]) + 1 if zip_code[:1].isdigit() else 0
    return [_bucket(int(age), AGE_EDGES), "MF".index(gender) + 1, OCCUPATIONS.index(occupation) + 1, region]


def _year(text: str) -> int:
    return _bucket(int(text), YEAR_EDGES) if text.isdigit() else 0


def _clock(timestamp: str) -> list[int]:
    """Hour and weekday in UTC; 1 January 1970 was a Thursday, Monday is 1."""
    seconds = int(float(timestamp))
    return [seconds // 3600 % 24 + 1, (seconds // 86400 + 3) % 7 + 1]


class _Seen:
    """Likes and ratings so far, by user, by film, and by user and genre."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], list[int]] = {}

    def learn(self, user: str, item: str, genres: list[str], liked: int) -> None:
        for key in (("user", user), ("item", item), *(("taste", user, g) for g in genres)):
            counts = self.counts.setdefault(key, [0, 0])
            counts[0] += liked
            counts[1] += 1

    def figures(self, user: str, item: str, genres: list[str]) -> list[float]:
        """The `HISTORY` of one request; a rate leans on its prior the more, the fewer ratings there are."""
        person = self._rate(("user", user), PRIOR, PRIOR_WEIGHT)
        film = self._rate(("item", item), PRIOR, PRIOR_WEIGHT)
        tastes = [self._rate(("taste", user, g), person[0], TASTE_WEIGHT) for g in genres]
        taste = [sum(column) / len(tastes) for column in zip(*tastes, strict=True)]
        return [round(figure, 4) for figure in (*person, *film, *taste)]

    def _rate(self, key: tuple[str, ...], prior: float, strength: int) -> tuple[float, float]:
        likes, n = self.counts.get(key, (0, 0))
        return (likes + prior * strength) / (n + strength), n / (n + strength)


def _history(inter: list[list[str]], genres: dict[str, list[str]], label: np.ndarray) -> np.ndarray:
    """What was known of the person and the film strictly before the second of the request."""
    seen, out = _Seen(), []
    waiting: list[tuple[str, str, list[str], int]] = []
    now = ""
    for (user, item, _, second), liked in zip(inter, label, strict=True):
        if second != now:
            for row in waiting:
                seen.learn(*row)
            waiting, now = [], second
        out.append(seen.figures(user, item, genres[item]))
        waiting.append((user, item, genres[item], int(liked)))
    return np.array(out, dtype=np.float32)
