"""serving.yaml: how the server runs this model. Owned by infra; the model file never knows it."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from seatrial.contract.strict import Document, Strict, Text
from seatrial.contract.units import Duration, Size

__all__ = ["BatchingPolicy", "Limits", "Provider", "Queue", "Serving", "Versions"]

Count = Annotated[int, Field(strict=True, ge=1, le=1 << 20)]


class BatchingPolicy(Strict):
    """How far requests may be joined; what may be joined at all is found by the program, not promised."""

    max_rows: Count = 64
    policy: Literal["dynamic", "preferred", "off"] = Field(
        default="dynamic",
        description="`dynamic` forms batches by measured cost, `preferred` waits for fixed sizes, `off` runs all alone.",
    )
    preferred_rows: list[Count] = Field(
        default_factory=list, description="Sizes worth waiting for with policy `preferred`, rising."
    )
    max_delay: Duration = Field(
        default_factory=lambda: Duration.parse("5ms"),
        description="The longest that policy `preferred` holds a request back.",
    )
    measure: Duration | Literal["off"] = Field(
        default_factory=lambda: Duration.parse("3s"),
        description="How long the cost of runs may be measured before readiness; `off` does without.",
    )

    @model_validator(mode="after")
    def _sizes_rise(self) -> Self:
        sizes = self.preferred_rows
        if self.policy == "preferred" and not sizes:
            raise PydanticCustomError("preferred", "policy `preferred` needs the sizes in `preferred_rows`")
        if any(a >= b for a, b in pairwise(sizes)) or (sizes and sizes[-1] > self.max_rows):
            raise PydanticCustomError(
                "preferred",
                "`preferred_rows` is {sizes}: expected rising sizes of at most `max_rows`, {most}",
                {"sizes": str(sizes), "most": self.max_rows},
            )
        return self


class Queue(Strict):
    """The bound of the waiting line; beyond it a request is refused at once."""

    rows: Count = 1024
    priority_levels: Annotated[int, Field(strict=True, ge=1, le=64)] = Field(
        default=1,
        description="Levels that requests choose from with `priority`; 1 is served first, 0 is the last.",
    )


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
