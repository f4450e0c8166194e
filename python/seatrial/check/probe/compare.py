"""Whether two answers are the same within what arithmetic in another order explains. Child process only.

Bound: `absolute * largest finite magnitude of the reference + relative * |reference|`, so that small numbers beside
large ones do not cry wolf. For FP32 the absolute part is 16 rounding steps, times the root of the longest sum of
products. Not-a-number and infinities must stand in the same places; integers, booleans and texts must be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["bounds", "difference", "scale"]

EPSILON = 2.0**-23
LONGEST_COUNTED = 4096
# Relative part by protocol type. FP32: what onnxruntime's maintainers name for run-to-run differences. FP64 outputs
# often come from FP32 arithmetic inside, so they get no narrower bound than FP32.
_RELATIVE = {"FP32": 1e-5, "FP64": 1e-5, "FP16": 1e-2, "BF16": 2e-2}


def bounds(datatype: str, longest_sum: int) -> tuple[float, float] | None:
    """The absolute part, in units of the largest value, and the relative part; None for types that must be equal."""
    if datatype not in _RELATIVE:
        return None
    relative = _RELATIVE[datatype]
    if datatype in ("FP16", "BF16"):
        return relative, relative
    return 16 * EPSILON * min(max(longest_sum, 1), LONGEST_COUNTED) ** 0.5, relative


def difference(
    reference: np.ndarray[Any, Any], other: np.ndarray[Any, Any], datatype: str, longest_sum: int
) -> str | None:
    """How the other answer differs, or None when it does not."""
    if reference.shape != other.shape:
        return f"has the shape {list(other.shape)}, not {list(reference.shape)}"
    allowed = bounds(datatype, longest_sum)
    if allowed is None:
        n = int(np.count_nonzero(reference != other))
        return f"differs in {n} of {reference.size} values" if n else None
    a, b = reference.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    strange = ~finite & ~((np.isnan(a) & np.isnan(b)) | (a == b))
    if strange.any():
        return f"differs in {int(strange.sum())} not-a-number or infinite values"
    if not finite.any():
        return None
    gap = np.abs(a[finite] - b[finite])
    if (gap <= allowed[0] * scale(a) + allowed[1] * np.abs(a[finite])).all():
        return None
    return f"differs by {gap.max():.3g} where the largest value is {scale(a):.3g}"


def scale(array: np.ndarray[Any, Any]) -> float:
    """The largest finite magnitude of an array."""
    finite = np.abs(array[np.isfinite(array)]) if array.size else array
    return float(finite.max()) if finite.size else 0.0
