"""Servers of this room's tests, ended with the test that asked for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.bench.servers import Handler, Server


@pytest.fixture
def serve() -> Iterator[Callable[[Handler], Server]]:
    """Starts servers on free loopback ports."""
    started: list[Server] = []

    def start(handler: Handler) -> Server:
        started.append(Server(handler))
        return started[-1]

    yield start
    for server in started:
        server.stop()
