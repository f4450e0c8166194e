"""slo.yaml: the performance budget and the load it is promised for. Promises, never measurements."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seatrial.contract.strict import Document, Strict
from seatrial.contract.units import Duration, Growth, Rate, Share, Size

__all__ = ["STAGES", "Latency", "Load", "Percentiles", "Slo"]

Stage = Literal[
    "accept", "parse", "feature", "queue", "form", "copy_in", "run", "copy_out", "encode", "write"
]
STAGES: tuple[str, ...] = (
    "accept", "parse", "feature", "queue", "form", "copy_in", "run", "copy_out", "encode", "write",
)  # fmt: skip


class Percentiles(Strict):
    """Upper bounds of response time. A bound that is not stated is not judged."""

    p50: Duration | None = None
    p95: Duration | None = None
    p99: Duration | None = None


class Latency(Strict):
    """Bounds of the whole response, and of single stages where one is budgeted."""

    total: Percentiles
    stages: dict[Stage, Percentiles] = Field(default_factory=dict)


class Load(Strict):
    """The load the budget holds for."""

    mean: Rate | None = None
    peak: Rate | None = None
    growth: Growth | None = None


class Slo(Document):
    """The content of slo.yaml."""

    kind: Literal["Slo"]
    latency: Latency
    memory_per_instance: Size | None = None
    error_budget: Share | None = Field(None, description="Share of requests that may fail or come late.")
    availability: Share | None = None
    load: Load = Field(default_factory=Load)
    window: Duration | None = Field(
        None, description="Time over which error budget and availability are counted."
    )
