"""A small model and a draft package of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.check import init_package
from tests.check.modelling import model, node, save, value


@pytest.fixture(scope="session")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    proto = model([node("Identity", ["x"], ["y"])], [value("x", ["n", 2])], [value("y", ["n", 2])])
    return save(proto, tmp_path_factory.mktemp("cli") / "echo.onnx")


@pytest.fixture(scope="session")
def draft(echo: Path) -> Path:
    return init_package(echo, echo.parent / "draft")
