"""signature.yaml: what goes in, what comes out, in the order of the graph."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator
from pydantic_core import PydanticCustomError

from seatrial.contract.strict import Document, Name, Strict, Text

__all__ = ["DATATYPES", "Dim", "ErrorCode", "FixedDim", "FreeDim", "Signature", "TensorSpec"]

Datatype = Literal[
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    "FP16", "BF16", "FP32", "FP64", "BYTES",
]  # fmt: skip

# Protocol name -> bytes of one element; None for BYTES, whose elements have lengths of their own.
DATATYPES: dict[str, int | None] = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8,
    "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
    "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8, "BYTES": None,
}  # fmt: skip

# Names of tensors are the graph's own and may hold anything printable, such as `serving_default_input:0`.
TensorName = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+$")
]
Extent = Annotated[int, Field(strict=True, ge=0, le=1 << 40)]


class FreeDim(Strict):
    """A dimension whose size the request chooses. Equal names within a request mean equal sizes."""

    name: Name
    min: Extent = 0
    max: Extent | None = Field(
        None, description="The largest size that may be asked for; null while not known."
    )

    @model_validator(mode="after")
    def _ordered(self) -> FreeDim:
        if self.max is not None and self.max < self.min:
            raise PydanticCustomError(
                "bounds", "min {min} is above max {max}", {"min": self.min, "max": self.max}
            )
        return self


class FixedDim(Strict):
    """A dimension of one size, with the reason where the file itself says otherwise."""

    size: Extent
    why: Text = Field(description="Why the size is fixed although the file declares the dimension free.")


def _dim_kind(value: object) -> str:
    if isinstance(value, FixedDim) or (isinstance(value, dict) and "size" in value):
        return "fixed"
    return "free" if isinstance(value, dict | FreeDim) else "number"


Dim = Annotated[
    Annotated[Extent, Tag("number")] | Annotated[FixedDim, Tag("fixed")] | Annotated[FreeDim, Tag("free")],
    Discriminator(_dim_kind),
]
Bound = Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True)]


class TensorSpec(Strict):
    """One input or output."""

    name: TensorName
    datatype: Datatype
    shape: list[Dim] = Field(max_length=32, description="Dimensions, outermost first; empty for a scalar.")
    range: tuple[Bound, Bound] | None = Field(
        None, description="Inclusive range of legal values; a value outside is refused."
    )
    unit: Text | None = None
    nullable: Annotated[bool, Field(strict=True)] = False
    description: Text | None = None
    labels: list[Text] | None = Field(None, description="Names of the columns of a classifier's output.")

    @model_validator(mode="after")
    def _sane(self) -> TensorSpec:
        if self.range is not None:
            low, high = self.range
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise PydanticCustomError(
                    "range", "range [{low}, {high}] is not low to high", {"low": low, "high": high}
                )
            if self.datatype in ("BYTES", "BOOL"):
                raise PydanticCustomError("range", "{type} has no range", {"type": self.datatype})
        if self.labels is not None:
            self._check_labels(self.labels)
        return self

    def _check_labels(self, labels: list[str]) -> None:
        last = self.dims[-1] if self.shape else None
        if isinstance(last, int) and last != len(labels):
            context = {"labels": len(labels), "columns": last}
            raise PydanticCustomError("labels", "{labels} labels for {columns} columns", context)

    @property
    def dims(self) -> list[int | FreeDim]:
        """The dimensions with fixed ones as plain numbers."""
        return [d.size if isinstance(d, FixedDim) else d for d in self.shape]


class ErrorCode(Strict):
    """An error that a client must expect beyond those of the protocol."""

    code: Name
    meaning: Text


class Signature(Document):
    """The content of signature.yaml."""

    kind: Literal["Signature"]
    inputs: list[TensorSpec] = Field(max_length=4096)
    outputs: list[TensorSpec] = Field(min_length=1, max_length=4096)
    error_codes: list[ErrorCode] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_once(self) -> Signature:
        for side in (self.inputs, self.outputs):
            names = [t.name for t in side]
            twice = next((n for n in names if names.count(n) > 1), None)
            if twice is not None:
                raise PydanticCustomError("twice", "`{name}` is declared twice", {"name": twice})
        return self

    def resolved(self) -> dict[str, list[dict[str, object]]]:
        """The form that the server's configuration holds: no prose, fixed dimensions as numbers."""
        return {
            "inputs": [_resolved(t) for t in self.inputs],
            "outputs": [_resolved(t) for t in self.outputs],
        }


def _resolved(tensor: TensorSpec) -> dict[str, object]:
    shape = [d if isinstance(d, int) else {"name": d.name, "max": d.max} for d in tensor.dims]
    return {
        "name": tensor.name,
        "datatype": tensor.datatype,
        "shape": shape,
        "range": list(tensor.range) if tensor.range is not None else None,
        "labels": tensor.labels,
    }
