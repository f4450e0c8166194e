"""environment.yaml: the triangle of training framework, exporter and runtime, in exact versions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial.contract.strict import Document, Strict, Text

__all__ = ["Change", "Environment", "Lock", "Tool"]

Sha256 = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9a-f]{64}$")]


class Tool(Strict):
    """A program and its exact version."""

    name: Text
    version: Text


class Lock(Strict):
    """The lock file of the environment that made the model."""

    file: Text
    sha256: Sha256


class Change(Strict):
    """A change that was made to the model file after its export."""

    what: Text
    by: Text
    original_sha256: Sha256


class Environment(Document):
    """The content of environment.yaml."""

    kind: Literal["Environment"]
    training: Tool | None = None
    exporter: Tool | None = None
    runtime: Tool
    opset: dict[str, int] = Field(
        description="Operator set versions by domain; `ai.onnx` is the default domain."
    )
    ir: int = Field(ge=1, description="IR version of the model file.")
    lock: Lock | None = None
    hardware: Text | None = Field(None, description="Hardware that the evidence came from.")
    changes: list[Change] = Field(default_factory=list)
