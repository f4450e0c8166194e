"""The runtime table: rows rise, versions find their row, and the installed wheel agrees with what is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.check.runtime import installed_runtime, is_supported, runtime_row

TOOL = Path(__file__).resolve().parents[2] / "tools" / "probe_runtime_table.py"


@pytest.mark.parametrize(
    ("version", "opset", "ir"),
    [
        ("1.16.3", 19, 9),
        ("1.20.1", 21, 10),
        ("1.24.0", 25, 13),
        ("1.31.1", 26, 13),
        ("1.32.0", 28, 14),
        ("1.99.0", 28, 14),
    ],
)
def test_a_version_finds_its_row(version: str, opset: int, ir: int) -> None:
    row = runtime_row(version)
    assert row is not None
    assert (row.opset, row.ir) == (opset, ir)


@pytest.mark.parametrize("version", ["1.15.0", "latest", "", "1", "0.9"])
def test_a_version_outside_the_table_has_no_row(version: str) -> None:
    assert runtime_row(version) is None
    assert not is_supported(version)


@pytest.mark.parametrize(
    ("version", "supported"),
    [("1.23.2", False), ("1.24.4", True), ("1.31.1", True), ("1.32.0", True), ("1.33.0", False)],
)
def test_the_supported_range(version: str, supported: bool) -> None:
    assert is_supported(version) is supported


def test_the_installed_wheel_agrees_with_the_table() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(TOOL)], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert found["from"] == installed_runtime()
    assert found["table_agrees"]
