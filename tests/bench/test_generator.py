"""The generator's process from outside: whole runs, and every way to end one early. What was measured is kept."""

from __future__ import annotations

import os
import resource
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.bench import Body, ClosedLoop, LoadPlan, OpenLoop, Target, run_load, summarise
from seatrial.bench.summary import read_rows
from seatrial.errors import EngineError, MissingError, UsageError
from tests.bench.servers import OK, Handler, Server, answers, read_request

Serve = Callable[[Handler], Server]


def plan(server: Server, rate: float = 100, seconds: float = 1, **changes: int) -> LoadPlan:
    target = Target("127.0.0.1", server.port, "/x")
    return LoadPlan(target, OpenLoop(rate, seconds, "constant"), (Body(b"hello"),), **changes)


def test_a_run_from_end_to_end(tmp_path: Path, serve: Serve) -> None:
    stages = b"HTTP/1.1 200 OK\r\nseatrial-stages: accept=12;run=140.5\r\nContent-Length: 2\r\n\r\nok"
    ticks: list[dict[str, int]] = []
    pids: list[int] = []
    result = run_load(
        plan(serve(answers(stages)), 100, 2.2),
        output=tmp_path / "a b",
        on_second=ticks.append,
        on_start=pids.append,
    )
    assert (result.died, result.interrupted, result.cut_short) == (None, False, False)
    assert [tick["event"] for tick in ticks] == ["second"] * len(ticks)
    assert len(ticks) == 2
    assert not Path(f"/proc/{pids[0]}").exists()
    found = summarise(result.folder)
    assert (found.intended, found.ok, found.errors, found.not_sent) == (220, 220, {}, 0)
    assert found.stages_ms["run"].p50 == pytest.approx(0.1405)
    assert found.stages_ms["run"].n == 220
    assert (found.mode, found.arrivals, found.rate_per_s, found.seed) == ("open", "constant", 100, 1)
    assert sum(point.ok for point in found.series) == 220


def test_the_same_seed_sends_the_same_timetable(tmp_path: Path, serve: Serve) -> None:
    server = serve(answers())
    due = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        schedule = OpenLoop(300, 0.5, "poisson", seed)
        run_load(LoadPlan(Target("127.0.0.1", server.port, "/"), schedule), output=tmp_path / name)
        due.append(sorted(read_rows(tmp_path / name / "requests.arrow").intended.tolist()))
    assert due[0] == due[1]
    assert due[0] != due[2]


def test_a_closed_loop_is_labelled(tmp_path: Path, serve: Serve) -> None:
    schedule = ClosedLoop(2, 0.5)
    run_load(LoadPlan(Target("127.0.0.1", serve(answers()).port, "/"), schedule), output=tmp_path)
    found = summarise(tmp_path)
    assert (found.mode, found.arrivals, found.rate_per_s, found.seed) == ("closed", "none", None, None)
    assert found.ok > 10
    assert read_rows(tmp_path / "requests.arrow").metadata["mode"] == "closed"


def test_a_killed_generator_leaves_what_it_measured(tmp_path: Path, serve: Serve) -> None:
    pids: list[int] = []

    def second(event: dict[str, float]) -> None:
        if event["t"] > 2:
            os.kill(pids[0], signal.SIGKILL)

    result = run_load(
        plan(serve(answers()), 100, 60), output=tmp_path, on_start=pids.append, on_second=second
    )
    assert result.died is not None
    assert result.died.startswith("generator died: ended by SIGKILL")
    assert result.cut_short
    found = summarise(tmp_path)
    # All but the last second: at least 100 of the 200 that were due when it was killed.
    assert found.ok >= 100
    assert found.cut_short
    assert found.response_ms.n == found.ok
    assert "generator died" in found.generator.why


def test_a_stop_keeps_what_was_measured(tmp_path: Path, serve: Serve) -> None:
    stop = threading.Event()
    result = run_load(
        plan(serve(answers()), 100, 60), output=tmp_path, on_second=lambda _: stop.set(), stop=stop
    )
    assert (result.interrupted, result.died) == (True, None)
    assert result.done is not None
    assert result.done["cut_short"]
    assert result.done["intended"] + result.done["never_due"] == 6000
    found = summarise(tmp_path)
    assert found.cut_short
    assert 90 <= found.ok <= 1000
    assert found.duration_s < 20


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path, serve: Serve) -> None:
    def interrupt(_event: object) -> None:
        raise KeyboardInterrupt

    result = run_load(plan(serve(answers()), 100, 60), output=tmp_path, on_second=interrupt)
    assert result.interrupted
    assert summarise(tmp_path).ok >= 90


