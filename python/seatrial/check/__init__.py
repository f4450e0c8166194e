"""What a model file is, by reading and by running it, and whether a package's promises hold: init and level L."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.check.facts import GraphTensor, ModelFacts, Work
    from seatrial.check.findings import FINDINGS, CheckReport, Finding, FindingKind
    from seatrial.check.init import init_package
    from seatrial.check.inspect import inspect_model
    from seatrial.check.lint import check_package
    from seatrial.check.sarif import to_sarif
    from seatrial.check.tensors import from_wire, to_wire

__all__ = [
    "FINDINGS",
    "CheckReport",
    "Finding",
    "FindingKind",
    "GraphTensor",
    "ModelFacts",
    "Work",
    "check_package",
    "from_wire",
    "init_package",
    "inspect_model",
    "to_sarif",
    "to_wire",
]

# Name -> module that holds it; imported when asked for, so that `check` does not pay for `init`.
_HOMES = {
    "FINDINGS": "findings",
    "CheckReport": "findings",
    "Finding": "findings",
    "FindingKind": "findings",
    "GraphTensor": "facts",
    "ModelFacts": "facts",
    "Work": "facts",
    "check_package": "lint",
    "from_wire": "tensors",
    "init_package": "init",
    "inspect_model": "inspect",
    "to_sarif": "sarif",
    "to_wire": "tensors",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module `seatrial.check` has no attribute `{name}`")
    return getattr(importlib.import_module(f"seatrial.check.{_HOMES[name]}"), name)
