"""Hashing and numbers in plain Python: the other implementation that the native one is held against."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

__all__ = ["floats", "longs", "murmur3_32", "scaled_log"]


def murmur3_32(data: bytes, seed: int = 0) -> int:
    """MurmurHash3_x86_32 after its published description."""

    def rotate(x: int, r: int) -> int:
        return ((x << r) | (x >> (32 - r))) & 0xFFFFFFFF

    def scramble(k: int) -> int:
        return rotate(k * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    h = seed
    whole = len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        h = (rotate(h ^ scramble(k), 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    if data[whole:]:
        h ^= scramble(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ (h >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ (h >> 16)


def scaled_log(value: float, least: float, mean: float, std: float) -> float:
    """Clipped from below, logarithm of one plus it, standardised; in double precision."""
    return (math.log1p(max(value, least)) - mean) / std


def floats(values: Sequence[float]) -> bytes:
    """FP32 as a tensor holds it: each double rounded once."""
    return struct.pack(f"<{len(values)}f", *values)


def longs(values: Sequence[int]) -> bytes:
    """INT64 as a tensor holds it."""
    return struct.pack(f"<{len(values)}q", *values)
