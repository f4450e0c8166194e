"""The hand-written stub of the native module says what the built module holds."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import seatrial
from seatrial import _native

STUB = Path(seatrial.__file__).with_name("_native.pyi")


def test_the_stub_matches_the_built_module() -> None:
    functions, values = {}, set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = (ast.get_docstring(node), [a.arg for a in node.args.args])
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            values.add(node.target.id)
    built = {name for name in dir(_native) if not name.startswith("__") or name == "__version__"}
    assert functions.keys() | values == built
    for name, (doc, parameters) in functions.items():
        function = getattr(_native, name)
        assert inspect.getdoc(function) == doc
        assert list(inspect.signature(function).parameters) == parameters


def test_the_versions_agree() -> None:
    assert _native.__version__ == seatrial.__version__
