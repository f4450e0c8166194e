"""serving.yaml: how the server runs this model. Owned by infra; the model file never knows it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seatrial.contract.strict import Document, Strict, Text
from seatrial.contract.units import Duration, Size

__all__ = ["BatchingPolicy", "Limits", "Provider", "Queue", "Serving", "Versions"]

Count = Annotated[int, Field(strict=True, ge=1, le=1 << 20)]


class BatchingPolicy(Strict):
    """How far requests may be joined; what may be joined at all is found by the program, not promised."""

    max_rows: Count = 64
    policy: Literal["dynamic", "off"] = "dynamic"


class Queue(Strict):
    """The bound of the waiting line; beyond it a request is refused at once."""

    rows: Count = 1024


class Limits(Strict):
    """Bounds of a single request."""

    max_body: Size = Field(default_factory=lambda: Size.parse("64MiB"))
    max_rows_per_request: Count | None = None


class Versions(Strict):
    """How many versions stay loaded."""

    keep: Count = 2


class Provider(Strict):
    """The execution provider of the runtime and its options."""

    name: Literal["cpu", "cuda", "tensorrt", "openvino"] = "cpu"
    options: dict[Text, str | int | float | bool] = Field(default_factory=dict)


class Serving(Document):
    """The content of serving.yaml."""

    kind: Literal["Serving"]
    batching: BatchingPolicy = Field(default_factory=BatchingPolicy)
    buckets: list[Count] = Field(default_factory=list, description="Upper edges of length buckets, rising.")
    executors: Count | Literal["auto"] = "auto"
    threads: Count | Literal["auto"] = "auto"
    queue: Queue = Field(default_factory=Queue)
    timeout: Duration = Field(default_factory=lambda: Duration.parse("1s"))
    limits: Limits = Field(default_factory=Limits)
    versions: Versions = Field(default_factory=Versions)
    provider: Provider = Field(default_factory=Provider)
