"""The guide of `seatrial serve` holds: its commands work as printed, and its tables are complete."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from seatrial.check import init_package
from seatrial.cli.serve import command
from seatrial.engine import Repository, resolve, start
from tests.engine.client import ask, infer
from tests.engine.tiny import rows

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guides/serve.md").read_text()
SCRIPTS = re.findall(r"```bash\n(.*?)```", GUIDE, re.S)


@pytest.fixture(scope="module")
def port(doubling: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    repository = Repository((init_package(doubling, tmp_path_factory.mktemp("guide") / "doubling"),))
    config = resolve(repository.newest(), repository.options)
    with start(config, timeout=60, repository=repository) as server:
        yield server.port


@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
def test_the_commands_of_the_page_work(port: int, script: str) -> None:
    assert shutil.which("curl"), "the page is written for curl"
    failing = script.replace("localhost:8000", f"127.0.0.1:{port}").replace(
        "curl -s", "curl -sS --fail-with-body"
    )
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", failing], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_the_answer_of_the_page_is_the_servers(port: int) -> None:
    (printed,) = re.findall(r"```json\n(.*?)\n```", GUIDE, re.S)
    (body,) = re.findall(r"-d '(\{\n  \"id\".*?\})'", GUIDE, re.S)
    assert infer(port, "doubling", body.encode()).body.decode() == printed


def test_every_option_is_on_the_page() -> None:
    shown = set(re.findall(r"(--[a-z-]+)", CliRunner().invoke(command, ["--help"]).output)) - {"--help"}
    assert [option for option in shown if f"`{option}" not in GUIDE] == []


def test_every_metric_is_on_the_page(port: int) -> None:
    infer(port, "doubling", rows(1, 2))
    families = re.findall(r"^# TYPE (\S+)", ask(port, "GET", "/metrics").body.decode(), re.M)
    assert len(families) > 15
    assert [f for f in families if f"`{f}`" not in GUIDE and not f.startswith("process_")] == []


def test_every_code_is_on_the_page() -> None:
    source = (Path(__file__).resolve().parents[2] / "crates/seatrial-types/src/error.rs").read_text()
    codes = re.findall(r'Self::\w+ => "([a-z_]+)"', source)
    assert len(codes) == 12
    assert [c for c in codes if f"`{c}`" not in GUIDE and c != "cancelled"] == []
