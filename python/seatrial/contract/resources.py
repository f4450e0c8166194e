"""resources.yaml: what one instance asks of a machine, and how many there may be."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seatrial.contract.strict import Document, Strict, Text
from seatrial.contract.units import Cores, Size

__all__ = ["Cpu", "Gpu", "Replicas", "Resources", "Scaling"]

ReplicaCount = Annotated[int, Field(strict=True, ge=0, le=100_000)]


class Cpu(Strict):
    """Processor time and the instruction sets that the figures rest on."""

    cores: Cores | None = None
    instruction_sets: list[Text] = Field(
        default_factory=list, description="Such as `avx2`, `avx512_vnni`, `amx_int8`."
    )


class Gpu(Strict):
    """The accelerator, where one is needed."""

    type: Text
    memory: Size


class Replicas(Strict):
    """Bounds of the number of instances."""

    min: ReplicaCount | None = None
    max: ReplicaCount | None = None


class Scaling(Strict):
    """What the number of instances follows."""

    signal: Literal["queue_rows", "in_flight", "requests_per_second", "cpu"] = "queue_rows"


class Resources(Document):
    """The content of resources.yaml."""

    kind: Literal["Resources"]
    basis: Literal["estimate", "measured"] = Field("estimate", description="Where the figures come from.")
    cpu: Cpu = Field(default_factory=Cpu)
    memory: Size | None = None
    gpu: Gpu | None = None
    disk: Size | None = None
    network: Size | None = Field(None, description="Bytes of a request and its answer together.")
    replicas: Replicas = Field(default_factory=Replicas)
    scaling: Scaling = Field(default_factory=Scaling)
