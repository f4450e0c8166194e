"""Case B01: a server that is silent for four seconds. The stall must not vanish from the percentiles."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from seatrial.bench import Body, LoadPlan, OpenLoop, Target, run_load, summarise
from seatrial.bench.summary import read_rows


@contextlib.contextmanager
def stalling_server(script: Path) -> Iterator[int]:
    """The shared server takes its port as an argument, so a free one is looked for, again if somebody was faster."""
    for _ in range(5):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with subprocess.Popen([sys.executable, str(script), str(port)], stderr=subprocess.DEVNULL) as server:
            try:
                if listening(server, port):
                    yield port
                    return
            finally:
                server.kill()
    pytest.fail("no free port in five tries")


def listening(server: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + 20
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_the_stall_is_in_the_percentiles(tmp_path: Path, shared: Path, arrivals: str) -> None:
    case = json.loads((shared / "cases/bench/stall.json").read_text())
    with stalling_server(shared / "cases/bench/stall_server.py") as port:
        schedule = OpenLoop(100, 20, arrivals)  # type: ignore[arg-type]
        run_load(LoadPlan(Target("127.0.0.1", port, "/"), schedule, (Body(b"x"),)), output=tmp_path)
    found = summarise(tmp_path)
    response = found.response_ms
    words = f"{arrivals}, seed 1, {response.text('p90')}, {response.text('p99')}, max {response.text('max')}"
    assert found.ok == found.intended == response.n, words
    assert response.max == pytest.approx(case["max"] * 1e3, rel=0.05), words
    assert response.p99.value == pytest.approx(expected(tmp_path, case, "p99", arrivals), rel=0.05), words
    assert response.p90.value == pytest.approx(expected(tmp_path, case, "p90", arrivals), rel=0.05), words
    assert response.p50.value is not None
    assert response.p50.value < 100, words
    if arrivals == "constant":
        assert response.n == case["requests"]


def expected(folder: Path, case: dict[str, float], name: str, arrivals: str) -> float:
    """The oracle in milliseconds: the case's own for even gaps, else worked out from the timetable."""
    if arrivals == "constant":
        return case[name] * 1e3
    due = np.sort(read_rows(folder / "requests.arrow").intended) / 1e9
    since_first = due - due[0]
    stalled = (since_first >= 8) & (since_first < 12)
    response = np.sort(0.005 + np.where(stalled, 12 - since_first, 0))
    return float(response[math.ceil({"p90": 0.9, "p99": 0.99}[name] * len(due)) - 1] * 1e3)
