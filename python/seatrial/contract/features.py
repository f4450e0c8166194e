"""features.yaml: the ordered rules from a raw request field to a tensor. Without it clients send tensors.

Only the order and the wiring are fixed here; the options of a step are judged by the code that runs it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from seatrial.contract.strict import Document, Name, Strict, Text

__all__ = ["Feature", "FeatureSpec"]


class Feature(Strict):
    """One raw field and the tensor it becomes."""

    field: Text = Field(description="Name of the field in the request.")
    type: Literal["string", "integer", "number", "boolean", "list"]
    tensor: Text = Field(description="Name of the model input it feeds.")
    column: int | None = Field(
        None, ge=0, description="Column of the tensor, where several fields share one."
    )
    steps: list[dict[str, Any]] = Field(default_factory=list, max_length=64)
    missing: Text | None = Field(None, description="What stands for a missing value.")
    source: Text | None = Field(None, description="Where the field comes from.")


class FeatureSpec(Document):
    """The content of features.yaml."""

    kind: Literal["Features"]
    version: Name | None = None
    features: list[Feature] = Field(max_length=10_000)
