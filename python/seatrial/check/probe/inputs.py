"""Made-up inputs: legal by datatype and range, drawn from a seed. Child process only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from seatrial.check.tensors import numpy_type

__all__ = ["InputSpec", "make_inputs"]

_FULL_RANGE = {"UINT8": (0, 255), "INT8": (-128, 127)}
_WORDS = ("a", "b", "ab", "café", "北京", "x y", "0", "value")


@dataclass(frozen=True)
class InputSpec:
    """One input: dimensions are sizes or symbols; `range` is inclusive."""

    name: str
    datatype: str
    dims: tuple[int | str, ...]
    range: tuple[int, int] | None = None


def make_inputs(
    specs: list[InputSpec], sizes: dict[str, int], seed: int, highest_int: int
) -> dict[str, np.ndarray[Any, Any]]:
    """One array for every input. Integers without a range are drawn from 0 to `highest_int`."""
    chance = np.random.default_rng(seed)
    return {
        s.name: _array(s, [d if isinstance(d, int) else sizes[d] for d in s.dims], chance, highest_int)
        for s in specs
    }


def _array(
    spec: InputSpec, shape: list[int], chance: np.random.Generator, highest_int: int
) -> np.ndarray[Any, Any]:
    kind = spec.datatype
    if kind == "BYTES":
        words = np.empty(shape, dtype=object)
        words.reshape(-1)[:] = [str(chance.choice(_WORDS)) for _ in range(words.size)]
        return words
    if kind == "BOOL":
        return np.asarray(chance.random(shape) < 0.5)
    if kind in ("FP16", "BF16", "FP32", "FP64"):
        return np.asarray(chance.standard_normal(shape)).astype(numpy_type(kind))
    # A mask of zeros hides everything; what such an input does is not known here, so it lets everything through.
    if "mask" in spec.name.lower() and spec.range is None:
        return np.ones(shape, dtype=numpy_type(kind))
    low, high = spec.range or _FULL_RANGE.get(kind, (0, highest_int))
    return np.asarray(chance.integers(low, high, size=shape, endpoint=True)).astype(numpy_type(kind))
