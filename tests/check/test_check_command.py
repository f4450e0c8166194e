"""`seatrial check` and `seatrial init` from outside: exit codes, stdout as data, stderr as talk, SARIF and JSON."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from seatrial.check import FINDINGS
from seatrial.cli.app import app
from seatrial.errors import SeatrialError
from tests.check.modelling import model, node, save, value

# The essential parts of the SARIF 2.1.0 schema: what a consumer relies on.
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "$schema": {"type": "string", "format": "uri"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {"type": "object", "required": ["id", "shortDescription"]},
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "ruleIndex", "level", "locations"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "message": {"type": "object", "required": ["text"]},
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "region": {
                                                        "type": "object",
                                                        "properties": {
                                                            "startLine": {"type": "integer", "minimum": 1}
                                                        },
                                                    }
                                                },
                                            }
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_a_draft_passes_with_exit_code_0(package: Path) -> None:
    result = run("check", package)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].startswith("DRAFT: 0 errors, 0 warnings, ")


def test_an_error_is_exit_code_1_with_place_and_hint(package: Path) -> None:
    text = (package / "slo.yaml").read_text().replace("window: 30d", "window: 30")
    (package / "slo.yaml").write_text(text)
    result = run("check", package)
    assert result.exit_code == 1
    assert (
        "error[SCH005] slo.yaml:16 (both): `window`: `30`" in result.stdout or "slo.yaml:16" in result.stdout
    )
    assert "  hint: write a number and its unit" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["--level", "B"], 2, "level B is not available yet"),
        (["--level", "X"], 2, "there is no level `X`"),
    ],
)
def test_a_level_that_is_not_there_is_wrong_use(
    package: Path, arguments: list[str], exit_code: int, words: str
) -> None:
    result = run("check", package, *arguments)
    assert isinstance(result.exception, SeatrialError)
    assert result.exception.exit_code == exit_code
    assert words in result.exception.message


def test_a_folder_that_is_not_there_is_missing(tmp_path: Path) -> None:
    result = run("check", tmp_path / "none")
    assert isinstance(result.exception, SeatrialError)
    assert result.exception.exit_code == 3


def test_json_has_the_promised_keys(package: Path) -> None:
    (package / "model" / "model.onnx").unlink()
    result = run("check", package, "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert set(report["findings"][0]) == {"code", "severity", "file", "line", "owner", "text", "hint"}
    assert set(report["batching"]) == {"mode", "axis", "why"}
    assert {f["code"] for f in report["findings"]} <= set(FINDINGS)
    order = [f["severity"] for f in report["findings"]]
    assert order == sorted(order, key=["error", "warning", "note"].index)


def test_sarif_is_valid_in_its_essential_parts(package: Path) -> None:
    (package / "model" / "model.onnx").write_bytes(b"")
    (package / "samples" / "name with space.pkl").write_bytes(b"")
    result = run("check", package, "--format", "sarif")
    log: dict[str, Any] = json.loads(result.stdout)
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (sarif_run,) = log["runs"]
    rules = [r["id"] for r in sarif_run["tool"]["driver"]["rules"]]
    assert all(rules[r["ruleIndex"]] == r["ruleId"] for r in sarif_run["results"])
    places = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in sarif_run["results"]]
    assert "samples/name%20with%20space.pkl" in places
    assert {"MOD001", "PKG003", "QST001"} <= set(rules)


def test_a_manifest_is_written_anew_on_request(package: Path) -> None:
    (package / "slo.yaml").write_text((package / "slo.yaml").read_text() + "# later\n")
    assert run("check", package).exit_code == 1
    result = run("check", package, "--write-manifest")
    assert result.exit_code == 0
    assert result.stderr.startswith("digest ")


def test_init_prints_the_folder_and_talks_on_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    proto = model([node("Neg", ["x"], ["y"])], [value("x", ["n", 2])], [value("y", ["n", 2])])
    result = run("init", save(proto, tmp_path / "my model.onnx"))
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "my-model")
    assert "batching: full" in result.stderr
    assert "open questions" in result.stderr
    assert run("check", tmp_path / "my-model").exit_code == 0


def test_init_refuses_a_folder_that_holds_something(tmp_path: Path) -> None:
    proto = model([node("Neg", ["x"], ["y"])], [value("x", ["n", 2])], [value("y", ["n", 2])])
    source = save(proto, tmp_path / "m.onnx")
    result = run("init", source, "--out", tmp_path)
    assert isinstance(result.exception, SeatrialError)
    assert "exists already" in result.exception.message
    result = run("init", source, "--name", "../x")
    assert isinstance(result.exception, SeatrialError)
    assert source.exists()


def test_the_check_takes_less_than_a_second_and_loads_no_runtime(package: Path) -> None:
    """Processor time of the whole process, start included; wall time would measure the neighbours."""
    code = (
        "import sys\nfrom seatrial.cli.app import main\n"
        "try:\n main()\nfinally:\n assert 'onnxruntime' not in sys.modules and 'pyarrow' not in sys.modules\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, "check", str(package)], env=environment, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 1.0, f"{spent:.2f} s of processor time"
