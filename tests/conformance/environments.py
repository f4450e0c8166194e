"""Environments of their own for what cannot be installed beside the project, made once from a lock with hashes.

Only the standard library is used: the recorder of golden pairs runs from here too.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["CACHE", "InstallError", "prepare"]

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path.home() / ".cache" / "seatrial"
INSTALL_S = 600


class InstallError(Exception):
    """The packages of a lock cannot be installed here."""


def prepare(name: str, folder: Path | None = None) -> Path:
    """The Python of the environment of `requirements/NAME.lock`, made where it is missing or older than the lock."""
    home = folder or CACHE / f"{name}-venv"
    lock = ROOT / "requirements" / f"{name}.lock"
    python, stamp = home / "bin" / "python", home / ".lock"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".busy").open("w") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text() != lock.read_text():
            _install(home, lock)
            stamp.write_text(lock.read_text())
    return python


def _install(home: Path, lock: Path) -> None:
    print(f"making the environment {home}", file=sys.stderr)
    venv.create(home, clear=True, with_pip=True, symlinks=True)
    command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "--require-hashes", "-r", str(lock)],
        capture_output=True, text=True, check=False, timeout=INSTALL_S,
    )  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InstallError(f"the packages of {lock.name} cannot be installed here: {last}")
