"""Sample files in Open Inference Protocol form: one request, or one request with its outputs, a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Tensors", "golden", "instances", "request", "write_lines"]

Tensors = Mapping[str, np.ndarray]
DATATYPES = {"float32": "FP32", "int64": "INT64", "int32": "INT32"}


def request(tensors: Tensors) -> dict[str, Any]:
    """The body of an infer request."""
    return {"inputs": _tensors(tensors)}


def instances(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The body of a request of named features."""
    return {"instances": rows}


def golden(inputs: Tensors, outputs: Tensors, tolerance: float) -> dict[str, Any]:
    """A request with the outputs it must give, up to an absolute difference."""
    return {
        "request": request(inputs),
        "outputs": _tensors(outputs),
        "tolerance": {"abs": tolerance, "rel": 0.0},
    }


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Writes a JSON Lines file with equal bytes on every machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines))


def _tensors(tensors: Tensors) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "datatype": DATATYPES[array.dtype.name],
            "shape": list(array.shape),
            "data": [_number(v) for v in array.reshape(-1)],
        }
        for name, array in tensors.items()
    ]


def _number(value: Any) -> int | float:
    """The shortest decimal that gives the same float32 back."""
    if isinstance(value, np.integer):
        return int(value)
    return float(np.format_float_positional(value, unique=True, trim="0"))
