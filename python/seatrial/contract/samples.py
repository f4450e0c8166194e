"""samples/: requests.jsonl and golden.jsonl, one JSON object a line, in Open Inference Protocol form.

Integers are exact. A float that JSON cannot hold is written as the text `NaN`, `Infinity` or `-Infinity`.
BYTES that are not UTF-8 are written as `{"base64": ...}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from seatrial.contract.signature import Datatype, TensorName
from seatrial.contract.source import Problem, Source, fail
from seatrial.contract.strict import Strict
from seatrial.contract.validation import Checked, validate

__all__ = ["Golden", "SampleTensor", "Tolerance", "WireRequest", "read_golden", "read_lines", "read_requests"]

MAX_LINE_BYTES = 16 << 20


class SampleTensor(Strict):
    """A tensor with its data, flat or nested, row by row."""

    name: TensorName
    datatype: Datatype
    shape: list[int] = Field(max_length=32)
    data: list[Any]
    parameters: dict[str, Any] | None = None


class WireRequest(Strict):
    """The body of an infer request."""

    id: str | None = None
    parameters: dict[str, Any] | None = None
    inputs: list[SampleTensor]
    outputs: list[dict[str, Any]] | None = None


class Tolerance(Strict):
    """How far a float may lie from its golden value: `abs + rel * |golden|`."""

    abs: float = Field(1e-5, ge=0)
    rel: float = Field(1e-5, ge=0)


class Golden(Strict):
    """A request and the outputs it must give."""

    request: WireRequest
    outputs: list[SampleTensor]
    tolerance: Tolerance = Field(default_factory=Tolerance)


@dataclass
class Reader:
    """How a line file was read: how many lines were judged, and whether the limit cut it short."""

    problems: list[Problem] = field(default_factory=list)
    n_read: int = 0
    cut_short: bool = False


def read_lines(
    root: Path, file: str, model: type[Any], limit: int | None = None
) -> Iterator[tuple[int, Checked[Any]]]:
    """Each line of a JSON Lines file with its number, as the model or what is wrong, up to `limit`."""
    with (root / file).open("rb") as stream:
        for number, raw in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1):
            if limit is not None and number > limit:
                return
            if raw.strip():
                yield number, _line(raw, file, number, model)
            if len(raw) > MAX_LINE_BYTES:
                return


def read_requests(root: Path, file: str = "samples/requests.jsonl") -> Iterator[dict[str, Any]]:
    """The sample requests of a package; a broken line is a `ContractError`."""
    for _, checked in read_lines(root, file, WireRequest):
        if checked.value is None:
            raise fail(checked.problems)
        yield checked.value.model_dump(exclude_none=True)


def read_golden(root: Path, file: str = "samples/golden.jsonl") -> Iterator[Golden]:
    """The golden rows of a package; a broken line is a `ContractError`."""
    for _, checked in read_lines(root, file, Golden):
        if checked.value is None:
            raise fail(checked.problems)
        yield checked.value


def _line(raw: bytes, file: str, number: int, model: type[Any]) -> Checked[Any]:
    if len(raw) > MAX_LINE_BYTES:
        text = f"the line is longer than {MAX_LINE_BYTES} bytes"
        return Checked(None, [Problem("too-large", file, number, text, "use smaller requests as samples")])
    try:
        data = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        text = f"no valid JSON: {error!s:.100}"
        return Checked(
            None, [Problem("syntax", file, number, text, "write one JSON object a line, in UTF-8")]
        )
    return validate(model, Source(file, data, {(): number}))


def _no_constant(name: str) -> float:
    raise ValueError(f'{name} is not JSON; write it as the text "{name}"')
