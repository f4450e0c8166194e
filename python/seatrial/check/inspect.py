"""`inspect_model`: the facts of a model file, with the work of one row counted in a process of its own."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from seatrial.check.facts import ModelFacts, Work, collect_facts
from seatrial.check.findings import Finding
from seatrial.check.probe.parent import LEAST_MEMORY_BYTES, run_child
from seatrial.check.reading import read_model
from seatrial.check.signature_draft import probe_inputs
from seatrial.errors import ContractError

__all__ = ["inspect_model", "refuse", "work_of"]

TIMEOUT_S = 60.0


def inspect_model(path: Path | str, sizes: dict[str, int] | None = None) -> ModelFacts:
    """What a model file is. `sizes` are those of its free dimensions, by symbol; each is 1 unless said otherwise."""
    file = Path(path)
    parsed = read_model(file, file.name)
    if isinstance(parsed, Finding):
        raise refuse([parsed])
    facts = collect_facts(parsed)
    return replace(facts, work=work_of(file, facts, sizes or {}))


def work_of(path: Path, facts: ModelFacts, sizes: dict[str, int]) -> Work | None:
    """The work of one row, or None when the graph defies shape inference."""
    with tempfile.TemporaryDirectory(prefix="seatrial-work-") as folder:
        result = Path(folder) / "result.json"
        memory = LEAST_MEMORY_BYTES + 8 * facts.file_bytes
        document = {
            "model": str(path.absolute()),
            "result": str(result),
            "sizes": sizes,
            "inputs": probe_inputs(facts),
            "memory_bytes": memory,
        }
        if (
            run_child("seatrial.check.work", document, Path(folder), TIMEOUT_S) is not None
            or not result.exists()
        ):
            return None
        return Work(**json.loads(result.read_text("utf-8")))


def refuse(findings: list[Finding]) -> ContractError:
    """The error of a model that cannot be packed: the first finding's text and cure."""
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return ContractError(f"{first.text}{more}", hint=first.hint, file=first.file, line=first.line)
