"""Which opset and IR version each runtime loads: a measured table kept as data, and the installed wheel's version."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from typing import Any

from seatrial.errors import MissingError

__all__ = ["LOWEST_PROMISED_OPSET", "RuntimeRow", "installed_runtime", "is_supported", "runtime_row"]

LOWEST_PROMISED_OPSET = 7
Version = tuple[int, int, int]


@dataclass(frozen=True)
class RuntimeRow:
    """What a range of runtime versions takes at most."""

    first: Version
    last: Version
    opset: int
    ir: int
    ml_opset: int | None


def installed_runtime() -> str:
    """The version of the installed onnxruntime wheel, CPU or GPU, without importing it."""
    for name in ("onnxruntime", "onnxruntime-gpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise MissingError("no onnxruntime wheel is installed", hint="pip install onnxruntime==1.31.1")


def runtime_row(version: str) -> RuntimeRow | None:
    """The row of a version: the newest measured row that is not newer. None for a version older than the table."""
    wanted = _parse(version)
    if wanted is None:
        return None
    rows = [r for r in _rows() if r.first[:2] <= wanted[:2]]
    return rows[-1] if rows else None


def is_supported(version: str) -> bool:
    """Whether the engine runs with this version."""
    wanted = _parse(version)
    low, high = (_parse(v) for v in _table()["supported"])
    return wanted is not None and low is not None and high is not None and low[:2] <= wanted[:2] <= high[:2]


def _parse(version: str) -> Version | None:
    match = re.match(r"^(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", version)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


@cache
def _table() -> dict[str, Any]:
    text = resources.files("seatrial.check").joinpath("data/runtime_table.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


@cache
def _rows() -> tuple[RuntimeRow, ...]:
    rows = []
    for row in _table()["rows"]:
        first, last = _parse(row["from"]), _parse(row["to"])
        if first is not None and last is not None:
            rows.append(RuntimeRow(first, last, row["opset"], row["ir"], row.get("ai.onnx.ml")))
    return tuple(rows)
