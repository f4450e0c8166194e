"""Servers for tests: one shared by those that only ask, and a maker for those that need one of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from seatrial.engine import Server, start
from tests.engine import tiny

Serve = Callable[..., Server]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny.doubling(folder)
    tiny.spinning(folder)
    return folder


@pytest.fixture(scope="session")
def doubling(model_folder: Path) -> Path:
    return model_folder / "doubling.onnx"


@pytest.fixture(scope="session")
def spinning(model_folder: Path) -> Path:
    return model_folder / "spinning.onnx"


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that end with the test."""
    with ExitStack() as stack:

        def make(*models: dict[str, Any], **changes: Any) -> Server:
            return stack.enter_context(start(tiny.config(*models, **changes), timeout=60))

        yield make


@pytest.fixture(scope="session")
def port(doubling: Path, spinning: Path) -> Iterator[int]:
    """A server with both models for tests that leave no trace in it."""
    with start(tiny.config(tiny.entry(doubling), tiny.entry(spinning)), timeout=60) as server:
        yield server.port
