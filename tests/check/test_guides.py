"""What the guides of init and check show is what the commands do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from seatrial.check import check_package, init_package
from seatrial.cli.app import app
from seatrial.contract import load_package
from tests.check.modelling import F, model, node, save, value

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"


@pytest.mark.parametrize("command", ["init", "check"])
def test_the_guide_names_every_option(command: str) -> None:
    text = (GUIDES / f"{command}.md").read_text("utf-8")
    shown = CliRunner().invoke(app, [command, "--help"]).stdout
    options = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help"}
    assert [o for o in options if f"`{o}" not in text] == []


def test_the_shown_output_is_the_real_one(package: Path) -> None:
    """The two findings and the last lines of the guide, on a package with the same mistake."""
    shown = re.findall(r"```text\n(.*?)```", (GUIDES / "check.md").read_text("utf-8"), re.S)[0].splitlines()
    text = (package / "signature.yaml").read_text().replace("INT64", "INT32")
    (package / "signature.yaml").write_text(text)
    real = CliRunner().invoke(app, ["check", str(package), "--write-manifest"]).stdout.splitlines()
    assert shown[0] in real
    assert shown[1] in real
    assert shown[2] in real
    assert shown[3] in real
    assert re.fullmatch(r"DRAFT: \d+ errors?, \d+ warnings?, \d+ notes?", real[-1])


def test_the_sample_forms_of_the_guide_are_taken(tmp_path: Path) -> None:
    text = (GUIDES / "init.md").read_text("utf-8")
    line, arrays = re.findall(r"`(\{\"inputs\".*?\})`|`(\{\"x\": .*?\})`", text)
    proto = model([node("Neg", ["x"], ["y"])], [value("x", ["n", 2], F)], [value("y", ["n", 2])])
    source = save(proto, tmp_path / "m.onnx")
    for number, (suffix, content) in enumerate([("jsonl", line[0]), ("json", line[0]), ("json", arrays[1])]):
        sample = tmp_path / f"s{number}.{suffix}"
        sample.write_text(content)
        package = init_package(source, tmp_path / f"out{number}", sample)
        assert check_package(package).ok
        assert load_package(package).golden_file is not None
