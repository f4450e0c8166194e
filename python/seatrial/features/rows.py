"""Rows of Python values as the body that the server would get, so that both take one way through the native code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["as_body"]


def as_body(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The JSON body of these rows; NaN stands for a missing value, NumPy values for Python's own."""
    try:
        return _dump(rows)
    except ValueError:  # NaN has no JSON form
        return _dump([{field: _present(value) for field, value in row.items()} for row in rows])


def _dump(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return json.dumps({"instances": rows}, allow_nan=False, ensure_ascii=False, default=_plain).encode()


def _present(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _plain(value: Any) -> Any:
    plain = getattr(value, "tolist", None)
    if plain is None:
        raise TypeError(f"a value of type `{type(value).__name__}` has no JSON form")
    return _present(plain())
