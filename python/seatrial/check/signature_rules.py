"""The signature against the graph: names, order, datatypes, ranks, sizes, and the ids of lookup tables."""

from __future__ import annotations

from seatrial.check.facts import GraphTensor
from seatrial.check.findings import Finding, finding
from seatrial.check.view import View
from seatrial.contract import FixedDim, FreeDim, Signature, TensorSpec

__all__ = ["signature_findings"]

FILE = "signature.yaml"


def signature_findings(view: View) -> list[Finding]:
    """Every difference between what is promised and what the file has."""
    signature: Signature | None = view.documents.get(FILE)
    if signature is None or view.facts is None:
        return []
    found = []
    for side, specs, tensors in (
        ("inputs", signature.inputs, view.facts.inputs),
        ("outputs", signature.outputs, view.facts.outputs),
    ):
        found += _side(view, side, specs, tensors)
    return found + _maximum_findings(view, signature) + _table_findings(view, signature)


def _side(view: View, side: str, specs: list[TensorSpec], tensors: tuple[GraphTensor, ...]) -> list[Finding]:
    declared, actual = [s.name for s in specs], [t.name for t in tensors]
    if set(declared) != set(actual):
        missing = ", ".join(f"`{n}`" for n in actual if n not in declared) or "none"
        extra = ", ".join(f"`{n}`" for n in declared if n not in actual) or "none"
        text = f"{side}: missing from the signature {missing}; not in the graph {extra}"
        return [finding("SIG001", FILE, text, line=view.line(FILE, side))]
    found = []
    if declared != actual:
        text = f"{side} are {declared}, in the graph {actual}"
        found.append(finding("SIG005", FILE, text, line=view.line(FILE, side)))
    by_name = {t.name: t for t in tensors}
    for i, spec in enumerate(specs):
        found += _tensor(view, (side, i), spec, by_name[spec.name])
    return found


def _tensor(view: View, at: tuple[str, int], spec: TensorSpec, tensor: GraphTensor) -> list[Finding]:
    found = []
    if spec.datatype != tensor.datatype:
        text = f"`{spec.name}` is {spec.datatype}, in the graph {tensor.datatype or tensor.kind}"
        found.append(finding("SIG002", FILE, text, line=view.line(FILE, *at, "datatype")))
    if tensor.dims is None:
        return found
    if len(spec.shape) != len(tensor.dims):
        text = f"`{spec.name}` has {len(spec.shape)} dimensions, in the graph {len(tensor.dims)}"
        return [*found, finding("SIG003", FILE, text, line=view.line(FILE, *at, "shape"))]
    for axis, (promised, actual) in enumerate(zip(spec.shape, tensor.dims, strict=True)):
        line = view.line(FILE, *at, "shape", axis)
        where = f"`{spec.name}`, axis {axis}"
        size = promised.size if isinstance(promised, FixedDim) else promised
        if isinstance(actual, int) and isinstance(size, FreeDim):
            text = f"{where}: `{size.name}` is declared free, in the graph it is {actual}"
            found.append(finding("SIG004", FILE, text, line=line))
        elif isinstance(actual, int) and size != actual:
            found.append(finding("SIG004", FILE, f"{where} is {size}, in the graph {actual}", line=line))
        elif not isinstance(actual, int) and isinstance(promised, int):
            symbol = f"`{actual}`" if actual else "free"
            found.append(
                finding("SIG007", FILE, f"{where} is {promised}, in the graph it is {symbol}", line=line)
            )
    return found


def _maximum_findings(view: View, signature: Signature) -> list[Finding]:
    """A free input dimension without a maximum, said once for each name."""
    seen: set[str] = set()
    found = []
    for i, spec in enumerate(signature.inputs):
        for axis, dim in enumerate(spec.shape):
            if isinstance(dim, FreeDim) and dim.max is None and dim.name not in seen:
                seen.add(dim.name)
                line = view.line(FILE, "inputs", i, "shape", axis)
                found.append(finding("SIG008", FILE, f"`{dim.name}` has no maximum", line=line))
    return found


def _table_findings(view: View, signature: Signature) -> list[Finding]:
    tables = {} if view.facts is None else view.facts.tables
    found = []
    for i, spec in enumerate(signature.inputs):
        rows = tables.get(spec.name)
        if rows is None:
            continue
        if spec.range is None:
            text = f"`{spec.name}` is looked up in a table of {rows} rows, but has no range"
        elif spec.range[0] < 0 or spec.range[1] > rows - 1:
            text = (
                f"`{spec.name}` has the range [{spec.range[0]}, {spec.range[1]}], its table has {rows} rows"
            )
        else:
            continue
        cure = f"write `range: [0, {rows - 1}]`; the runtime reads the last row for -1 and fails the batch beyond"
        line = view.line(FILE, "inputs", i, "range")
        found.append(finding("SIG006", FILE, text, line=line, hint=cure))
    return found
