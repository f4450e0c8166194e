"""Whether rows of different requests may share a run: rows alone against rows joined. Child process only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seatrial.check.probe.compare import difference
from seatrial.check.probe.runner import RunError, Runner

__all__ = ["JoinPlan", "JoinVerdict", "probe_joining"]

Row = dict[str, np.ndarray[Any, Any]]
ORDERS = ((0, 1), (1, 0), (0, 1, 2), (2, 0, 1), (0, 1, 2, 3, 4, 5, 6, 7))
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class JoinPlan:
    """How to make rows. `row(seed, inner)` gives a request of one row; `inner` chooses among inner sizes."""

    row: Callable[[int, int], Row]
    n_inner: int
    inner_is_free: bool
    sample_rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class JoinVerdict:
    """What may be joined and why not more."""

    mode: str
    axis: int | None
    why: str
    tried: list[str]
    padding: dict[str, Any] | None = None


class _NotRowwiseError(Exception):
    pass


def probe_joining(runner: Runner, plan: JoinPlan) -> JoinVerdict:
    """Runs rows alone and joined in several orders, and compares."""
    tried: list[str] = []
    try:
        for inner in range(plan.n_inner):
            for seed in SEEDS:
                rows = [plan.row(seed * 1000 + i, inner) for i in range(8)]
                _compare(runner, rows)
                tried.append(f"8 random rows, seed {seed}, inner size {inner + 1} of {plan.n_inner}")
        for group in _alike(plan.sample_rows):
            _compare(runner, group)
            tried.append(f"{len(group)} sample rows")
    except _NotRowwiseError as no:
        return JoinVerdict("none", None, str(no), tried)
    except RunError as error:
        return JoinVerdict("none", None, f"the rows could not be run joined: {error}", tried)
    if plan.inner_is_free:
        why = "rows do not depend on batch mates of equal length"
        return JoinVerdict("equal-length", 0, why, tried)
    return JoinVerdict(
        "full", 0, "rows do not depend on their batch mates, run with 1, 2, 3 and 8 rows", tried
    )


def _alike(rows: list[Row]) -> list[list[Row]]:
    """Sample rows that can be joined because their inner shapes are equal, at most eight to a group."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple((n, a.shape) for n, a in sorted(row.items())), []).append(row)
    return [g[:8] for g in groups.values() if len(g) > 1][:4]


def _compare(runner: Runner, rows: list[Row]) -> None:
    alone = [runner.run(row) for row in rows]
    for wanted in ORDERS:
        order = [i for i in wanted if i < len(rows)]
        joined = runner.run({n: np.concatenate([rows[i][n] for i in order]) for n in rows[0]})
        for k, (name, datatype) in enumerate(runner.outputs):
            said = _output_fault(joined[k], [alone[i][k] for i in order], datatype, runner.longest_sum)
            if said is not None:
                raise _NotRowwiseError(said.replace("OUTPUT", f"output `{name}`"))


def _output_fault(joined: Any, alone: list[Any], datatype: str, longest_sum: int) -> str | None:
    """Why an output of joined rows is not its rows put together, with OUTPUT for its name."""
    n = len(alone)
    off = [(1, a) for a in alone if a.ndim == 0 or a.shape[0] != 1]
    off += [(n, joined)] if joined.ndim == 0 or joined.shape[0] != n else []
    if off:
        rows = f"{off[0][0]} row" if off[0][0] == 1 else f"{off[0][0]} rows"
        return f"OUTPUT does not have its rows on axis 0: {rows} in, shape {list(off[0][1].shape)} out"
    if any(a.shape[1:] != joined.shape[1:] for a in alone):
        return "the shape of OUTPUT depends on what else is in the batch"
    for i, reference in enumerate(alone):
        said = difference(reference[0], joined[i], datatype, longest_sum)
        if said is not None:
            return f"a row's answer depends on its batch mates: OUTPUT {said}, alone against {n} rows joined"
    return None
