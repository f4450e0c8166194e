"""Request bodies of a trial: JSON, and binary inputs only where a sample holds bytes that JSON cannot carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.bench import Body, binary_bodies, json_bodies
from seatrial.contract import Golden
from seatrial.errors import UsageError

__all__ = ["golden_body", "sample_body"]


def sample_body(request: Mapping[str, Any]) -> Body:
    """The body of one sample."""
    try:
        return json_bodies([request])[0]
    except UsageError:
        return binary_bodies([request])[0]


def golden_body(row: Golden) -> Body:
    """The body of a golden row, whose answer comes as JSON in either form."""
    request = row.request.model_dump(exclude_none=True)
    try:
        return json_bodies([request])[0]
    except UsageError:
        as_json = [{"name": o.name, "parameters": {"binary_data": False}} for o in row.outputs]
        return binary_bodies([{**request, "outputs": as_json}])[0]
