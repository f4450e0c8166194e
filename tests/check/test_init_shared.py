"""init on every shared model: packed with the batching mode that is true, or refused with the words that help."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from seatrial.check import check_package, from_wire, init_package
from seatrial.contract import load_package, read_golden
from seatrial.errors import ContractError
from tests.packing import REFUSED, SERVABLE, pack_models

pytestmark = pytest.mark.shared


@pytest.fixture(scope="session")
def packed(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {p.name: p for p in pack_models(shared, tmp_path_factory.mktemp("packed"))}


def test_no_shared_model_is_left_out(shared: Path) -> None:
    there = {p.stem for p in (shared / "cases" / "models").glob("*.onnx")}
    assert there == set(SERVABLE) | set(REFUSED) | {"dropout_left_on"}


@pytest.mark.parametrize("name", list(SERVABLE))
def test_a_servable_model_becomes_a_clean_draft(packed: dict[str, Path], name: str) -> None:
    report = check_package(packed[name])
    errors = [f for f in report.findings if f.severity == "error"]
    assert errors == []
    assert report.is_draft
    package = load_package(packed[name])
    batching = package.batching()
    assert batching is not None
    assert batching.mode == SERVABLE[name], batching.why
    assert batching.axis == (None if batching.mode == "none" else 0)
    assert batching.why


@pytest.mark.parametrize("name", [n for n in SERVABLE if n != "echo_bfloat16"])
def test_golden_rows_are_what_the_runtime_answers(packed: dict[str, Path], name: str) -> None:
    package = load_package(packed[name])
    session = ort.InferenceSession(str(package.model_file), providers=["CPUExecutionProvider"])
    lines = list(read_golden(package.root))
    assert len(lines) == 16
    for line in lines[:3]:
        feeds = {t.name: from_wire(t.model_dump()) for t in line.request.inputs}
        for tensor, got in zip(line.outputs, session.run(None, feeds), strict=True):
            want = from_wire(tensor.model_dump())
            assert list(got.shape) == tensor.shape
            if want.dtype.kind == "f":
                close = np.isclose(
                    got, want, rtol=line.tolerance.rel, atol=line.tolerance.abs, equal_nan=True
                )
                assert close.all(), f"{name}: {got} against {want}, tolerance {line.tolerance}"
            else:
                assert (got == want).all()


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_model_that_cannot_be_served_is_refused_in_words(shared: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ContractError) as caught:
        init_package(shared / "cases" / "models" / f"{name}.onnx", tmp_path / "out")
    assert all(word in caught.value.message for word in REFUSED[name]), caught.value.message
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == [], "a refusal leaves nothing behind"


def test_training_mode_is_packed_but_never_passes_the_check(shared: Path, tmp_path: Path) -> None:
    package = init_package(shared / "cases" / "models" / "dropout_left_on.onnx", tmp_path / "out")
    report = check_package(package)
    assert [(f.code, "Dropout" in f.text) for f in report.findings if f.severity == "error"] == [
        ("MOD011", True)
    ]
    assert report.batching is not None
    assert "two runs of the same input differ" in report.batching.why
    assert not (package / "samples" / "golden.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("baked_batch", ["only takes 1", "Reshape node"]),
        ("batch_mixing", ["depends on its batch mates", "`y`"]),
        ("batch_axis1_out", ["`y`", "axis 0"]),
        ("nonzero_rows", ["`y`", "axis 0"]),
        ("if_true_model", ["depends on its batch mates"]),
        ("scalar_in", ["`x`", "scalar"]),
        ("slow_by_input", ["`steps`", "scalar"]),
    ],
)
def test_the_reason_against_batching_is_given(packed: dict[str, Path], name: str, words: list[str]) -> None:
    batching = load_package(packed[name]).batching()
    assert batching is not None
    assert all(w in batching.why for w in words), batching.why


def test_a_baked_batch_is_written_as_fixed_with_its_reason(packed: dict[str, Path]) -> None:
    signature = load_package(packed["baked_batch"]).signature
    assert signature.inputs[0].dims == [1, 4]
    assert "Reshape node" in (packed["baked_batch"] / "signature.yaml").read_text()
    assert signature.outputs[0].dims == [1, 2]


@pytest.mark.parametrize(
    ("name", "labels"), [("zipmap_int64", ["0", "1", "7"]), ("zipmap_string", ["否", "yes", "a b"])]
)
def test_zipmap_becomes_a_tensor_with_labels(packed: dict[str, Path], name: str, labels: list[str]) -> None:
    package = load_package(packed[name])
    output = package.signature.resolved()["outputs"][0]
    assert (output["name"], output["datatype"], output["labels"]) == ("probs", "FP32", labels)
    session = ort.InferenceSession(str(package.model_file), providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"x": np.zeros((2, 3), np.float32)})
    assert answer == pytest.approx(np.full((2, 3), 1 / 3))
    assert "ZipMap" in package.environment.changes[0].what
    assert "ZipMap" in (package.root / "card.md").read_text()


def test_ids_of_a_table_get_its_range(packed: dict[str, Path]) -> None:
    package = load_package(packed["embed"])
    assert package.signature.inputs[0].range == (0, 7)
    lines = list(read_golden(package.root))
    ids = [v for line in lines for v in line.request.inputs[0].data]
    assert min(ids) >= 0
    assert max(ids) <= 7


def test_symbols_that_must_be_equal_share_one_name(packed: dict[str, Path]) -> None:
    inputs = load_package(packed["two_batch_symbols"]).signature.resolved()["inputs"]
    assert [i["shape"] for i in inputs] == [[{"name": "batch", "max": None}, 2]] * 2


def test_odd_names_are_kept(packed: dict[str, Path]) -> None:
    signature = load_package(packed["odd_names"]).signature
    assert [t.name for t in signature.outputs] == [
        "StatefulPartitionedCall:0",
        "out/with space, comma & ümlaut",
    ]


def test_external_data_is_carried_from_anywhere(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another working directory, through a link to the model, and out of a cache of links to blobs."""
    source = shared / "cases" / "models" / "ext_ok.onnx"
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    (blobs / "aaa").write_bytes(source.read_bytes())
    (blobs / "bbb").write_bytes(source.with_name("ext_ok.onnx.data").read_bytes())
    (snapshot / "ext_ok.onnx").symlink_to(os.path.relpath(blobs / "aaa", snapshot))
    (snapshot / "ext_ok.onnx.data").symlink_to(os.path.relpath(blobs / "bbb", snapshot))
    link = tmp_path / "link.onnx"
    link.symlink_to(source)
    monkeypatch.chdir(tmp_path)
    for number, given in enumerate((source, link, snapshot / "ext_ok.onnx")):
        package = load_package(init_package(given, tmp_path / f"out{number}"))
        session = ort.InferenceSession(str(package.model_file), providers=["CPUExecutionProvider"])
        (answer,) = session.run(None, {"x": np.ones((1, 2), np.float32)})
        assert answer.tolist() == [[4.0, 6.0]]
        assert {e.path for e in package.manifest.files} >= {"model/model.onnx", "model/ext_ok.onnx.data"}
        assert not (package.root / "model" / "ext_ok.onnx.data").is_symlink()


def test_the_evidence_names_package_and_model(packed: dict[str, Path]) -> None:
    record = json.loads((packed["echo_float"] / "evidence" / "batching.json").read_text())
    package = load_package(packed["echo_float"])
    assert record["digest"] == package.digest
    assert record["payload"]["tried"]
