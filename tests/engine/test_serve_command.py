"""`seatrial serve` as a person uses it: what it prints, how it ends."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seatrial.check import init_package
from seatrial.contract import write_manifest
from tests.engine import tiny
from tests.engine.client import Connection, ask, infer, raw_request

SEATRIAL = str(Path(sys.executable).with_name("seatrial"))


@pytest.fixture(scope="module")
def packages(doubling: Path, spinning: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("packages with a space")
    return init_package(doubling, folder / "doubling"), init_package(spinning, folder / "spinning")


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command until it says that it is ready, and its port."""
    command = [SEATRIAL, "serve", *map(str, arguments), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            listening = process.stderr.readline()
            found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", listening)
            assert found, listening + process.stderr.read()
            assert process.stderr.readline().startswith("ready after ")
            yield process, int(found[1])
        finally:
            if process.poll() is None:
                process.kill()


def test_it_serves_until_sigterm(packages: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "port"
    with serving(*packages, "--port-file", file) as (process, port):
        assert file.read_text() == f"{port}\n"
        assert [m["name"] for m in ask(port, "GET", "/v2/models").json] == ["doubling", "spinning"]
        assert infer(port, "doubling", tiny.rows(1, 2)).json["outputs"][0]["data"] == [2, 4]
        process.send_signal(signal.SIGTERM)
        out, talk = process.communicate(timeout=10)
        assert process.returncode == 0
        assert out == ""
        assert talk.splitlines()[-1] == "drained: 0 answered meanwhile, 0 failed"
        assert not file.exists()


def test_ctrl_c_drains_and_a_second_one_ends_it(packages: tuple[Path, Path]) -> None:
    with serving(packages[1]) as (process, port), Connection(port) as busy:
        busy.send(
            raw_request("POST", "/v2/models/spinning/infer", tiny.steps(50_000_000, timeout=60_000_000))
        )
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None, "it waits for the work in flight"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=5)
        assert process.returncode == 1


def test_the_end_of_the_server_is_told(packages: tuple[Path, Path]) -> None:
    with serving(packages[0]) as (process, port):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 1
        os.kill(int(children[0]), signal.SIGKILL)
        _, talk = process.communicate(timeout=5)
        assert process.returncode == 3
        assert "error[engine]: the server ended by itself with code -9" in talk
    with pytest.raises(ConnectionRefusedError):
        Connection(port)


def test_a_busy_port_ends_it_with_3(packages: tuple[Path, Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [SEATRIAL, "serve", str(packages[0]), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        f"error[engine]: port `{port}` of `127.0.0.1` is taken by another process",
        "hint: choose another port, or 0 for a free one",
    ]


def test_a_missing_runtime_ends_it_with_3(packages: tuple[Path, Path], tmp_path: Path) -> None:
    environment = {**os.environ, "SEATRIAL_RUNTIME": str(tmp_path / "gone.so")}
    done = subprocess.run(
        [SEATRIAL, "serve", str(packages[0])],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=30,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("error[engine]: the runtime library")


@pytest.mark.parametrize("arguments", [[], ["/nowhere"], ["--port", "99999", "x"]])
def test_wrong_use_ends_it_with_2(arguments: list[str]) -> None:
    done = subprocess.run(
        [SEATRIAL, "serve", *arguments], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 2
    assert done.stdout == ""


def test_a_dry_run_prints_the_configuration_and_starts_nothing(packages: tuple[Path, Path]) -> None:
    command = [
        SEATRIAL,
        "serve",
        str(packages[0]),
        "--dry-run",
        "--executors",
        "2",
        "--threads",
        "1",
        "--grace",
        "500",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    config = json.loads(done.stdout)
    assert config["listen"]["port"] == 8000
    assert config["drain"]["grace_ms"] == 500
    assert (config["models"][0]["executors"], config["models"][0]["intra_op_threads"]) == (2, 1)


def test_a_package_that_does_not_hold_is_not_served(doubling: Path, tmp_path: Path) -> None:
    """The runtime sees no byte of a package of which `check` says no, whatever its manifest says."""
    package = init_package(doubling, tmp_path / "doubling")
    (package / "vocabulary.bin").write_bytes(pickle.dumps({"a": 1}))
    write_manifest(package)
    command = [SEATRIAL, "serve", str(package), "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error[contract]: vocabulary.bin: "), ended.stderr
    assert "hint: " in ended.stderr
    assert "listening" not in ended.stderr
