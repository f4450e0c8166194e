"""What the operating system refuses ends every command with one sentence and exit code 3, never with a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = "from seatrial.cli.app import main; main()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)


def refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 3, result.stderr
    assert result.stderr.startswith("error[missing]: "), result.stderr
    assert "hint: " in result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def test_a_package_below_a_file_cannot_be_written(echo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(run("init", echo, "--out", "file/package", cwd=tmp_path), "file`", "exists")


def test_a_name_that_the_file_system_refuses(echo: Path, tmp_path: Path) -> None:
    refused(run("init", echo, "--out", "d" * 300, cwd=tmp_path), "File name too long")


def test_a_folder_that_takes_no_files(echo: Path, tmp_path: Path) -> None:
    refused(run("init", echo, "--out", "/proc/package", cwd=tmp_path), "`/proc/")


def test_a_working_directory_that_has_gone(echo: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && exec "$2" -c "from seatrial.cli.app import main; main()" init "$3"'
    command = ["sh", "-c", script, "sh", str(gone), sys.executable, str(echo)]
    refused(subprocess.run(command, capture_output=True, text=True, timeout=100, check=False))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_finds_no_room(draft: Path, tmp_path: Path) -> None:
    program = "from seatrial.cli.app import main; main()"
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-c", program, "check", str(draft)],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100, check=False,
        )  # fmt: skip
    refused(result, "No space left on device")
