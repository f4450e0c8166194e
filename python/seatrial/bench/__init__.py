"""Drives the native load generator and computes figures from what it recorded. Starts no server, gives no verdict.

The names are loaded when they are asked for: the generator's own process imports this room and needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.bench.bodies import binary_bodies, file_bodies, json_bodies
    from seatrial.bench.generator import LoadResult, run_load
    from seatrial.bench.plan import Body, ClosedLoop, LoadPlan, OpenLoop, Target
    from seatrial.bench.quantiles import CONFIDENCE, QUANTILE_RULE, percentiles
    from seatrial.bench.summary import summarise

__all__ = [
    "CONFIDENCE",
    "QUANTILE_RULE",
    "Body",
    "ClosedLoop",
    "LoadPlan",
    "LoadResult",
    "OpenLoop",
    "Target",
    "binary_bodies",
    "file_bodies",
    "json_bodies",
    "percentiles",
    "run_load",
    "summarise",
]

_HOME = {
    "CONFIDENCE": "quantiles",
    "QUANTILE_RULE": "quantiles",
    "Body": "plan",
    "ClosedLoop": "plan",
    "LoadPlan": "plan",
    "LoadResult": "generator",
    "OpenLoop": "plan",
    "Target": "plan",
    "binary_bodies": "bodies",
    "file_bodies": "bodies",
    "json_bodies": "bodies",
    "percentiles": "quantiles",
    "run_load": "generator",
    "summarise": "summary",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `{__name__}` has no `{name}`")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
