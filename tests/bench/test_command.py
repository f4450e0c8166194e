"""`seatrial bench run` from the shell: JSON for machines, a table for people, exit codes, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.records import load_record
from tests.bench.servers import Handler, Server, answers, read_request

Serve = Callable[[Handler], Server]


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "from seatrial.cli import main; main()",
        "bench",
        "run",
        *map(str, arguments),
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def measured(*arguments: str | Path) -> dict[str, Any]:
    run = bench(*arguments, "--json")
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_the_json_has_the_promised_keys(serve: Serve) -> None:
    found = measured(serve(answers()).url, "--rate", "200/s", "--duration", "1s", "--seed", "5")
    assert {
        "intended",
        "sent",
        "completed",
        "errors",
        "not_sent",
        "response_ms",
        "service_ms",
        "late_ms",
        "generator",
    } <= set(found)
    for name in ("response_ms", "service_ms", "late_ms"):
        assert {"p50", "p90", "p95", "p99", "p999", "max", "n"} <= set(found[name])
        assert found[name]["p999"] == found[name]["max"]
        assert found[name]["needs"]["p99"] == 662
    assert {"cpu_share", "saturated"} <= set(found["generator"])
    assert found["intended"] == found["sent"] == found["completed"] == found["response_ms"]["n"]
    assert (found["errors"], found["not_sent"], found["seed"], found["mode"]) == ({}, 0, 5, "open")
    assert "--seed 5" in found["command"]


def test_bodies_headers_and_methods_reach_the_server(tmp_path: Path, serve: Serve) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def handle(connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            while (request := read_request(stream)) is not None:
                seen.append(request)
                connection.sendall(b"HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n")

    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(name))
    url = serve(handle).url + "?q=1"
    measured(
        url, "--rate", "20/s", "--duration", "0.5s", "--arrivals", "constant", "--method", "PUT", "--header", "X-Team: blue",
        "--body", tmp_path / "a.json", "--body", tmp_path / "b.json", "--max-in-flight", "1",
    )  # fmt: skip
    assert [body for _, body in seen] == [b'"a.json"', b'"b.json"'] * 5
    assert all(
        head.startswith(b"PUT /x?q=1 HTTP/1.1\r\n") and b"X-Team: blue\r\n" in head for head, _ in seen
    )


def test_a_saturated_generator_is_said_in_words_and_in_json(serve: Serve) -> None:
    slow = serve(answers(before=lambda: time.sleep(0.05)))
    options = ("--rate", "100/s", "--duration", "0.3s", "--max-in-flight", "1")
    found = measured(slow.url, *options)
    assert found["generator"]["saturated"] is True
    assert found["verdict"].startswith("generator saturated")
    text = bench(slow.url, *options)
    assert text.returncode == 0
    assert "generator saturated: the figures are lower bounds" in text.stdout


def test_the_table_gives_no_percentile_without_its_sample_size(serve: Serve) -> None:
    run = bench(serve(answers()).url, "--rate", "100/s", "--duration", "1s", "--arrivals", "constant")
    assert run.returncode == 0, run.stderr
    assert "open loop, constant 100/s, 1 s, seed 1" in run.stdout
    assert run.stdout.count("n too small: needs 662") == 3
    assert any(line.split() == ["n", "100", "100", "100"] for line in run.stdout.splitlines())


def test_a_closed_loop_is_labelled(serve: Serve) -> None:
    run = bench(serve(answers()).url, "--closed", "2", "--duration", "0.3s")
    assert run.stdout.startswith("closed loop, 0.3 s\n")


def test_an_output_folder_gets_a_record(tmp_path: Path, serve: Serve) -> None:
    measured(serve(answers()).url, "--rate", "50/s", "--duration", "0.5s", "--output", tmp_path)
    (file,) = tmp_path.rglob("record.json")
    record = load_record(file.parent)
    assert (record.kind, record.status, record.seed) == ("bench", "complete", 1)
    assert (file.parent / "load" / "requests.arrow").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("http://192.0.2.1/", "--rate", "1/s", "--duration", "1s"), 2, "not this machine"),
        (("https://127.0.0.1/", "--rate", "1/s", "--duration", "1s"), 2, "http://"),
        (("http://127.0.0.1:9/", "--duration", "1s"), 2, "`--rate` or `--closed`"),
        (("http://127.0.0.1:9/", "--rate", "100", "--duration", "1s"), 2, "rate with its unit"),
        (("http://127.0.0.1:9/", "--rate", "1/s", "--duration", "1s", "--header", "x"), 2, "NAME: VALUE"),
        (("http://127.0.0.1:9/", "--rate", "1/s", "--duration", "1s", "--binary"), 2, "--binary"),
        (("/nonexistent", "--rate", "1/s", "--duration", "1s"), 2, "no package folder"),
    ],
)
def test_wrong_use_is_one_sentence(arguments: tuple[str, ...], code: int, word: str) -> None:
    run = bench(*arguments)
    assert (run.returncode, run.stdout) == (code, "")
    assert word in run.stderr
    assert "Traceback" not in run.stderr


def test_a_dead_address_is_something_missing(serve: Serve) -> None:
    server = serve(answers())
    server.stop()
    run = bench(server.url, "--rate", "50/s", "--duration", "0.3s", "--json")
    assert run.returncode == 3
    assert json.loads(run.stdout)["errors"] == {"connect": json.loads(run.stdout)["intended"]}
    assert "nothing takes connections" in run.stderr


def start(url: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from seatrial.cli import main; main()", "bench", "run", url, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def generator_of(process: subprocess.Popen[str], seen: Callable[[], bool]) -> int:
    """The pid of the child, once its load has arrived."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children and seen():
            return int(children[0])
        time.sleep(0.05)
    pytest.fail("the generator did not start")


def wait_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} is still there")


def test_ctrl_c_prints_what_was_measured(serve: Serve) -> None:
    served: list[None] = []
    server = serve(answers(before=lambda: served.append(None)))
    with start(server.url, "--rate", "100/s", "--duration", "60s", "--json") as run:
        child = generator_of(run, lambda: len(served) > 50)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=30)
    assert run.returncode == 4, err
    found = json.loads(out)
    assert found["cut_short"] is True
    assert found["completed"] >= 50
    assert "cut short" in err
    wait_gone(child)


def test_a_killed_command_takes_its_generator_along(serve: Serve) -> None:
    served: list[None] = []
    server = serve(answers(before=lambda: served.append(None)))
    with start(server.url, "--rate", "100/s", "--duration", "60s") as run:
        child = generator_of(run, lambda: len(served) > 20)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=30)
    wait_gone(child)


def test_a_killed_generator_is_said_and_its_figures_are_printed(serve: Serve) -> None:
    served: list[None] = []
    server = serve(answers(before=lambda: served.append(None)))
    with start(server.url, "--rate", "100/s", "--duration", "60s", "--json") as run:
        child = generator_of(run, lambda: len(served) > 200)
        os.kill(child, signal.SIGKILL)
        out, err = run.communicate(timeout=30)
    assert run.returncode == 4, err
    assert json.loads(out)["verdict"].startswith("generator died: ended by SIGKILL")
    assert json.loads(out)["completed"] >= 50
