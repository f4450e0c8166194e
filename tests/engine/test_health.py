"""Readiness with the real runtime: a run that does not end turns it false, loading and work do not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.check import init_package
from seatrial.engine import EngineOptions, Repository, resolve, start
from tests.engine import models, tiny
from tests.engine.client import Connection, ask, infer, raw_request

PERIOD_S = 0.5


def ready(port: int) -> bool:
    return ask(port, "GET", "/v2/health/ready").status == 200


def seconds_until(reached: Callable[[], bool], limit: float = 20.0) -> float:
    begin = time.monotonic()
    while not reached():
        assert time.monotonic() - begin < limit, "it did not come"
        time.sleep(0.01)
    return time.monotonic() - begin


def slow_request(steps: int) -> bytes:
    """For slow_by_input.onnx: about a microsecond a step."""
    x = {"name": "x", "datatype": "FP32", "shape": [1, 64], "data": [0.0] * 64}
    turns = {"name": "steps", "datatype": "INT64", "shape": [], "data": [steps]}
    return json.dumps({"inputs": [x, turns], "parameters": {"timeout": 60_000_000}}).encode()


@pytest.mark.shared
def test_a_run_that_does_not_end_turns_readiness_false_within_two_periods(
    shared: Path, tmp_path: Path
) -> None:
    root = init_package(shared / "cases" / "models" / "slow_by_input.onnx", tmp_path / "slow_by_input")
    config = resolve(Repository((root,)).newest(), EngineOptions())
    config["health"] = {"probe_period_ms": round(PERIOD_S * 1000)}
    with start(config, timeout=60) as server, Connection(server.port, timeout=60) as busy:
        port = server.port
        assert infer(port, "slow_by_input", slow_request(1)).status == 200
        busy.send(raw_request("POST", "/v2/models/slow_by_input/infer", slow_request(4_000_000)))
        # A little more than the two periods: the request has a way to go, and the machine other things to do.
        assert seconds_until(lambda: not ready(port)) < 2 * PERIOD_S + 0.3
        assert ask(port, "GET", "/v2/health/live").status == 200
        (line,) = ask(port, "POST", "/v2/repository/index").json
        assert line["state"] == "UNAVAILABLE"
        assert "an executor has been in one run for" in line["reason"]
        assert busy.read().status == 200
        seconds_until(lambda: ready(port))


def test_loading_a_second_model_never_makes_readiness_false(tmp_path: Path) -> None:
    first = init_package(tiny.doubling(tmp_path), tmp_path / "doubling")
    repository = Repository((first,), tmp_path, EngineOptions())
    with start(resolve(repository.newest(), repository.options), timeout=60, repository=repository) as server:
        port = server.port
        models.package(tmp_path / "other", 3, weights=8_000_000)
        with Connection(port) as caller:
            caller.send(raw_request("POST", "/v2/repository/models/scaling/load"))
            looks = 0
            while not any(m["name"] == "scaling" and m["state"] == "READY" for m in index(port)):
                assert ready(port)
                looks += 1
            assert caller.read().status == 200
        assert looks > 3
        assert ready(port)


def test_an_idle_server_stays_ready_by_its_golden_row(tmp_path: Path) -> None:
    root = models.package(tmp_path / "p", 2)
    config = resolve(Repository((root,)).newest(), EngineOptions())
    assert config["models"][0]["golden"]
    config["health"] = {"probe_period_ms": 50}
    with start(config, timeout=60) as server:

        def rows() -> float:
            return float(
                ask(server.port, "GET", "/v2/models/scaling/stats").json["model_stats"][0]["execution_count"]
            )

        before = rows()
        seconds_until(lambda: rows() >= before + 3)
        assert ready(server.port)


def index(port: int) -> list[dict[str, str]]:
    lines: list[dict[str, str]] = ask(port, "POST", "/v2/repository/index").json
    return lines
