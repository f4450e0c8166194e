"""Levels of priority: who asks for the first is served before those who came earlier with less."""

from __future__ import annotations

import re
import time
from pathlib import Path

from tests.engine import tiny
from tests.engine.client import Connection, metric, raw_request
from tests.engine.conftest import Serve

LONG = 800_000  # turns of the loop: about a second
SHORT = 100_000  # starts of runs lie an eighth of that apart, far more than a stamp is off
PATH = "/v2/models/spinning/infer"


def test_the_first_level_is_served_first_and_the_default_is_the_last(serve: Serve, spinning: Path) -> None:
    port = serve(tiny.entry(spinning, priority_levels=3)).port
    running = Connection(port)
    running.send(raw_request("POST", PATH, tiny.steps(LONG)))
    _wait_for(port, "seatrial_batching_released_total", 1, reason="single")
    waiting: list[tuple[int, float, Connection]] = []
    for n, priority in enumerate((0, 3, 2, 1), 1):
        connection, sent = Connection(port), time.monotonic()
        connection.send(raw_request("POST", PATH, tiny.steps(SHORT, priority=priority), seatrial_stages="1"))
        waiting.append((priority, sent, connection))
        _wait_for(port, "seatrial_batching_queued_rows", n)
    started = {}
    for priority, sent, connection in waiting:
        found = re.search(r"queue=([\d.]+)", connection.read().headers["seatrial-stages"])
        assert found is not None
        started[priority] = sent + float(found[1]) / 1e6
        connection.close()
    running.close()
    assert sorted(started, key=lambda priority: started[priority]) == [1, 2, 0, 3], started


def _wait_for(port: int, name: str, value: float, **labels: str) -> None:
    deadline = time.monotonic() + 10
    while metric(port, name, model="spinning", **labels) < value:
        assert time.monotonic() < deadline, f"{name} does not reach {value}"
        time.sleep(0.005)
