"""The hand-written stub of the native module says what the built module holds."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import seatrial
from seatrial import _native

STUB = Path(seatrial.__file__).with_name("_native.pyi")


def test_the_stub_matches_the_built_module() -> None:
    functions, classes, values = {}, [], set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = (ast.get_docstring(node), [a.arg for a in node.args.args])
        elif isinstance(node, ast.ClassDef):
            classes.append(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            values.add(node.target.id)
    built = {name for name in dir(_native) if not name.startswith("__") or name == "__version__"}
    assert functions.keys() | values | {c.name for c in classes} == built
    for name, (doc, parameters) in functions.items():
        function = getattr(_native, name)
        assert inspect.getdoc(function) == doc
        assert list(inspect.signature(function).parameters) == parameters
    for stub in classes:
        _same_class(stub, getattr(_native, stub.name))


def _same_class(stub: ast.ClassDef, built: type) -> None:
    assert inspect.getdoc(built) == ast.get_docstring(stub)
    methods = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert methods.keys() - {"__new__"} == {name for name in vars(built) if not name.startswith("__")}
    for name, node in methods.items():
        parameters = [a.arg for a in node.args.args][1:]
        found = built if name == "__new__" else getattr(built, name)
        assert [p for p in inspect.signature(found).parameters if p != "self"] == parameters
        if name != "__new__":  # its docstring is the class's own
            assert inspect.getdoc(found) == ast.get_docstring(node)


def test_the_versions_agree() -> None:
    assert _native.__version__ == seatrial.__version__
