"""load_package: one frozen value, the digest as its name, and the first mistake as an error with its place."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from seatrial.check import init_package
from seatrial.contract import load_package, package_files, path_problem, verify_manifest, write_manifest
from seatrial.errors import ContractError
from tests.check.modelling import model, node, save, value


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    proto = model([node("Neg", ["x"], ["y"])], [value("x", ["n", 2])], [value("y", ["n", 2])])
    return init_package(save(proto, folder / "neg.onnx"), folder / "neg")


@pytest.fixture
def package(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "package")
    return tmp_path / "package"


def test_a_package_is_one_frozen_value(package: Path) -> None:
    loaded = load_package(package)
    assert loaded.identity.name == "neg"
    assert loaded.model_file == package / "model" / "model.onnx"
    assert loaded.requests_file == package / "samples" / "requests.jsonl"
    assert loaded.features is None
    assert loaded.is_draft
    assert loaded.serving.timeout.ms == 1000.0
    assert loaded.signature.resolved()["inputs"] == [
        {
            "name": "x",
            "datatype": "FP32",
            "shape": [{"name": "n", "max": None}, 2],
            "range": None,
            "labels": None,
        }
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.digest = "other"  # type: ignore[misc]


def test_the_digest_is_that_of_the_manifest_bytes(package: Path) -> None:
    digest = hashlib.sha256((package / "MANIFEST.json").read_bytes()).hexdigest()
    assert load_package(package).digest == digest
    assert write_manifest(package) == digest, "the same files give the same digest"


def test_the_manifest_covers_all_but_itself_and_evidence(package: Path) -> None:
    listed = {e.path for e in load_package(package).manifest.files}
    there = set(package_files(package))
    assert there - listed == {"MANIFEST.json", "evidence/batching.json"}
    (package / "evidence" / "more.json").write_text("{}")
    loaded = load_package(package)
    assert not loaded.is_draft


def test_every_difference_is_named(package: Path) -> None:
    manifest = load_package(package).manifest
    (package / "card.md").write_text((package / "card.md").read_text().replace("neg", "nag"))
    (package / "slo.yaml").write_text("shorter")
    (package / "serving.yaml").unlink()
    (package / "new").write_text("")
    said = verify_manifest(package, manifest)
    assert len(said) == 4
    for words in (
        "`serving.yaml` is listed",
        "`new` is there",
        "`card.md` has other",
        "`slo.yaml` has 7 bytes",
    ):
        assert any(s.startswith(words) for s in said), said


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "words"),
    [
        ("serving.yaml", "timeout: 1s", "timeout: 1", 10, ["`timeout`", "100ms"]),
        ("seatrial.yaml", 'version: "0.1.0"', "version: 0.1", 4, ["`version`", "0.1"]),
        ("signature.yaml", "FP32", "F32", 5, ["datatype", "F32"]),
        ("card.md", "tags: [seatrial]", "tags: [seatrial]\ntagz: 1", 4, ["tagz"]),
    ],
)
def test_the_first_mistake_is_the_error(
    package: Path, file: str, old: str, new: str, line: int, words: list[str]
) -> None:
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new, 1))
    with pytest.raises(ContractError) as caught:
        load_package(package)
    assert (caught.value.file, caught.value.line) == (file, line)
    assert all(w in caught.value.message for w in words), caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("name", ["slo.yaml", "card.md", "MANIFEST.json", "model/model.onnx"])
def test_a_missing_file_is_named(package: Path, name: str) -> None:
    (package / name).unlink()
    if name.startswith("model"):
        write_manifest(package)
    with pytest.raises(ContractError, match=name):
        load_package(package)


def test_a_folder_that_is_no_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="no package folder"):
        load_package(tmp_path / "nothing")


@pytest.mark.parametrize(
    "change",
    [
        "{",
        "[]",
        "{}",
        '{"payload": {"mode": "full", "axis": 0, "why": "so"}}',
        '{"payload": 7, "model_digest": "x"}',
    ],
)
def test_broken_batching_evidence_counts_as_none(package: Path, change: str) -> None:
    assert load_package(package).batching() is not None
    (package / "evidence" / "batching.json").write_text(change)
    assert load_package(package).batching() is None


def test_evidence_with_an_unknown_mode_counts_as_none(package: Path) -> None:
    path = package / "evidence" / "batching.json"
    record = json.loads(path.read_text())
    record["payload"]["mode"] = "always"
    path.write_text(json.dumps(record))
    assert load_package(package).batching() is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "~/x",
        "C:\\x",
        "..\\x",
        "a\x00b",
        "none",
        "model",
        "linked",
        "linked/x",
        "hard",
    ],
)
def test_a_path_that_is_no_plain_file_inside_is_refused(package: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("x")
    (package / "linked").symlink_to(tmp_path / "outside")
    (package / "hard").hardlink_to(tmp_path / "outside" / "x")
    assert path_problem(package, text)
    assert path_problem(package, "model/model.onnx") is None
