"""The end: readiness first, nothing lost, `Connection: close` on the last answers, and no way to be held up for ever."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

import pytest

from seatrial.engine import Server
from tests.engine import tiny
from tests.engine.client import Connection, ask, raw_request
from tests.engine.conftest import Serve

LONG = 800_000  # turns of the loop: about a second


def test_readiness_goes_first_while_work_is_still_taken(serve: Serve, doubling: Path) -> None:
    server = serve(tiny.entry(doubling), drain={"grace_ms": 1500, "timeout_ms": 5000})
    kept = Connection(server.port)
    assert kept.request("GET", "/v2/health/ready").status == 200
    server.terminate()
    deadline = time.monotonic() + 1
    while (ready := ask(server.port, "GET", "/v2/health/ready")).status == 200:
        assert time.monotonic() < deadline, "still ready"
    assert (ready.status, ready.json) == (503, {"ready": False, "live": True})
    assert ask(server.port, "GET", "/v2/health/live").json == {"ready": False, "live": True}
    assert ask(server.port, "GET", "/v2/models/doubling/ready").status == 503
    assert ask(server.port, "GET", "/v2/models").json[0]["state"] == "UNLOADING"
    last = kept.request("POST", "/v2/models/doubling/infer", tiny.rows(1, 2))
    assert (last.status, last.headers["connection"]) == (200, "close")
    assert kept.closed()
    kept.close()
    assert server.wait(10) == 0


def test_kept_alive_load_loses_nothing(serve: Serve, doubling: Path) -> None:
    server = serve(tiny.entry(doubling), drain={"grace_ms": 400, "timeout_ms": 5000})
    lost: list[str] = []
    answered = [0] * 8
    stop = threading.Event()

    def load(n: int) -> None:
        connection: Connection | None = None
        while not stop.is_set():
            try:
                connection = connection or Connection(server.port, timeout=5)
            except ConnectionRefusedError:
                return  # the port is closed: no request was taken that could be lost
            try:
                answer = connection.request("POST", "/v2/models/doubling/infer", tiny.rows(n, n))
            except OSError as error:
                lost.append(f"{n}: {error!r} after {answered[n]} answers")
                return
            if answer.status != 200:
                lost.append(f"{n}: {answer.status} {answer.body!r}")
            answered[n] += 1
            if answer.headers.get("connection") == "close":
                connection.close()
                connection = None
            time.sleep(0.005)  # 8 clients make about 1,000 requests/s at most

    clients = [threading.Thread(target=load, args=(n,)) for n in range(8)]
    for client in clients:
        client.start()
    time.sleep(0.5)
    server.terminate()
    code = server.wait(10)
    stop.set()
    for client in clients:
        client.join(10)
    assert (code, lost) == (0, [])
    assert min(answered) > 20
    assert server.drained is not None
    assert server.drained["failed"] == 0
    assert server.drained["answered"] > 0


def test_work_in_flight_is_answered(serve: Serve, spinning: Path) -> None:
    server = serve(tiny.entry(spinning))
    with Connection(server.port) as connection:
        connection.send(raw_request("POST", "/v2/models/spinning/infer", tiny.steps(LONG)))
        time.sleep(0.2)
        server.terminate()
        answer = connection.read()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert server.wait(5) == 0
    assert server.drained == {"event": "drained", "answered": 1, "failed": 0}


def test_a_second_signal_ends_it_at_once(serve: Serve, spinning: Path) -> None:
    server = serve(tiny.entry(spinning))
    with Connection(server.port) as connection:
        connection.send(raw_request("POST", "/v2/models/spinning/infer", tiny.steps(20 * LONG)))
        time.sleep(0.2)
        server.terminate()
        time.sleep(0.2)
        assert server.returncode is None
        start = time.monotonic()
        server.terminate()
        assert server.wait(5) == 1
        took = time.monotonic() - start
        assert took < 1.0, f"it took {took:.2f} s"
        with pytest.raises(ConnectionError):
            connection.read()
    assert server.drained == {"event": "drained", "answered": 0, "failed": 1}


def test_a_drain_has_an_end(serve: Serve, spinning: Path) -> None:
    server = serve(tiny.entry(spinning), drain={"grace_ms": 0, "timeout_ms": 300})
    with Connection(server.port) as connection:
        connection.send(raw_request("POST", "/v2/models/spinning/infer", tiny.steps(20 * LONG)))
        time.sleep(0.2)
        server.terminate()
        assert server.wait(3) == 1


def test_idle_connections_do_not_hold_it_up(serve: Serve, doubling: Path) -> None:
    server = serve(tiny.entry(doubling))
    with Connection(server.port) as idle, Connection(server.port) as silent:
        assert idle.request("GET", "/v2").status == 200
        start = time.monotonic()
        server.terminate()
        assert server.wait(5) == 0
        assert time.monotonic() - start < 2.0
        assert idle.closed()
        assert silent.closed()


def test_the_port_file_lives_as_long_as_the_server(serve: Serve, doubling: Path, tmp_path: Path) -> None:
    file = tmp_path / "port"
    server = serve(tiny.entry(doubling), listen={"host": "127.0.0.1", "port": 0, "port_file": str(file)})
    assert file.read_text() == f"{server.port}\n"
    assert server.stop() == 0
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_drains_as_well(doubling: Path) -> None:
    with Server(tiny.config(tiny.entry(doubling))) as server:
        server.wait_ready(60)
        server._process.send_signal(signal.SIGINT)
        assert server.wait(5) == 0
        assert json.dumps(server.drained) == '{"event": "drained", "answered": 0, "failed": 0}'
