"""Set-up writes what the manifests promise, again and again, and says what is missing."""

from __future__ import annotations

import importlib
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from seatrial.contract import file_sha256, package_files, read_manifest, verify_manifest
from tests.examples.conftest import EXAMPLES, NAMES, run_prepare


@pytest.mark.parametrize("name", NAMES)
def test_set_up_writes_what_the_manifest_lists(prepared: Path, name: str) -> None:
    manifest = read_manifest(prepared / name).value
    assert manifest is not None
    assert verify_manifest(prepared / name, manifest) == []


def test_a_second_set_up_changes_nothing(prepared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "01-movie-ctr"
    shutil.copytree(prepared / folder.name, folder)
    before = {path: file_sha256(folder / path) for path in package_files(folder)}
    done = run_prepare(folder.name, "--into", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "01-movie-ctr: prepared\n")
    assert {path: file_sha256(folder / path) for path in package_files(folder)} == before


def test_a_changed_file_is_named(prepared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "01-movie-ctr"
    shutil.copytree(prepared / folder.name, folder)
    (folder / "slo.yaml").write_text("apiVersion: seatrial/v1\n")
    done = run_prepare(folder.name, "--into", str(tmp_path))
    assert done.returncode == 1
    assert "`slo.yaml` has" in done.stderr
    assert "hint: after an intended change seal it anew with `--seal`" in done.stderr


def test_sealing_accepts_an_intended_change(prepared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "01-movie-ctr"
    shutil.copytree(prepared / folder.name, folder)
    (folder / "card.md").write_text((folder / "card.md").read_text() + "\nOne more line.\n")
    assert run_prepare(folder.name, "--into", str(tmp_path), "--seal").returncode == 0
    assert run_prepare(folder.name, "--into", str(tmp_path)).returncode == 0


@pytest.mark.parametrize("found", [None, "1.0.0"])
def test_a_missing_wheel_is_named_with_the_cure(monkeypatch: pytest.MonkeyPatch, found: str | None) -> None:
    class Other:
        version = found

    def distribution(name: str) -> Other:
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return Other()

    monkeypatch.syspath_prepend(str(EXAMPLES))
    wheel = importlib.import_module("making.wheel")
    monkeypatch.setattr(wheel.metadata, "distribution", distribution)
    with pytest.raises(wheel.MissingWheelError) as caught:
        wheel.wheel_file("recbole", "1.2.1", "recbole/x")
    text = str(caught.value)
    assert "`recbole` 1.2.1" in text
    assert ("it is not installed" if found is None else "installed is 1.0.0") in text
    assert "hint: python -m pip install --no-deps" in text


def test_rows_and_large_models_are_not_committed() -> None:
    ignored = (EXAMPLES / ".gitignore").read_text().split()
    assert {"/01-movie-ctr/samples/", "/01-movie-ctr/vocab/", "/01-movie-ctr/evaluation/labels.csv"} <= set(
        ignored
    )
    assert (EXAMPLES / "01-movie-ctr/model/model.onnx").stat().st_size < 5_000_000
