"""Samples and golden rows against the signature. Level L stops after a bounded number of values and says so."""

from __future__ import annotations

from math import prod
from typing import Any

from seatrial.check.findings import Finding, finding
from seatrial.check.tensors import flat_values, wire_fault
from seatrial.check.view import View
from seatrial.contract import (
    GOLDEN,
    REQUESTS,
    FreeDim,
    Golden,
    SampleTensor,
    Signature,
    TensorSpec,
    WireRequest,
    read_lines,
)

__all__ = ["sample_findings"]

MAX_LINES = 500
MAX_VALUES = 200_000
MAX_FINDINGS = 20


def sample_findings(view: View) -> list[Finding]:
    """What is wrong with samples/requests.jsonl and samples/golden.jsonl."""
    found = []
    for file, model, absent in ((REQUESTS, WireRequest, "SMP003"), (GOLDEN, Golden, "SMP004")):
        if not view.may_open(file):
            continue
        if not (view.root / file).is_file() or (view.root / file).stat().st_size == 0:
            found.append(finding(absent, file, f"`{file}` is missing or empty"))
            continue
        found += _lines(view, file, model)
    return found


def _lines(view: View, file: str, model: type[WireRequest] | type[Golden]) -> list[Finding]:
    signature: Signature | None = view.documents.get("signature.yaml")
    found: list[Finding] = []
    values = 0
    for number, checked in read_lines(view.root, file, model):
        if number > MAX_LINES or values > MAX_VALUES or len(found) >= MAX_FINDINGS:
            text = f"judged were {number - 1} lines with {values} values; the rest was not read"
            return [*found, finding("SMP005", file, text)]
        if checked.value is None:
            problem = checked.problems[0]
            found.append(finding("SMP001", file, problem.text, line=number, hint=problem.hint))
            continue
        line: Any = checked.value
        request: WireRequest = line if isinstance(line, WireRequest) else line.request
        outputs: list[SampleTensor] = [] if isinstance(line, WireRequest) else line.outputs
        values += sum(prod(max(d, 0) for d in t.shape) for t in (*request.inputs, *outputs))
        if signature is None:
            continue
        fault = _side_fault(request.inputs, signature.inputs)
        if fault is None and outputs:
            fault = _side_fault(outputs, signature.outputs)
        if fault is not None:
            found.append(finding("SMP002", file, fault, line=number))
    return found


def _side_fault(tensors: list[SampleTensor], specs: list[TensorSpec]) -> str | None:
    """The first way in which tensors do not fit their specifications."""
    given, wanted = [t.name for t in tensors], [s.name for s in specs]
    if sorted(given) != sorted(wanted):
        return f"holds {', '.join(given) or 'nothing'}; the signature has {', '.join(wanted)}"
    by_name = {s.name: s for s in specs}
    sizes: dict[str, int] = {}
    for tensor in tensors:
        fault = _tensor_fault(tensor, by_name[tensor.name], sizes)
        if fault is not None:
            return f"`{tensor.name}`: {fault}"
    return None


def _tensor_fault(tensor: SampleTensor, spec: TensorSpec, sizes: dict[str, int]) -> str | None:
    if tensor.datatype != spec.datatype:
        return f"is {tensor.datatype}, the signature has {spec.datatype}"
    if len(tensor.shape) != len(spec.dims):
        return f"has the shape {tensor.shape}, the signature has {len(spec.dims)} dimensions"
    for axis, (size, dim) in enumerate(zip(tensor.shape, spec.dims, strict=True)):
        fault = _size_fault(size, dim, sizes)
        if fault is not None:
            return f"axis {axis} is {size}, {fault}"
    fault = wire_fault(tensor.model_dump())
    if fault is not None or spec.range is None:
        return fault
    low, high = spec.range
    outside = next((v for v in flat_values(tensor.data) if not low <= v <= high), None)
    return None if outside is None else f"the value {outside} is outside the range [{low}, {high}]"


def _size_fault(size: int, dim: int | FreeDim, sizes: dict[str, int]) -> str | None:
    if isinstance(dim, int):
        return None if size == dim else f"the signature has {dim}"
    if size < dim.min or (dim.max is not None and size > dim.max):
        return f"`{dim.name}` is {dim.min} to {dim.max}"
    known = sizes.setdefault(dim.name, size)
    return None if known == size else f"`{dim.name}` is {known} elsewhere in the same line"