def test_a_server_that_dies_in_the_middle(tmp_path: Path, serve: Serve) -> None:
    server = serve(answers())
    result = run_load(
        plan(server, 100, 2), output=tmp_path, on_second=lambda e: server.stop() if e["t"] < 1.5 else None
    )
    assert result.died is None
    found = summarise(tmp_path)
    assert found.ok >= 50
    assert found.errors["connect"] >= 50
    assert found.ok + sum(found.errors.values()) == found.intended == 200
    assert found.response_ms.n == found.ok + found.errors.get("timeout", 0)


def test_a_server_that_begins_to_talk_nonsense(tmp_path: Path, serve: Serve) -> None:
    served = iter(range(10**6))

    def handle(connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            while read_request(stream) is not None:
                connection.sendall(OK if next(served) < 50 else b"\x16\x03\x01 what?\r\n\r\n")

    run_load(plan(serve(handle), 100, 1), output=tmp_path)
    found = summarise(tmp_path)
    assert (found.ok, found.errors) == (50, {"protocol": 50})


def test_a_generator_that_is_held_up_is_called_saturated(tmp_path: Path, serve: Serve) -> None:
    # B02: the generator loses its core for a while; what it then finds is not the server's doing.
    pids: list[int] = []

    def second(event: dict[str, float]) -> None:
        if event["t"] < 1.5:
            os.kill(pids[0], signal.SIGSTOP)
            threading.Timer(0.4, os.kill, (pids[0], signal.SIGCONT)).start()

    run_load(plan(serve(answers()), 100, 2), output=tmp_path, on_start=pids.append, on_second=second)
    found = summarise(tmp_path)
    assert found.ok == 200
    assert found.generator.saturated
    assert "lateness" in found.generator.why
    assert found.late_ms.max is not None
    assert found.late_ms.max > 200
    assert found.response_ms.max is not None
    assert found.response_ms.max >= found.late_ms.max


def test_too_few_places_make_the_generator_the_limit(tmp_path: Path, serve: Serve) -> None:
    silent = serve(lambda connection: connection.recv(1 << 20) and connection.recv(1))
    run_load(plan(silent, 1e6, 2e-4, max_in_flight=3, timeout_ms=400), output=tmp_path)
    found = summarise(tmp_path)
    assert found.intended == 200
    assert found.not_sent > 100
    assert found.not_sent + found.errors["timeout"] == 200
    assert found.response_ms.n == 200
    assert found.response_ms.p50.value is not None
    assert found.response_ms.p50.value >= 400
    assert "no free place" in found.generator.why


def test_a_full_disk_is_one_sentence_and_keeps_what_was_written(tmp_path: Path, serve: Serve) -> None:
    limit = 100_000

    def fill_up(pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, limit))

    with pytest.raises(MissingError, match=r"requests\.arrow` cannot be written: File too large") as caught:
        run_load(plan(serve(answers()), 400, 60), output=tmp_path, on_start=fill_up)
    assert "stays readable" in (caught.value.hint or "")
    file = tmp_path / "requests.arrow"
    assert 0 < file.stat().st_size <= limit
    assert summarise(tmp_path).ok >= 100


def test_a_generator_that_does_not_start_is_named(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(EngineError, match="generator died: ended with code 1"):
        run_load(plan(serve(answers(OK))), output=tmp_path)


def test_a_strangers_host_is_refused(tmp_path: Path) -> None:
    there = LoadPlan(Target("192.0.2.1", 80, "/"), OpenLoop(1, 1))
    with pytest.raises(UsageError, match="a load test of somebody else's host is a mistake"):
        run_load(there, output=tmp_path)


def test_a_folder_is_not_used_twice(tmp_path: Path, serve: Serve) -> None:
    server = serve(answers())
    run_load(plan(server, 100, 0.1), output=tmp_path)
    with pytest.raises(UsageError, match="already holds a run"):
        run_load(plan(server, 100, 0.1), output=tmp_path)
