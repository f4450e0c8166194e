"""Our server with the models that Triton had when the golden pairs were recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seatrial.contract import load_package
from seatrial.engine import EngineOptions, Server, resolve, start
from tests.conformance.models import MODELS, pack_model


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("mirror")
    packages = [load_package(pack_model(model, folder)) for model in MODELS]
    with start(resolve(packages, EngineOptions(grpc_port=0)), timeout=120) as server:
        yield server
