"""MovieLens-100k rows as a client of named features would send them: nothing looked up, bucketed or encoded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from making.movie_ctr.features import HISTORY, Rows, ordered_tables

__all__ = ["raw_instances"]


def raw_instances(rows: Rows, places: Iterable[int]) -> Iterable[dict[str, Any]]:
    """The instances of these places among all rows, oldest first."""
    inter, users, items = ordered_tables()
    for place in places:
        user, item, _, second = inter[place]
        _, age, gender, occupation, zip_code = users[user]
        _, _, year, genres = items[item]
        instance: dict[str, Any] = {
            "user_id": user, "item_id": item, "age": int(age), "gender": gender, "occupation": occupation,
            "zip_code": zip_code, "timestamp": int(float(second)), "genres": genres.split(),
        }  # fmt: skip
        if year.isdigit():
            instance["release_year"] = int(year)
        figures = (round(float(figure), 4) for figure in rows.history[place])
        yield instance | dict(zip(HISTORY, figures, strict=True))
