"""seatrial.yaml: who this package is, what it is for, and who answers for it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial.contract.strict import Document, Name, Strict, Text

__all__ = ["Identity", "Owner", "Owners", "Task"]

Task = Literal["ranking", "classification", "risk", "regression", "embedding", "detection", "generation"]
SemanticVersion = Annotated[
    str,
    StringConstraints(
        strict=True,
        max_length=100,
        pattern=r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
    ),
]


class Owner(Strict):
    """A role that answers, and where it is reached. A role, never an invented person."""

    role: Text = Field(description="The role, such as `ranking team, model on duty`.")
    contact: Text = Field(description="Where the role is reached: a mail list, a channel, a group handle.")


class Owners(Strict):
    """The two sides of the hand-over."""

    algorithm: Owner
    infra: Owner


class Identity(Document):
    """The content of seatrial.yaml."""

    kind: Literal["Package"]
    name: Name = Field(description="Name of the model in addresses and metrics.")
    version: SemanticVersion = Field(description="Semantic version for people; the digest is the true name.")
    purpose: Text = Field(description="Which decision is made with the answer.")
    task: Task | None = Field(None, description="Kind of answer.")
    intended_use: list[Text] = Field(default_factory=list, description="What the model may be used for.")
    out_of_scope: list[Text] = Field(default_factory=list, description="What it must not be used for.")
    owners: Owners
    licence: Text | None = Field(None, description="SPDX name of the licence of the model.")
    rollback_class: Literal["instant", "redeploy", "migration"] | None = Field(
        None,
        description="Way back: the old version is still loaded, is deployed again, or data moves too.",
    )
    seeds: dict[Name, int] = Field(default_factory=dict, description="Seeds by step, such as `training: 42`.")
