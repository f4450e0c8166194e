"""The server as a child process: refusals to start, and no process left behind whatever happens to the parent."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seatrial.engine import Server, start
from seatrial.errors import EngineError
from tests.engine import tiny
from tests.engine.client import infer


def test_start_gives_port_pid_and_times(doubling: Path) -> None:
    with start(tiny.config(tiny.entry(doubling)), timeout=60) as server:
        assert server.host == "127.0.0.1"
        assert infer(server.port, "doubling", tiny.rows(1, 2)).status == 200
        assert server.ready is not None
        assert 0 < server.ready.seconds < 60
        assert [m["name"] for m in server.ready.models] == ["doubling"]
        assert server.ready.models[0]["load_s"] > 0
        assert server.returncode is None
        pid, folder = server.pid, server.folder
    assert server.returncode == 0
    assert not Path(f"/proc/{pid}").exists()
    assert not folder.exists()


def test_a_folder_of_ones_own_keeps_configuration_and_log(doubling: Path, tmp_path: Path) -> None:
    with start(tiny.config(tiny.entry(doubling)), tmp_path / "engine", timeout=60):
        pass
    written = json.loads((tmp_path / "engine/server.json").read_text())
    assert written["exit_with_parent"] is True
    assert "model `doubling` 1.2.0 loaded" in (tmp_path / "engine/server.log").read_text()


def refusal(config: dict[str, object]) -> EngineError:
    with pytest.raises(EngineError) as caught:
        start(config, timeout=60)
    return caught.value


def test_a_busy_port_is_named(doubling: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = refusal(tiny.config(tiny.entry(doubling), listen={"host": "127.0.0.1", "port": port}))
    assert error.message == f"port `{port}` of `127.0.0.1` is taken by another process"
    assert error.hint == "choose another port, or 0 for a free one"


def test_an_unknown_key_is_named_with_its_place(doubling: Path) -> None:
    error = refusal(tiny.config(tiny.entry(doubling, executers=2)))
    assert "`models[0].executers`" in error.message or "unknown field `executers`" in error.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"queue_rows": 0}, "`models[0].queue_rows` is 0"),
        ({"digest": "abc"}, "expected 64 hex digits"),
        ({"model_file": "/nowhere/model.onnx"}, "`/nowhere/model.onnx` of model `doubling` is not there"),
    ],
)
def test_a_wrong_model_entry_is_refused(doubling: Path, changes: dict[str, object], words: str) -> None:
    assert words in refusal(tiny.config(tiny.entry(doubling, **changes))).message


def test_a_file_that_is_no_model_is_refused_by_the_models_name(doubling: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"this is no model")
    error = refusal(
        tiny.config(tiny.entry(doubling), tiny.entry(doubling, name="bad", model_file=str(broken)))
    )
    assert error.message.startswith("model `bad` cannot be served:")
    assert error.hint


def test_a_signature_that_differs_from_the_graph_is_refused(doubling: Path) -> None:
    signature = json.loads(json.dumps(tiny.SIGNATURES["doubling"]))
    signature["inputs"][0]["datatype"] = "INT64"
    error = refusal(tiny.config(tiny.entry(doubling, signature=signature)))
    assert "model `doubling`" in error.message
    assert "INT64" in error.message


def test_a_library_that_is_no_runtime_is_refused(doubling: Path, tmp_path: Path) -> None:
    for name, content in (("gone.so", None), ("text.so", b"text")):
        library = tmp_path / name
        if content is not None:
            library.write_bytes(content)
        error = refusal(tiny.config(tiny.entry(doubling), runtime_library=str(library)))
        assert str(library) in error.message
        assert "pip install" in (error.hint or "")


def test_a_death_before_readiness_is_told_with_its_signal(spinning: Path) -> None:
    server = Server(tiny.config(tiny.entry(spinning)))
    os.kill(server.pid, signal.SIGSTOP)  # it cannot become ready before it is killed
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="ended by SIGKILL before it was ready"):
        server.wait_ready(30)


def test_a_server_that_does_not_get_ready_is_ended(doubling: Path) -> None:
    server = Server(tiny.config(tiny.entry(doubling)))
    os.kill(server.pid, signal.SIGSTOP)
    with pytest.raises(EngineError, match=r"not ready after 0\.3 s"):
        server.wait_ready(0.3)
    assert server.returncode == -signal.SIGKILL


def test_a_parent_that_is_killed_leaves_no_server(doubling: Path, tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    listen = {"host": "127.0.0.1", "port": 0, "port_file": str(port_file)}
    config = tiny.config(
        tiny.entry(doubling), listen=listen, drain={"grace_ms": 60_000, "timeout_ms": 60_000}
    )
    program = (
        "import json, sys, time\n"
        "from seatrial.engine import start\n"
        "server = start(json.loads(sys.argv[1]), timeout=60)\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(config)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
    deadline = time.monotonic() + 5
    while _runs(pid):
        assert time.monotonic() < deadline, "the server outlived its parent"
        time.sleep(0.02)
    assert not port_file.exists()


def test_nothing_but_one_argument_is_taken() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seatrial.engine"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage:")


def test_the_child_imports_neither_numpy_nor_the_rooms(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "sys.argv = ['seatrial.engine', '/nowhere.json']\n"
        "import seatrial.engine, seatrial._native\n"
        "heavy = {'numpy', 'pydantic', 'onnx', 'onnxruntime', 'yaml', 'seatrial.contract', 'seatrial.errors'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_exit_codes_are_those_of_the_architecture(doubling: Path, tmp_path: Path) -> None:
    cases = {
        "wrong": ("{", 2),
        "missing": (json.dumps(tiny.config(tiny.entry(doubling, model_file="/nowhere"))), 3),
    }
    for name, (text, code) in cases.items():
        file = tmp_path / f"{name}.json"
        file.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "seatrial.engine", str(file)], capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        (line,) = done.stdout.splitlines()
        assert json.loads(line)["event"] == "refused"


def _runs(pid: int) -> bool:
    """Whether the process is there and not just waiting to be reaped by somebody else."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
