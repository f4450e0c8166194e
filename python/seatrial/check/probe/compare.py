"""Whether two answers are the same within what arithmetic in another order explains. Child process only.

Absolute bound: `rel * largest finite magnitude of the reference`, so that small numbers beside large ones do not
cry wolf; not-a-number and infinities must stand in the same places; integers, booleans and texts must be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["RELATIVE", "difference", "scale"]

# By protocol type. FP32: what onnxruntime's maintainers name for run-to-run differences. FP64 outputs often come
# from FP32 arithmetic inside, so they get a bound between the two.
RELATIVE = {"FP32": 1e-5, "FP64": 1e-6, "FP16": 1e-2, "BF16": 2e-2}


def difference(reference: np.ndarray[Any, Any], other: np.ndarray[Any, Any], datatype: str) -> str | None:
    """How the other answer differs, or None when it does not."""
    if reference.shape != other.shape:
        return f"has the shape {list(other.shape)}, not {list(reference.shape)}"
    if datatype not in RELATIVE:
        n = int(np.count_nonzero(reference != other))
        return f"differs in {n} of {reference.size} values" if n else None
    a, b = reference.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    strange = ~finite & ~((np.isnan(a) & np.isnan(b)) | (a == b))
    if strange.any():
        return f"differs in {int(strange.sum())} not-a-number or infinite values"
    if not finite.any():
        return None
    rel = RELATIVE[datatype]
    gap = np.abs(a[finite] - b[finite])
    allowed = rel * (scale(a) + np.abs(a[finite]))
    if (gap <= allowed).all():
        return None
    return f"differs by {gap.max():.3g} where the largest value is {scale(a):.3g}"


def scale(array: np.ndarray[Any, Any]) -> float:
    """The largest finite magnitude of an array."""
    finite = np.abs(array[np.isfinite(array)]) if array.size else array
    return float(finite.max()) if finite.size else 0.0
