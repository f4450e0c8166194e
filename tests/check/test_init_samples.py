"""init with real requests: lines, one object, an archive of arrays; and what does not fit is named."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from seatrial.check import check_package, init_package
from seatrial.contract import load_package, read_golden, read_requests
from seatrial.errors import ContractError
from tests.check.modelling import I64, F, const, model, node, save, value


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sums the looked-up rows of `ids` and adds `x`; works for 4 ids or more only, so that guesses have to grow."""
    proto = model(
        [
            node("Gather", ["table", "ids"], ["rows"]),
            node("ReduceSum", ["rows", "axis"], ["s"], keepdims=0),
            node("Add", ["s", "x"], ["y"]),
        ],
        [value("ids", ["b", "k"], I64), value("x", ["b", 2], F)],
        [value("y", ["b", 2])],
        [const("table", np.arange(20).reshape(10, 2)), const("axis", [1], "int64")],
    )
    return save(proto, tmp_path_factory.mktemp("samples") / "m.onnx")


def request(ids: object, x: object, n: int = 1) -> dict[str, object]:
    return {
        "inputs": [
            {"name": "ids", "datatype": "INT64", "shape": [n, 3], "data": ids},
            {"name": "x", "datatype": "FP32", "shape": [n, 2], "data": x},
        ]
    }


def test_a_model_is_called_like_its_folder(source: Path, tmp_path: Path) -> None:
    wanted = {"churn": None, "other": "fraud"}
    packages = [init_package(source, tmp_path / out, name=name) for out, name in wanted.items()]
    assert [load_package(package).identity.name for package in packages] == ["churn", "fraud"]


def test_request_lines_become_the_samples(source: Path, tmp_path: Path) -> None:
    lines = [request([[1, 2, 3]], [[0.5, 1e-3]]), request([4, 5, 6, 7, 8, 9], [1, 2, 3, 4], n=2)]
    sample = tmp_path / "real.jsonl"
    sample.write_text("".join(json.dumps(line) + "\n" for line in lines))
    package = load_package(init_package(source, tmp_path / "out", sample))
    got = list(read_requests(package.root))
    assert [r["inputs"][0]["shape"] for r in got] == [[1, 3], [2, 3]]
    assert [r["inputs"][0]["data"] for r in got] == [[1, 2, 3], [4, 5, 6, 7, 8, 9]]
    assert got[0]["inputs"][1]["data"] == [0.5, 0.001]
    golden = list(read_golden(package.root))
    assert golden[0].outputs[0].data == pytest.approx([2 + 4 + 6 + 0.5, 3 + 5 + 7 + 0.001])
    assert not any(f.code == "SMP006" for f in check_package(package.root).findings)
    batching = package.batching()
    assert batching is not None
    evidence = (package.root / "evidence" / "batching.json").read_text()
    assert "sample rows" in evidence


def test_arrays_become_one_request_a_row(source: Path, tmp_path: Path) -> None:
    sample = tmp_path / "arrays.npz"
    np.savez(sample, ids=np.array([[1, 2, 3], [4, 5, 6]], np.int64), x=np.zeros((2, 2), np.float32))
    package = load_package(init_package(source, tmp_path / "out", sample))
    assert [r["inputs"][0]["data"] for r in read_requests(package.root)] == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("data", [request([1, 2, 3], [0, 0]), {"ids": [[1, 2, 3]], "x": [[0.0, 0.5]]}])
def test_one_json_object_is_taken_in_both_forms(source: Path, tmp_path: Path, data: object) -> None:
    sample = tmp_path / "one.json"
    sample.write_text(json.dumps(data))
    package = load_package(init_package(source, tmp_path / "out", sample))
    assert next(iter(read_requests(package.root)))["inputs"][0]["data"] == [1, 2, 3]


def bomb() -> bytes:
    raw = io.BytesIO()
    with (
        zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("ids.npy", "w", force_zip64=True) as out,
    ):
        for _ in range(1100):
            out.write(b"\0" * (1 << 20))
    return raw.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", "", "holds no request"),
        ("a.jsonl", "{}", "`inputs` is missing"),
        ("a.jsonl", "[1", "no valid JSON"),
        ("a.jsonl", '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [NaN]}]}', "NaN"),
        ("a.jsonl", json.dumps({"inputs": []}), "the model takes `ids` INT64, `x` FP32"),
        ("a.jsonl", json.dumps(request([1, 2], [0, 0])), "2 values for the shape [1, 3]"),
        ("a.jsonl", json.dumps(request([1, 2, 3.5], [0, 0])), "`3.5` is no INT64"),
        ("a.jsonl", json.dumps(request([1, 2, 1 << 63], [0, 0])), "no INT64"),
        ("a.jsonl", json.dumps(request([1, 2, True], [0, 0])), "no INT64"),
        ("a.jsonl", json.dumps(request([1, 2, 3], [0, "x"])), "no FP32"),
        ("a.jsonl", json.dumps(request([1, 2, 99], [0, 0])), "could not be run"),
        ("a.json", "[]", "holds no object"),
        ("a.json", '{"ids": [[1, 2, 3]]}', "holds the arrays ['ids']"),
        ("a.json", '{"ids": [[1], [1, 2]], "x": [[0, 0]]}', "unequal length"),
        ("a.json", '{"ids": [[1.5, 2, 3]], "x": [[0.0, 0.0]]}', "the model takes INT64"),
        ("a.npz", b"PK\x03\x04nonsense", "no archive"),
        ("a.npz", b"plain", "no archive"),
    ],
)
def test_a_sample_that_does_not_fit_is_named(
    source: Path, tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    sample = tmp_path / name
    sample.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ContractError) as caught:
        init_package(source, tmp_path / "out", sample)
    assert words in caught.value.message, caught.value.message
    assert caught.value.hint
    assert not (tmp_path / "out").exists()


def test_an_archive_that_unpacks_beyond_bounds_is_not_unpacked(source: Path, tmp_path: Path) -> None:
    sample = tmp_path / "bomb.npz"
    sample.write_bytes(bomb())
    with pytest.raises(ContractError, match="unpacks to"):
        init_package(source, tmp_path / "out", sample)


def test_an_archive_of_objects_is_not_unpickled(source: Path, tmp_path: Path) -> None:
    sample = tmp_path / "objects.npz"
    np.savez(sample, ids=np.array([{"a": 1}], dtype=object), x=np.zeros(1))
    with pytest.raises(ContractError, match="no archive of plain arrays"):
        init_package(source, tmp_path / "out", sample)
