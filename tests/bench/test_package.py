"""`seatrial bench run PACKAGE`: the package is served for the purpose, with its samples as JSON and as binary tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.check import init_package
from seatrial.contract import write_manifest
from tests.bench.test_command import bench, measured
from tests.engine import tiny


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package with a space")
    samples = folder / "requests.jsonl"
    lines = [
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [rows, 2], "data": [0.5, 1.5] * rows}]}
        for rows in (1, 2)
    ]
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return init_package(tiny.doubling(folder), folder / "doubling", samples)


@pytest.mark.parametrize("form", [(), ("--binary",)])
def test_samples_are_answered_and_stages_come_back(package: Path, form: tuple[str, ...]) -> None:
    found: dict[str, Any] = measured(package, "--rate", "100/s", "--duration", "1s", *form)
    assert found["errors"] == {}, found["first_error"]
    assert found["completed"] == found["ok"] == found["intended"]
    assert set(found["stages_ms"]) >= {"parse", "queue", "run", "encode"}
    # The stages of the server lie inside what the client saw.
    total = sum(stage["mean"] for stage in found["stages_ms"].values())
    assert 0 < total < found["service_ms"]["mean"]


def test_a_package_without_samples_is_told_what_to_do(package: Path, tmp_path: Path) -> None:
    bare = init_package(package / "model/model.onnx", tmp_path / "bare")
    (bare / "samples/requests.jsonl").unlink(missing_ok=True)
    write_manifest(bare)
    run = bench(bare, "--rate", "1/s", "--duration", "1s")
    assert run.returncode == 2
    assert "no sample requests" in run.stderr
