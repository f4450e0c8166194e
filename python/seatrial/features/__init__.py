"""Raw fields to tensors in training and evaluation: the engine's own native code, over rows, arrays and tables.

`transform(package, data)` for one call, `load(package)` for a plan that reads the package's files once.
"""

from __future__ import annotations

from seatrial.features.plan import FieldCounts, Plan, load, transform

__all__ = ["FieldCounts", "Plan", "load", "transform"]
