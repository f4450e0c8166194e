"""Versions while the server runs: loaded, swapped, kept, unloaded, and no request fails of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openapi_spec_validator
import pytest

from seatrial.engine import EngineOptions, Repository, Server, resolve, start
from tests.engine import models, tiny
from tests.engine.client import Answer, Connection, ask, infer, metric, raw_request
from tests.engine.traffic import Traffic

LOAD = "/v2/repository/models/scaling/load"
UNLOAD = "/v2/repository/models/scaling/unload"


@contextmanager
def serving(*packages: Path, folder: Path | None = None, **changes: Any) -> Iterator[Server]:
    """A server that may load these packages and those of the folder."""
    repository = Repository(packages, folder, EngineOptions(executors=1, threads=1))
    config = resolve(repository.newest(), repository.options)
    with start(config | changes, timeout=60, repository=repository) as server:
        yield server


def load(port: int, version: str | None = None) -> Answer:
    body = b"" if version is None else json.dumps({"parameters": {"version": version}}).encode()
    return ask(port, "POST", LOAD, body)


def factor(port: int, version: str | None = None) -> Any:
    """What the model multiplies by."""
    path = "/v2/models/scaling" + (f"/versions/{version}" if version else "") + "/infer"
    answer = ask(port, "POST", path, tiny.rows(1, 1))
    return answer.json["outputs"][0]["data"][0] if answer.status == 200 else answer.json["code"]


def index(port: int) -> list[tuple[str, str, str]]:
    """Version, state and reason of every line of the index."""
    lines = ask(port, "POST", "/v2/repository/index").json
    return [(line["version"], line["state"], line["reason"]) for line in lines]


def described(port: int) -> dict[str, Any]:
    """The paths of the OpenAPI document."""
    document = ask(port, "GET", "/openapi.json").json
    openapi_spec_validator.validate(document)
    return dict(document["paths"])


def wait_for(reached: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.005)


def test_a_new_version_answers_and_the_old_one_is_kept_for_instant_return(tmp_path: Path) -> None:
    models.package(tmp_path / "a", 2, "1.0.0")
    with serving(folder=tmp_path) as server:
        port = server.port
        assert (factor(port), index(port)) == (2, [("1.0.0", "READY", "")])
        models.package(tmp_path / "b", 3, "1.1.0")
        assert factor(port) == 2, "nothing is loaded that nobody asked for"
        assert load(port).status == 200
        assert (factor(port), factor(port, "1.0.0"), factor(port, "1.1.0")) == (3, 2, 3)
        assert [line[:2] for line in index(port)] == [("1.0.0", "READY"), ("1.1.0", "READY")]
        assert "not the active version" in index(port)[0][2]

        (tmp_path / "a" / "MANIFEST.json").unlink()
        assert load(port, "1.0.0").status == 200, "it is resident and needs no package any more"
        assert factor(port) == 2
        assert metric(port, "seatrial_server_loads_total", model="scaling", outcome="activated") == 1
        state = "seatrial_server_model_state"
        assert metric(port, state, model="scaling", version="1.1.0", state="ready") == 1


def test_the_newest_version_is_loaded_and_any_other_by_name_or_digest(tmp_path: Path) -> None:
    for n, version in enumerate(("1.9.0", "1.10.0", "1.10.0-rc.1"), 1):
        models.package(tmp_path / f"p{n}", n, version)
    with serving(folder=tmp_path) as server:
        port = server.port
        assert factor(port) == 2
        assert (load(port, "1.9.0").status, factor(port)) == (200, 1)
        digest = Repository(folder=tmp_path).find("scaling", "1.10.0-rc.1").digest
        assert (load(port, digest[:12]).status, factor(port)) == (200, 3)
        unknown = load(port, "3.0.0")
        assert (unknown.status, unknown.json["code"]) == (404, "not_found")
        assert "expected `1.10.0`, `1.10.0-rc.1`, `1.9.0` or a digest" in unknown.json["error"]
        assert (load(port).status, factor(port)) == (200, 2)


def test_old_versions_beyond_those_kept_end_and_leave_the_metrics(tmp_path: Path) -> None:
    root = models.package(tmp_path / "p", 1, "1.0.0", versions={"keep": 2})
    with serving(root) as server:
        port = server.port
        for n in (2, 3, 4):
            models.package(root, n, f"{n}.0.0", versions={"keep": 2})
            assert load(port).status == 200
        wait_for(lambda: len(index(port)) == 2)
        assert [line[0] for line in index(port)] == ["3.0.0", "4.0.0"]
        assert (factor(port), factor(port, "3.0.0"), factor(port, "1.0.0")) == (4, 3, "not_found")
        wait_for(lambda: b'version="2.0.0"' not in ask(port, "GET", "/metrics").body)
        threads = [t.read_text() for t in Path(f"/proc/{server.pid}/task").glob("*/comm")]
        assert sum(name.startswith("scaling-") for name in threads) == 2


def test_a_failed_load_changes_nothing_and_says_the_same_again(tmp_path: Path) -> None:
    root = models.package(tmp_path / "p", 2)
    with serving(root) as server:
        port = server.port
        models.package(root, 3, "1.1.0")
        models.spoil_golden(root)
        first, second = load(port), load(port)
        assert (first.status, first.body) == (400, second.body)
        assert "golden row 1 gives another answer: output `y`" in first.json["error"]
        assert "the golden one 12345" in first.json["error"]
        assert factor(port) == 2
        assert index(port) == [("1.0.0", "READY", ""), ("1.1.0", "UNAVAILABLE", first.json["error"])]
        ready = ask(port, "POST", "/v2/repository/index", b'{"ready": true}').json
        assert [line["version"] for line in ready] == ["1.0.0"]
        assert ask(port, "GET", "/v2/health/ready").status == 200
        assert metric(port, "seatrial_server_loads_total", outcome="failed") == 2

        (root / "model" / "model.onnx").write_bytes(b"torn")
        torn = load(port)
        assert torn.status == 400
        assert "MANIFEST.json" in torn.json["error"]
        models.package(root, 3, "1.1.0")
        assert (load(port).status, factor(port)) == (200, 3)
        assert {line[1] for line in index(port)} == {"READY"}


def test_a_version_that_does_not_fit_into_memory_is_refused_with_numbers(tmp_path: Path) -> None:
    root = models.package(tmp_path / "p", 2)

    class Large(Repository):
        def resolve(self, name: str, version: str | None = None) -> dict[str, Any]:
            return super().resolve(name, version) | {"files_bytes": 1 << 50}

    repository = Large((root,))
    config = resolve(repository.newest(), repository.options)
    with start(config, timeout=60, repository=repository) as server:
        models.package(root, 3, "1.1.0")
        refused = load(server.port)
        assert (refused.status, refused.json["code"]) == (429, "resource_exhausted")
        assert "needs about 2147483648.0 MiB of memory" in refused.json["error"]
        assert " are available" in refused.json["error"]
        assert factor(server.port) == 2


def test_unloaded_while_busy_it_answers_what_it_has_and_is_gone(tmp_path: Path) -> None:
    from seatrial.check import init_package

    root = init_package(tiny.spinning(tmp_path), tmp_path / "spinning")
    steps, unload = tiny.steps(1_000_000, timeout=30_000_000), "/v2/repository/models/spinning/unload"
    with serving(root) as server, Connection(server.port) as busy, Connection(server.port) as queued:
        port = server.port
        busy.send(raw_request("POST", "/v2/models/spinning/infer", steps))
        queued.send(raw_request("POST", "/v2/models/spinning/infer", steps))
        wait_for(lambda: metric(port, "seatrial_server_requests_in_flight") == 3)
        assert ask(port, "POST", unload).status == 200
        assert index(port)[0][1] == "UNLOADING"
        assert infer(port, "spinning", tiny.steps(1)).status == 404
        for connection in (busy, queued):
            assert connection.read().json["outputs"][0]["data"] == [1_000_000]
        wait_for(lambda: index(port)[0][1:] == ("UNAVAILABLE", "unloaded by request"))
        assert ask(port, "GET", "/v2/health/ready").status == 503, "nothing is left to serve"
        assert ask(port, "POST", unload).status == 404
        assert ask(port, "POST", "/v2/repository/models/spinning/load").status == 200
        assert infer(port, "spinning", tiny.steps(3)).json["outputs"][0]["data"] == [3]
        assert ask(port, "GET", "/v2/health/ready").status == 200


def test_fifty_calls_at_once_load_once(tmp_path: Path) -> None:
    root = models.package(tmp_path / "p", 2)
    with serving(root) as server:
        port = server.port
        models.package(root, 3, "1.1.0")
        statuses: list[int] = []
        callers = [threading.Thread(target=lambda: statuses.append(load(port).status)) for _ in range(50)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert statuses == [200] * 50
        assert factor(port) == 3
        assert metric(port, "seatrial_server_loads_total", outcome="loaded") == 1
        assert metric(port, "seatrial_server_load_seconds_count") == 1


def test_a_server_without_somebody_who_reads_packages_refuses(port: int) -> None:
    for what in ("load", "unload"):
        refused = ask(port, "POST", f"/v2/repository/models/doubling/{what}")
        assert (refused.status, refused.json["code"]) == (501, "unimplemented")
        assert "nobody who reads packages stands behind it" in refused.json["error"]
    assert "model_repository" not in ask(port, "GET", "/v2").json["extensions"]
    assert not {path for path in described(port) if path.endswith("load")}


def test_loads_are_claimed_and_described_where_they_work(tmp_path: Path) -> None:
    import tritonclient.grpc

    root = models.package(tmp_path / "p", 2)
    repository = Repository((root,))
    config = resolve(repository.newest(), EngineOptions(grpc_port=0))
    with start(config, timeout=60, repository=repository) as server:
        about = ask(server.port, "GET", "/v2").json["extensions"]
        assert [name for name in about if "repository" in name] == ["model_repository"]
        ask_load = "/v2/repository/models/{model}/load"
        assert {ask_load, ask_load.replace("load", "unload")} <= set(described(server.port))
        assert ask(server.port, "POST", LOAD, b"{}").status == 200
        with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
            assert "model_repository" not in client.get_server_metadata().extensions


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", "the body is wrong"),
        (b'{"parameters": {"version": 1}}', "the parameter `version` is `1`: expected a string"),
        (b'{"parameters": {"config": "{}"}}', "the parameter `config` is not taken"),
        (b'{"parameters": {"file:1/model.onnx": "eA=="}}', "the parameter `file:1/model.onnx` is not taken"),
    ],
)
def test_a_wrong_call_is_refused_by_field(tmp_path: Path, body: bytes, expected: str) -> None:
    with serving(models.package(tmp_path / "p", 2)) as server:
        refused = ask(server.port, "POST", LOAD, body)
        assert refused.status == 400
        assert expected in refused.json["error"]


def test_a_server_killed_while_it_loads_leaves_nothing_behind(tmp_path: Path) -> None:
    root = models.package(tmp_path / "p", 2)
    with serving(root) as server:
        models.package(root, 3, "1.1.0", weights=4_000_000)
        with Connection(server.port) as caller:
            caller.send(raw_request("POST", LOAD))
            wait_for(lambda: any(line[1] == "LOADING" for line in index(server.port)))
            os.kill(server.pid, signal.SIGKILL)
            with pytest.raises((ConnectionError, socket.timeout)):
                caller.read()
        assert server.wait(10) == -signal.SIGKILL
    with serving(root) as again:
        assert factor(again.port) == 3


def test_a_server_asked_to_end_while_it_loads_ends(tmp_path: Path) -> None:
    root = models.package(tmp_path / "p", 2)
    with serving(root) as server:
        models.package(root, 3, "1.1.0", weights=4_000_000)
        with Connection(server.port) as caller:
            caller.send(raw_request("POST", LOAD))
            wait_for(lambda: any(line[1] == "LOADING" for line in index(server.port)))
            server.terminate()
            assert server.wait(15) == 0


def test_a_failed_load_under_load_fails_nobody_else(tmp_path: Path) -> None:
    root = models.package(tmp_path / "p", 2)
    with serving(root) as server:
        models.package(root, 3, "1.1.0")
        models.spoil_golden(root)
        with Traffic(server.port) as traffic:
            for _ in range(10):
                assert load(server.port).status == 400
        assert set(traffic.statuses) == {"200"}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_hundred_reloads_under_load_fail_nobody_and_leave_no_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = [models.package(tmp_path / f"p{n}", n + 1, f"1.{n}.0", weights=250_000) for n in range(3)]
    with serving(versions[-1], folder=tmp_path) as server:
        port = server.port
        spans: list[tuple[float, float]] = []
        with Traffic(port) as traffic:
            for n in range(200):
                begin = time.monotonic()
                # Three versions in turn, of which two are kept: each load is a real one.
                assert load(port, f"1.{n % 3}.0").status == 200
                spans.append((begin, time.monotonic()))
                if n == 50:
                    warm = _resident(server.pid)
                time.sleep(0.1)
        wait_for(lambda: len(index(port)) == 2)
        after = _resident(server.pid)
        loads = metric(port, "seatrial_server_loads_total", outcome="loaded")
    assert set(traffic.statuses) == {"200"}, traffic.statuses
    assert loads > 190
    steady, during = _split(traffic.times, spans)
    with capsys.disabled():
        print(
            f"\n200 reloads, {sum(traffic.statuses.values())} requests: p99 {_p99(during) * 1e3:.2f} ms while "
            f"loading, {_p99(steady) * 1e3:.2f} ms between loads, ratio {_p99(during) / _p99(steady):.2f}; "
            f"memory {warm / 2**20:.1f} MiB after 50, {after / 2**20:.1f} MiB after 200"
        )
    grown = f"{after / warm - 1:.1%} grown; the allocator's arenas alone swing by a few percent under traffic"
    assert after < warm * 1.05, grown


def _split(
    times: list[tuple[float, float]], spans: list[tuple[float, float]]
) -> tuple[list[float], list[float]]:
    """Times of requests that began between loads, and of those that began during one."""
    during = [took for begin, took in times if any(a <= begin <= b for a, b in spans)]
    steady = [took for begin, took in times if not any(a <= begin <= b for a, b in spans)]
    return steady, during


def _p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def _resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) * 1024
