"""From packages and options to the one file that the server reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from seatrial.check import init_package
from seatrial.contract import Package, load_package, write_manifest
from seatrial.engine import EngineOptions, cpu_limit, find_runtime, resolve, start
from seatrial.errors import EngineError, UsageError
from tests.engine import tiny
from tests.engine.client import infer


@pytest.fixture(scope="session")
def drafted(doubling: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return init_package(doubling, tmp_path_factory.mktemp("packages") / "doubling")


def package(drafted: Path, tmp_path: Path, file: str = "serving.yaml", **changes: object) -> Package:
    """A copy of the draft with changes to one of its files."""
    copy = tmp_path / "doubling"
    shutil.copytree(drafted, copy)
    content = yaml.safe_load((copy / file).read_text())
    for key, value in changes.items():
        content[key] = {**content[key], **value} if isinstance(value, dict) else value
    (copy / file).write_text(yaml.safe_dump(content))
    write_manifest(copy)
    return load_package(copy)


def test_a_draft_is_served_as_it_was_found(drafted: Path) -> None:
    found = load_package(drafted)
    config = resolve([found], EngineOptions())
    (model,) = config["models"]
    assert config["listen"] == {
        "host": "127.0.0.1", "port": 0, "port_file": None, "grpc_port": None, "grpc_port_file": None
    }  # fmt: skip
    assert config["runtime_library"] == str(find_runtime().library)
    assert config["io_threads"] == max(1, cpu_limit().cpus // 4)
    assert (model["name"], model["digest"]) == ("doubling", found.digest)
    assert model["batching"]["mode"] == "full"
    assert model["batching"]["max_rows"] == found.serving.batching.max_rows
    assert (model["executors"], model["intra_op_threads"]) == (1, cpu_limit().cpus)
    assert model["timeout_ms"] == 1000
    with start(config, timeout=60) as server:
        assert infer(server.port, "doubling", tiny.rows(1, 2)).json["outputs"][0]["data"] == [2, 4]


def test_the_package_decides_unless_a_flag_does(drafted: Path, tmp_path: Path) -> None:
    cpus = cpu_limit().cpus
    changed = package(
        drafted, tmp_path, executors=3, threads="auto", timeout="250ms", queue={"rows": 7},
        batching={"max_rows": 5}, limits={"max_body": "1MiB", "max_rows_per_request": 9},
    )  # fmt: skip
    config = resolve([changed], EngineOptions())
    (model,) = config["models"]
    assert (model["executors"], model["intra_op_threads"]) == (3, max(1, cpus // 3))
    assert (model["timeout_ms"], model["queue_rows"], model["batching"]["max_rows"]) == (250, 7, 5)
    assert config["limits"]["max_body_bytes"] == 1 << 20
    assert model["signature"]["inputs"][0]["shape"][0]["max"] == 9
    (model,) = resolve([changed], EngineOptions(executors=2, threads=4))["models"]
    assert (model["executors"], model["intra_op_threads"]) == (2, 4)


def test_batching_turned_off_says_so(drafted: Path, tmp_path: Path) -> None:
    (model,) = resolve([package(drafted, tmp_path, batching={"policy": "off"})], EngineOptions())["models"]
    assert (model["batching"]["mode"], model["batching"]["why"]) == ("none", "turned off in serving.yaml")


def test_a_model_that_was_not_probed_runs_alone(drafted: Path, tmp_path: Path) -> None:
    changed = package(drafted, tmp_path)
    (changed.root / "evidence/batching.json").unlink()
    (model,) = resolve([changed], EngineOptions())["models"]
    assert model["batching"]["mode"] == "none"
    assert model["batching"]["why"].startswith("not probed")


def test_every_objective_is_an_edge(drafted: Path, tmp_path: Path) -> None:
    latency = {"total": {"p50": "3ms", "p95": "10ms", "p99": "17.5ms"}}
    (model,) = resolve([package(drafted, tmp_path, "slo.yaml", latency=latency)], EngineOptions())["models"]
    edges = model["latency_buckets_ms"]
    assert {3.0, 17.5} <= set(edges)
    assert edges == sorted(edges)


def test_the_same_package_twice_is_refused(drafted: Path) -> None:
    found = load_package(drafted)
    with pytest.raises(UsageError, match="is the same version of `doubling`"):
        resolve([found, found], EngineOptions())
    with pytest.raises(UsageError, match="no package"):
        resolve([], EngineOptions())


def test_a_missing_wheel_is_one_sentence_with_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match="the ONNX Runtime is not installed") as caught:
        find_runtime()
    assert "pip install onnxruntime" in (caught.value.hint or "")


@pytest.mark.parametrize(("version", "word"), [("1.23.2", "old"), ("1.33.0", "new"), ("2.0.0", "new")])
def test_a_runtime_of_the_wrong_age_is_refused(tmp_path: Path, version: str, word: str) -> None:
    library = tmp_path / f"libonnxruntime.so.{version}"
    library.touch()
    with pytest.raises(EngineError, match=f"ONNX Runtime `{version}` is too {word}: expected 1.24 to 1.32"):
        find_runtime(str(library))


def test_the_setting_overrides_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libonnxruntime.so.1.30.0"
    library.touch()
    monkeypatch.setenv("SEATRIAL_RUNTIME", str(library))
    assert (find_runtime().library, find_runtime().version) == (library, "1.30.0")
    monkeypatch.setenv("SEATRIAL_RUNTIME", str(tmp_path / "gone"))
    with pytest.raises(EngineError, match="is not there"):
        find_runtime()


def test_the_wheel_is_found_without_importing_it() -> None:
    program = (
        "import sys\nfrom seatrial.engine import find_runtime\n"
        "print(find_runtime().library.name, 'onnxruntime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    name, imported = done.stdout.split()
    assert name.startswith("libonnxruntime.so.1.")
    assert imported == "False"
