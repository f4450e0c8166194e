"""Whether rows of different lengths may share a run: rows alone against rows padded and joined. Child process only.

Padding is tried only where an input of zeros and ones can hide it, and only at the end of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from seatrial.check.probe.compare import difference
from seatrial.check.probe.runner import RunError, Runner

__all__ = ["PadPlan", "PadVerdict", "probe_padding"]

Row = dict[str, np.ndarray[Any, Any]]
SEEDS = (11, 12)
# What is appended to inputs other than masks. Where 0 means something, 1 often is the token of padding.
VALUES = (0, 1)
MAX_SAMPLES = 16


@dataclass(frozen=True)
class PadPlan:
    """How to make rows. `row(seed, length)` gives a request of one row; `axes` tells where each input has the length."""

    row: Callable[[int, int], Row]
    lengths: list[int]
    axes: dict[str, int]
    sample_rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class PadVerdict:
    """What is appended to which input and which outputs are cut back, or why rows cannot be padded."""

    padding: dict[str, Any] | None
    why: str
    tried: list[str] = field(default_factory=list)


class _NotPaddableError(Exception):
    pass


def probe_padding(runner: Runner, plan: PadPlan) -> PadVerdict:
    """Runs rows of several lengths alone and padded to one, and compares."""
    masks = _masks(plan)
    if not masks:
        return PadVerdict(None, "no input of zeros and ones hides padding")
    if len(plan.lengths) < 2:
        return PadVerdict(None, "the model takes a single length")
    refusal = ""
    for value in VALUES:
        values = {name: 0 if name in masks else value for name in plan.axes}
        tried: list[str] = []
        try:
            cuts = _cuts(runner, plan, masks)
            _try_groups(runner, plan, (masks, values, cuts), tried)
        except _NotPaddableError as no:
            refusal = refusal or str(no)
        except RunError as error:
            refusal = refusal or f"padded rows could not be run: {error}"
        else:
            inputs = {name: {"axis": axis, "value": values[name]} for name, axis in plan.axes.items()}
            outputs = {
                name: axis for (name, _), axis in zip(runner.outputs, cuts, strict=True) if axis is not None
            }
            hidden = " and ".join(f"`{m}`" for m in sorted(masks))
            why = f"nor on padding that {hidden} hides"
            return PadVerdict({"inputs": inputs, "outputs": outputs}, why, tried)
    return PadVerdict(None, refusal)


def _masks(plan: PadPlan) -> set[str]:
    """Inputs with the length that hold zeros and ones: by their name, or by what real requests hold."""
    first = plan.row(SEEDS[0], plan.lengths[0]) if plan.lengths else {}
    found = set()
    for name in plan.axes:
        if name not in first or first[name].dtype.kind not in "iub":
            continue
        seen = [row[name] for row in plan.sample_rows]
        binary = bool(seen) and all(np.isin(a, (0, 1)).all() for a in seen)
        if binary or (not seen and "mask" in name.lower()):
            found.add(name)
    return found


def _open(row: Row, masks: set[str]) -> Row:
    """A made-up row whose masks hide nothing."""
    return {n: np.ones_like(a) if n in masks else a for n, a in row.items()}


def _cuts(runner: Runner, plan: PadPlan, masks: set[str]) -> list[int | None]:
    """The axis of every output that follows the length."""
    lengths = plan.lengths[:3]
    runs = [runner.run(_open(plan.row(SEEDS[0], length), masks)) for length in lengths]
    cuts: list[int | None] = []
    for k, (name, _) in enumerate(runner.outputs):
        shapes = [outputs[k].shape for outputs in runs]
        if any(len(a) != len(b) for a, b in pairwise(shapes)):
            raise _NotPaddableError(f"the rank of output `{name}` depends on the length")
        moving = [axis for axis in range(len(shapes[0])) if len({s[axis] for s in shapes}) > 1]
        follows = all(s[axis] == n for axis in moving for s, n in zip(shapes, lengths, strict=True))
        if len(moving) > 1 or 0 in moving or not follows:
            raise _NotPaddableError(f"output `{name}` has the shapes {shapes} for the lengths {lengths}")
        cuts.append(moving[0] if moving else None)
    return cuts


def _try_groups(
    runner: Runner,
    plan: PadPlan,
    how: tuple[set[str], dict[str, int], list[int | None]],
    tried: list[str],
) -> None:
    longest = max(plan.lengths)
    for seed in SEEDS:
        rows = [
            _open(plan.row(seed * 1000 + i, length), how[0])
            for i, length in enumerate([n for n in plan.lengths if n < longest])
        ]
        _compare(runner, plan.axes, (rows, longest), how)
        tried.append(f"{len(rows)} random rows, seed {seed}, padded to {longest}")
    samples = plan.sample_rows[:MAX_SAMPLES]
    lengths = [_length(row, plan.axes) for row in samples]
    if len(set(lengths)) > 1:
        _compare(runner, plan.axes, (samples, max(lengths)), how)
        tried.append(f"{len(samples)} sample rows, padded to {max(lengths)}")


def _length(row: Row, axes: dict[str, int]) -> int:
    name, axis = next(iter(axes.items()))
    return int(row[name].shape[axis])


def _compare(
    runner: Runner,
    axes: dict[str, int],
    group: tuple[list[Row], int],
    how: tuple[set[str], dict[str, int], list[int | None]],
) -> None:
    (rows, longest), (_, values, cuts) = group, how
    alone = [runner.run(row) for row in rows]
    padded = [_pad(row, axes, longest, values) for row in rows]
    joined = runner.run({n: np.concatenate([row[n] for row in padded]) for n in rows[0]})
    for k, (name, datatype) in enumerate(runner.outputs):
        for i, row in enumerate(rows):
            answer = joined[k][i : i + 1]
            if (axis := cuts[k]) is not None:
                answer = answer.take(range(_length(row, axes)), axis=axis)
            said = difference(alone[i][k], answer, datatype, runner.longest_sum)
            if said is not None:
                text = f"padding changes the answer: output `{name}` {said}, {_length(row, axes)} padded to {longest}"
                raise _NotPaddableError(text)


def _pad(row: Row, axes: dict[str, int], longest: int, values: dict[str, int]) -> Row:
    def lengthened(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if name not in axes:
            return array
        widths = [(0, longest - array.shape[a] if a == axes[name] else 0) for a in range(array.ndim)]
        return np.pad(array, widths, constant_values=values[name])

    return {name: lengthened(name, array) for name, array in row.items()}
