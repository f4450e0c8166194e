"""A draft package, made once and copied for every test that breaks it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seatrial.check import init_package
from tests.check.modelling import I64, const, model, node, save, value


@pytest.fixture(scope="session")
def draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of a small model with a lookup, a product and two inputs."""
    folder = tmp_path_factory.mktemp("draft")
    proto = model(
        [
            node("Gather", ["table", "ids"], ["rows"]),
            node("ReduceSum", ["rows", "axis"], ["sum"], keepdims=0),
            node("Concat", ["sum", "x"], ["both"], axis=1),
            node("MatMul", ["both", "w"], ["y"], name="head"),
        ],
        [value("ids", ["batch", 3], I64), value("x", ["batch", 2])],
        [value("y", ["batch", 1])],
        [
            const("table", [[i, 2 * i] for i in range(8)]),
            const("axis", [1], "int64"),
            const("w", [[1.0], [2.0], [3.0], [4.0]]),
        ],
    )
    return init_package(save(proto, folder / "tiny.onnx"), folder / "tiny")


@pytest.fixture
def package(draft: Path, tmp_path: Path) -> Path:
    """A copy of the draft that may be broken."""
    target = tmp_path / "package"
    shutil.copytree(draft, target)
    return target
