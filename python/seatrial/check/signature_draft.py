"""The signature of a draft: what the file declares, corrected by what the probe found when it ran the model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from seatrial.check.facts import GraphTensor, ModelFacts
from seatrial.check.probe import ProbeResult

__all__ = ["DraftDim", "DraftTensor", "draft_signature", "probe_inputs", "table_range"]


@dataclass(frozen=True)
class DraftDim:
    """A dimension: `size` when fixed, else `name`; `why` where the file declared something else."""

    size: int | None = None
    name: str | None = None
    min: int = 0
    why: str | None = None


@dataclass(frozen=True)
class DraftTensor:
    """One input or output of the draft."""

    name: str
    datatype: str
    dims: tuple[DraftDim, ...]
    range: tuple[int, int] | None = None
    labels: tuple[str, ...] | None = None


def probe_inputs(facts: ModelFacts) -> list[dict[str, Any]]:
    """The inputs as the probe takes them: every free dimension with a symbol, made up where the file has none."""
    return [
        {
            "name": t.name,
            "datatype": t.datatype,
            "dims": _symbols(t, i),
            "range": table_range(facts, t.name),
        }
        for i, t in enumerate(facts.inputs)
    ]


def table_range(facts: ModelFacts, name: str) -> list[int] | None:
    """The legal ids of an input that is looked up in a table, and in nothing else."""
    rows = facts.tables.get(name)
    return None if rows is None else [0, rows - 1]


def draft_signature(
    facts: ModelFacts, probe: ProbeResult, labels: dict[str, list[str]], ranks: dict[str, list[int]]
) -> tuple[list[DraftTensor], list[DraftTensor]]:
    """Inputs and outputs of the draft. `ranks` are the shapes of one real answer, for outputs without a declared shape."""
    dims = _dim_names(facts, probe)
    inputs = [
        DraftTensor(
            t.name, str(t.datatype), tuple(_dim(s, dims) for s in _symbols(t, i)), _pair(facts, t.name)
        )
        for i, t in enumerate(facts.inputs)
    ]
    outputs = []
    for tensor in facts.outputs:
        declared = tensor.dims if tensor.dims is not None else tuple(None for _ in ranks.get(tensor.name, []))
        found = tuple(_output_dim(d, axis, tensor.name, dims, probe) for axis, d in enumerate(declared))
        named = tuple(labels[tensor.name]) if tensor.name in labels else None
        outputs.append(DraftTensor(tensor.name, str(tensor.datatype), found, None, named))
    return inputs, outputs


def _pair(facts: ModelFacts, name: str) -> tuple[int, int] | None:
    found = table_range(facts, name)
    return None if found is None else (found[0], found[1])


def _symbols(tensor: GraphTensor, number: int) -> list[int | str]:
    return [f"~{number}~{axis}" if d is None else d for axis, d in enumerate(tensor.dims or ())]


def _dim(symbol: int | str, dims: dict[str, DraftDim]) -> DraftDim:
    return DraftDim(size=symbol) if isinstance(symbol, int) else dims[symbol]


def _output_dim(
    declared: int | str | None, axis: int, output: str, dims: dict[str, DraftDim], probe: ProbeResult
) -> DraftDim:
    if isinstance(declared, int):
        return DraftDim(size=declared)
    if declared is not None and declared in dims:
        found = dims[declared]
        return DraftDim(found.size, found.name, why=found.why)
    rows = next((dims[s] for s in _batch_symbols(probe) if s in dims), None)
    # The probe saw as many rows out as in, so a first dimension with a name of its own is the batch all the same.
    if axis == 0 and rows is not None and rows.name is not None:
        return DraftDim(name=rows.name)
    return DraftDim(name=clean_name(declared if declared is not None else f"{output}_{axis}"))


def _batch_symbols(probe: ProbeResult) -> list[str]:
    return probe.batch_symbols if probe.batching is not None and probe.batching["mode"] != "none" else []


def _dim_names(facts: ModelFacts, probe: ProbeResult) -> dict[str, DraftDim]:
    """Symbol -> what it became. Symbols that must be equal share one name."""
    first = {s[0] for i, t in enumerate(facts.inputs) if (s := _symbols(t, i))}
    owners = {s: f"{t.name}_{a}" for i, t in enumerate(facts.inputs) for a, s in enumerate(_symbols(t, i))}
    taken: set[str] = set()
    found: dict[str, DraftDim] = {}
    for group in probe.groups:
        symbols: list[str] = list(group["symbols"])
        if group["fixed"] is not None:
            why = f"only size {group['fixed']} runs; {group['why'] or 'other sizes were refused'}"
            found.update(dict.fromkeys(symbols, DraftDim(size=group["fixed"], why=why[:500])))
            continue
        name = _group_name(symbols, first, owners)
        while name in taken:
            name += "_"
        taken.add(name)
        least = min(group["works"], default=1)
        dim = DraftDim(name=name, min=least if least > 1 else 0, why=group["why"])
        found.update(dict.fromkeys(symbols, dim))
    return found


def _group_name(symbols: list[str], first: set[int | str], owners: dict[int | str, str]) -> str:
    named = [s for s in symbols if not s.startswith("~")]
    if len(symbols) == 1 and named:
        return clean_name(named[0])
    if all(s in first for s in symbols):
        return "batch"
    return clean_name(named[0] if named else owners[symbols[0]])


def clean_name(text: str) -> str:
    """A name that the contract allows: other characters become `_`."""
    return re.sub(r"^[^A-Za-z0-9]+", "", re.sub(r"[^A-Za-z0-9._-]+", "_", text))[:100].rstrip("_") or "free"
