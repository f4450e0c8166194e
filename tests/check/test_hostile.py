"""Files made to hurt: each ends in a sentence, quickly, without a byte from outside the package being read."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import random
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from seatrial.check import check_package, init_package
from seatrial.check.external import external_findings
from seatrial.check.facts import collect_facts
from seatrial.check.findings import Finding
from seatrial.check.model_rules import model_findings
from seatrial.check.reading import read_model
from seatrial.contract import load_package, write_manifest
from seatrial.errors import ContractError
from tests.check.modelling import external, save


@pytest.mark.parametrize(
    ("location", "entries", "words"),
    [
        ("../w.bin", {}, ["../w.bin", "leaves the folder"]),
        ("a/../../w.bin", {}, ["leaves the folder"]),
        ("..\\w.bin", {}, ["leaves the folder"]),
        ("/etc/passwd", {}, ["absolute path"]),
        ("C:/w.bin", {}, ["absolute path"]),
        ("~/w.bin", {}, ["absolute path"]),
        ("", {}, ["without a location"]),
        ("w.bin", {"offset": "-1"}, ["negative"]),
        ("w.bin", {"offset": "x"}, ["no number"]),
        ("w.bin", {"offset": "17"}, ["17", "which has 16"]),
        ("w.bin", {"length": "17"}, ["0 to 17", "which has 16"]),
        ("w.bin", {"offset": str(1 << 70)}, ["which has 16"]),
        ("gone.bin", {}, ["gone.bin", "missing"]),
        ("folder", {}, ["no regular file"]),
    ],
)
def test_external_data_is_judged_before_any_runtime(
    tmp_path: Path, package: Path, location: str, entries: dict[str, str], words: list[str]
) -> None:
    proto = external(location, **entries)
    for home in (tmp_path / "source", package / "model"):
        home.mkdir(exist_ok=True)
        (home / "w.bin").write_bytes(b"\0" * 16)
        (home / "folder").mkdir()
    with pytest.raises(ContractError) as caught:
        init_package(save(proto, tmp_path / "source" / "m.onnx"), tmp_path / "out")
    assert all(w in caught.value.message for w in words), caught.value.message
    save(proto, package / "model" / "model.onnx")
    said = " ".join(f.text for f in check_package(package).findings if f.code.startswith("EXT"))
    assert all(w in said for w in words), said


def test_a_link_of_external_data_to_another_folder_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"0123456789abcdef")
    source = save(external("w.bin"), tmp_path / "model" / "m.onnx")
    (source.parent / "w.bin").symlink_to(secret)
    with pytest.raises(ContractError, match="link to another folder"):
        init_package(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "/dev/zero", "/dev/stdin", "missing", "../../outside"])
@pytest.mark.parametrize(
    "name",
    [
        "slo.yaml",
        "card.md",
        "MANIFEST.json",
        "model/model.onnx",
        "samples/requests.jsonl",
        "evidence/batching.json",
        "x",
    ],
)
def test_a_link_is_never_opened(package: Path, name: str, target: str) -> None:
    (package / name).unlink(missing_ok=True)
    (package / name).symlink_to(target)
    report = check_package(package)
    assert any(f.code == "PKG002" and f.file == name for f in report.findings)
    with pytest.raises(ContractError, match="symbolic link"):
        load_package(package)
    with pytest.raises(ContractError, match="symbolic link"):
        write_manifest(package)


@pytest.mark.parametrize("name", ["model", "samples", "evidence"])
def test_a_linked_folder_is_never_entered(package: Path, tmp_path: Path, name: str) -> None:
    (package / name).rename(tmp_path / "elsewhere")
    (package / name).symlink_to(tmp_path / "elsewhere")
    assert any(f.code == "PKG002" and f.file == name for f in check_package(package).findings)
    with pytest.raises(ContractError, match="symbolic link"):
        load_package(package)


def test_hard_links_and_pipes_are_refused(package: Path, tmp_path: Path) -> None:
    os.link(package / "slo.yaml", tmp_path / "other-name")
    os.mkfifo(package / "samples" / "pipe")
    found = {f.file: f.text for f in check_package(package).findings if f.code == "PKG002"}
    assert set(found) == {"slo.yaml", "samples/pipe"}
    with pytest.raises(ContractError):
        load_package(package)


def test_a_changed_file_is_not_loaded_under_the_old_digest(package: Path) -> None:
    with (package / "serving.yaml").open("a") as stream:
        stream.write("# changed\n")
    with pytest.raises(ContractError, match="MANIFEST") as caught:
        load_package(package)
    assert "--write-manifest" in str(caught.value.hint)


def objects() -> dict[str, bytes]:
    """File name -> bytes that run code when they are loaded."""
    plain = pickle.dumps(os.getcwd)
    array = io.BytesIO()
    np.save(array, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("archive/data.pkl", plain)
    hidden = io.BytesIO()
    with zipfile.ZipFile(hidden, "w") as z:
        z.writestr("weights", plain)
    return {
        **{f"v{p}.dat": pickle.dumps({"k": [1, 2, (3, os.getcwd)]}, protocol=p) for p in range(6)},
        "trailing.dat": plain + b"\0" * 100,
        "large.dat": pickle.dumps(list(range(100_000))),
        "text.txt": b"cos\nsystem\n(S'true'\ntR.",
        "array.npy": array.getvalue(),
        "checkpoint.bin": archive.getvalue(),
        "hidden.zip": hidden.getvalue(),
        "broken.zip": archive.getvalue()[:40],
        "packed.gz": gzip.compress(plain),
        "library.so": b"\x7fELF" + b"\0" * 60,
        "named.pkl": b"anything",
    }


@pytest.mark.parametrize("name", list(objects()))
def test_hidden_code_is_found_under_any_name(package: Path, name: str) -> None:
    (package / "samples" / name).write_bytes(objects()[name])
    assert [f.file for f in check_package(package).findings if f.code == "PKG003"] == [f"samples/{name}"]


def test_plain_data_is_no_code(package: Path) -> None:
    plain = {
        "vocab.txt": b"cat\ndog\nfish\n.\n",
        "colours.txt": b"cyan\nred\n",
        "lines.csv": b"a,b\n1,2\n",
        "numbers.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
        "random.bin": random.Random(7).randbytes(1 << 16),
        "starts-alike.bin": b"\x80\x02" + b"\xff" * 1000,
        "tokenizer.json": b'{"a": 1}',
    }
    for name, content in plain.items():
        (package / "samples" / name).write_bytes(content)
    assert [f.text for f in check_package(package).findings if f.code == "PKG003"] == []


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "an empty file"),
        (pickle.dumps({"a": 1}), "pickle"),
        (b"PK\x03\x04rest", "zip"),
        (b"\x1f\x8brest", "gzip"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"<!DOCTYPE html>", "a text"),
        (b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ", "safetensors"),
        (b"....TFL3....", "TensorFlow Lite"),
        (b"....ORTM....", "ORT-format"),
        (b"\x89HDF\r\n", "HDF5"),
        (b"\xff" * 64, "no ONNX model"),
        (b"\x08\x08", "no graph"),
    ],
)
def test_what_is_no_onnx_is_called_by_its_name(tmp_path: Path, content: bytes, what: str) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(content)
    with pytest.raises(ContractError, match=what):
        init_package(source, tmp_path / "out")


def test_a_large_yaml_file_costs_nothing(package: Path) -> None:
    with (package / "signature.yaml").open("r+b") as stream:
        stream.truncate(100 << 20)
    started = time.process_time()
    report = check_package(package)
    assert any(f.code == "PKG004" for f in report.findings)
    assert time.process_time() - started < 2.0, "a hole of 100 MiB is hashed once and never parsed"


@pytest.mark.parametrize("depth", [200, 100_000])
def test_deep_json_is_refused(package: Path, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    line = '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": ' + deep + "}]}\n"
    (package / "samples" / "requests.jsonl").write_text(line)
    (package / "MANIFEST.json").write_text(deep)
    (package / "evidence" / "batching.json").write_text(deep)
    codes = {f.code for f in check_package(package).findings}
    assert codes & {"SMP001", "SMP002"}
    assert codes & {"SCH001", "SCH005"}


def test_mutated_models_end_in_findings_never_in_a_crash(package: Path, draft: Path) -> None:
    """300 seeded mutations through the whole check: flipped, cut, doubled and spliced bytes of a good model."""
    good = (draft / "model" / "model.onnx").read_bytes()
    chance = random.Random(20261129)
    path = package / "model" / "model.onnx"
    for _ in range(300):
        path.write_bytes(mutated(good, chance))
        json.dumps(check_package(package).to_json())


def test_many_mutated_models_are_read_without_a_crash(draft: Path, tmp_path: Path) -> None:
    """2,000 more through the reading of the model alone, which is where hostile bytes arrive."""
    good = (draft / "model" / "model.onnx").read_bytes()
    chance = random.Random(7)
    path = tmp_path / "m.onnx"
    for _ in range(2000):
        path.write_bytes(mutated(good, chance))
        parsed = read_model(path)
        if not isinstance(parsed, Finding):
            external_findings(parsed.proto, tmp_path)
            model_findings(parsed, collect_facts(parsed), "1.31.1")


def mutated(good: bytes, chance: random.Random) -> bytes:
    raw = bytearray(good)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(raw))
        match chance.randrange(5):
            case 0:
                raw[at] ^= 1 << chance.randrange(8)
            case 1:
                raw[at] = chance.randrange(256)
            case 2:
                del raw[at : at + chance.randint(1, 8)]
            case 3:
                raw[at:at] = raw[at : at + chance.randint(1, 16)]
            case _:
                raw[at:at] = chance.randbytes(chance.randint(1, 8))
        if not raw:
            break
    return bytes(raw)


def test_mutated_models_are_packed_or_refused(draft: Path, tmp_path: Path) -> None:
    """A few of the same through init, which runs what it cannot refuse by reading."""
    good = (draft / "model" / "model.onnx").read_bytes()
    chance = random.Random(3)
    for number in range(12):
        source = tmp_path / f"m{number}.onnx"
        source.write_bytes(mutated(good, chance))
        with contextlib.suppress(ContractError):
            init_package(source, tmp_path / f"out{number}")
            load_package(tmp_path / f"out{number}")
