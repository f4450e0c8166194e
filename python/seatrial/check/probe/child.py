"""The probe's own process: `python -m seatrial.check.probe.child job.json`. Whatever the model does ends here.

Every step writes what is known so far into the result file, so that a crash leaves the name of the step behind.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seatrial.check.probe.compare import bounds, difference, scale
from seatrial.check.probe.inputs import InputSpec, make_inputs
from seatrial.check.probe.joining import JoinPlan, JoinVerdict, Row, probe_joining
from seatrial.check.probe.padding import PadPlan, PadVerdict, probe_padding
from seatrial.check.probe.runner import RunError, Runner
from seatrial.check.probe.shapes import DimFinding, ShapeFindings, Sizes, find_shapes
from seatrial.check.tensors import from_wire, to_wire
from seatrial.errors import ContractError

__all__ = ["main"]

N_SYNTHETIC = 16
INT_CEILINGS = (9, 1, 0)
INNER_SIZES = (8, 5, 3, 2, 1)
# Lengths of rows that are padded to the first of them; not all models take all.
PADDED_SIZES = (29, 16, 8, 5, 3, 2, 1)
MAX_GOLDEN = 200


@dataclass
class Probe:
    """What the steps share."""

    job: dict[str, Any]
    runner: Runner
    specs: list[InputSpec]
    result: dict[str, Any]
    shapes: ShapeFindings
    highest_int: int = INT_CEILINGS[0]

    def attempt(self, sizes: Sizes) -> str | None:
        """Runs made-up inputs of these sizes; what the runtime said when it refused."""
        try:
            self.runner.run(make_inputs(self.specs, sizes, 0, self.highest_int))
        except RunError as error:
            return str(error)
        return None


def main(job_file: str) -> None:
    """Runs the job and leaves its result in the file that the job names."""
    job = json.loads(Path(job_file).read_text("utf-8"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (job["memory_bytes"], job["memory_bytes"]))
    result: dict[str, Any] = {"step": "load the model"}
    _save(job, result)
    try:
        _steps(job, result)
    except (RunError, ContractError) as error:
        result["error"] = str(error)
    except MemoryError:
        result["error"] = f"more than {job['memory_bytes']} bytes of memory were needed"
    else:
        result["step"] = "done"
    _save(job, result)


def _steps(job: dict[str, Any], result: dict[str, Any]) -> None:
    runner = Runner(
        Path(job["model"]), [(o["name"], o["datatype"]) for o in job["outputs"]], job["longest_sum"]
    )
    specs = [
        InputSpec(i["name"], i["datatype"], tuple(i["dims"]), _pair(i.get("range"))) for i in job["inputs"]
    ]
    probe = Probe(job, runner, specs, result, ShapeFindings())
    requests = _sample_requests(job, specs)
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("find the free dimensions", lambda: _find_dims(probe, requests)),
        ("write the sample requests", lambda: _write_requests(probe, requests)),
        ("run the same input twice", lambda: _run_twice(probe, requests)),
        ("write the golden rows", lambda: _write_golden(probe, requests)),
        ("join rows", lambda: _join(probe, requests)),
    )
    for name, step in steps:
        result["step"] = name
        _save(job, result)
        step()


def _pair(value: list[int] | None) -> tuple[int, int] | None:
    return None if value is None else (value[0], value[1])


def _save(job: dict[str, Any], result: dict[str, Any]) -> None:
    target = Path(job["result"])
    draft = target.with_suffix(".new")
    draft.write_text(json.dumps(result), "utf-8")
    draft.replace(target)


def _sample_requests(job: dict[str, Any], specs: list[InputSpec]) -> list[Row]:
    if not job.get("samples"):
        return []
    rows = []
    for number, line in enumerate(Path(job["samples"]).read_text("utf-8").splitlines(), 1):
        if line.strip():
            tensors = {t["name"]: from_wire(t) for t in json.loads(line)["inputs"]}
            _hold_against(specs, tensors, number)
            rows.append(tensors)
    return rows


def _hold_against(specs: list[InputSpec], tensors: Row, number: int) -> None:
    wanted = {s.name for s in specs}
    if set(tensors) != wanted:
        text = f"sample line {number} has the inputs {sorted(tensors)}, the model takes {sorted(wanted)}"
        raise ContractError(text)
    for spec in specs:
        shape = tensors[spec.name].shape
        fits = len(shape) == len(spec.dims)
        if not fits or any(isinstance(d, int) and d != n for d, n in zip(spec.dims, shape, strict=True)):
            raise ContractError(f"sample line {number}: input `{spec.name}` has the shape {list(shape)}")


def _find_dims(probe: Probe, requests: list[Row]) -> None:
    symbols = list(dict.fromkeys(d for s in probe.specs for d in s.dims if isinstance(d, str)))
    first = {s.dims[0] for s in probe.specs if s.dims and isinstance(s.dims[0], str)}
    known = _sizes_of(probe.specs, requests[0]) if requests else None
    for ceiling in INT_CEILINGS:
        probe.highest_int = ceiling
        probe.shapes = find_shapes(symbols, first, probe.attempt, known)
        if probe.shapes.error is None:
            break
    probe.result["groups"] = [asdict(g) for g in probe.shapes.groups]
    if probe.shapes.error is not None:
        raise RunError(f"no size was found with which the model runs: {probe.shapes.error}")


def _sizes_of(specs: list[InputSpec], row: Row) -> Sizes:
    sizes: Sizes = {}
    for spec in specs:
        for dim, size in zip(spec.dims, row[spec.name].shape, strict=True):
            if isinstance(dim, str):
                sizes[dim] = size
    return sizes


def _group_of(probe: Probe, symbol: int | str) -> DimFinding | None:
    return next((g for g in probe.shapes.groups if symbol in g.symbols), None)


def _batch(probe: Probe) -> DimFinding | str:
    """The group that counts rows, or why there is none."""
    groups: list[DimFinding] = []
    for spec in probe.specs:
        if not spec.dims:
            return f"input `{spec.name}` is a scalar, it has no rows to join"
        group = _group_of(probe, spec.dims[0])
        if group is None:
            return f"the first dimension of input `{spec.name}` is fixed at {spec.dims[0]}"
        if group.fixed is not None:
            return f"the first dimension of input `{spec.name}` only takes {group.fixed}: {group.why}"
        if any(d in group.symbols for d in spec.dims[1:]):
            return f"the first dimension of input `{spec.name}` also stands on another axis"
        groups.append(group)
    if not groups:
        return "the model takes no input"
    if any(g is not groups[0] for g in groups):
        return "the inputs choose their first dimensions independently of each other"
    return groups[0] if 1 in groups[0].works else f"a single row cannot be run: {groups[0].why}"


def _inner_choices(probe: Probe) -> list[Sizes]:
    """Up to two sets of sizes inside a row that work; one empty set when nothing inside is free."""
    batch = _batch(probe)
    rows = {} if isinstance(batch, str) else dict.fromkeys(batch.symbols, 1)
    inner = [g for g in probe.shapes.groups if g.fixed is None and g is not batch]
    if not inner:
        return [{**probe.shapes.base, **rows}]
    found: list[Sizes] = []
    for size in INNER_SIZES:
        sizes = {**probe.shapes.base, **rows, **{s: size for g in inner for s in g.symbols}}
        if len(found) < 2 and probe.attempt(sizes) is None:
            found.append(sizes)
    return found or [{**probe.shapes.base, **rows}]


def _write_requests(probe: Probe, requests: list[Row]) -> None:
    if not requests:
        choices = _inner_choices(probe)
        for i in range(N_SYNTHETIC):
            requests.append(make_inputs(probe.specs, choices[i % len(choices)], 100 + i, probe.highest_int))
    types = {s.name: s.datatype for s in probe.specs}
    lines = [{"inputs": [to_wire(n, types[n], a) for n, a in row.items()]} for row in requests]
    _write_lines(Path(probe.job["requests"]), lines)
    probe.result["n_requests"] = len(lines)
    probe.result["first_sizes"] = _sizes_of(probe.specs, requests[0])


def _write_lines(path: Path, lines: list[Any]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
    path.write_text(text, "utf-8")


def _run_twice(probe: Probe, requests: list[Row]) -> None:
    for row in requests[:4]:
        first, second = probe.runner.run(row), probe.runner.run(row)
        for (name, datatype), a, b in zip(probe.runner.outputs, first, second, strict=True):
            said = difference(a, b, datatype, probe.runner.longest_sum)
            if said is not None:
                probe.result["not_repeatable"] = f"two runs of the same input differ: output `{name}` {said}"
                return


def _write_golden(probe: Probe, requests: list[Row]) -> None:
    """Expected answers of the first requests; none for a model that does not repeat itself."""
    lines = []
    types = {s.name: s.datatype for s in probe.specs}
    for row in [] if "not_repeatable" in probe.result else requests[:MAX_GOLDEN]:
        outputs = probe.runner.run(row)
        named = [(n, t, a) for (n, t), a in zip(probe.runner.outputs, outputs, strict=True)]
        request = {"inputs": [to_wire(n, types[n], a) for n, a in row.items()]}
        lines.append(
            {
                "request": request,
                "outputs": [to_wire(*n) for n in named],
                "tolerance": _tolerance(named, probe.runner.longest_sum),
            }
        )
    _write_lines(Path(probe.job["golden"]), lines)
    probe.result["n_golden"] = len(lines)


def _tolerance(outputs: list[tuple[str, str, np.ndarray[Any, Any]]], longest_sum: int) -> dict[str, float]:
    """One tolerance for the line: the widest of its outputs."""
    floats = [
        (b, scale(a.astype(np.float64))) for _, t, a in outputs if (b := bounds(t, longest_sum)) is not None
    ]
    absolute = max((float(f"{b[0] * s:.2g}") for b, s in floats), default=0.0)
    return {"abs": absolute, "rel": max((b[1] for b, _ in floats), default=0.0)}


def _join(probe: Probe, requests: list[Row]) -> None:
    batch = _batch(probe)
    if isinstance(batch, str):
        verdict = JoinVerdict("none", None, batch, [])
    elif "not_repeatable" in probe.result:
        verdict = JoinVerdict("none", None, probe.result["not_repeatable"], [])
    else:
        choices = _inner_choices(probe)
        inner_is_free = any(g.fixed is None and g is not batch for g in probe.shapes.groups)
        plan = JoinPlan(
            row=lambda seed, i: make_inputs(probe.specs, choices[i], seed, probe.highest_int),
            n_inner=len(choices),
            inner_is_free=inner_is_free,
            sample_rows=_single_rows(requests) if probe.job.get("samples") else [],
        )
        verdict = probe_joining(probe.runner, plan)
        if verdict.mode == "equal-length":
            verdict = _pad(probe, batch, plan.sample_rows, verdict)
    probe.result["batching"] = asdict(verdict)
    probe.result["batch_symbols"] = [] if isinstance(batch, str) else list(batch.symbols)


def _pad(probe: Probe, batch: DimFinding, samples: list[Row], verdict: JoinVerdict) -> JoinVerdict:
    """Rows that may be joined at one length: whether they may be padded to it."""
    found = _try_padding(probe, batch, samples)
    tried = verdict.tried + found.tried
    if found.padding is None:
        return replace(verdict, why=f"{verdict.why}; {found.why}", tried=tried)
    why = f"rows do not depend on their batch mates {found.why}"
    return replace(verdict, mode="full", why=why, tried=tried, padding=found.padding)


def _try_padding(probe: Probe, batch: DimFinding, samples: list[Row]) -> PadVerdict:
    inner = [g for g in probe.shapes.groups if g.fixed is None and g is not batch]
    if len(inner) != 1:
        return PadVerdict(None, f"rows have {len(inner)} sizes of their own, padding is for one")
    symbols, axes = inner[0].symbols, {}
    for spec in probe.specs:
        places = [axis for axis, dim in enumerate(spec.dims) if dim in symbols]
        if len(places) > 1:
            return PadVerdict(None, f"input `{spec.name}` has the length on {len(places)} axes")
        if places:
            axes[spec.name] = places[0]

    def sizes(length: int) -> Sizes:
        rows = dict.fromkeys(batch.symbols, 1)
        return {**probe.shapes.base, **rows, **dict.fromkeys(symbols, length)}

    plan = PadPlan(
        row=lambda seed, length: make_inputs(probe.specs, sizes(length), seed, probe.highest_int),
        lengths=[n for n in PADDED_SIZES if probe.attempt(sizes(n)) is None],
        axes=axes,
        sample_rows=samples,
    )
    return probe_padding(probe.runner, plan)


def _single_rows(requests: list[Row]) -> list[Row]:
    rows = []
    for row in requests[:32]:
        n = min(a.shape[0] for a in row.values())
        rows += [{name: a[i : i + 1] for name, a in row.items()} for i in range(min(n, 4))]
    return rows


if __name__ == "__main__":
    main(sys.argv[1])
