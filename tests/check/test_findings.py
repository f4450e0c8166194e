"""Every finding code has a package that raises it; nothing else in the table is dead."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from seatrial.check import FINDINGS, check_package
from seatrial.contract import write_manifest
from tests.check.modelling import I64, F, const, external, model, node, value

Breaker = Callable[[Path], object]


def edit(file: str, old: str, new: str) -> Breaker:
    def apply(package: Path) -> None:
        text = (package / file).read_text("utf-8")
        assert old in text, f"`{old}` is not in {file}"
        (package / file).write_text(text.replace(old, new, 1), "utf-8")

    return apply


def write(file: str, content: bytes | str) -> Breaker:
    def apply(package: Path) -> None:
        target = package / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    return apply


def remove(file: str) -> Breaker:
    return lambda package: (package / file).unlink()


def graph(change: Callable[[onnx.ModelProto], object]) -> Breaker:
    """Changes the model file of the package."""

    def apply(package: Path) -> None:
        path = package / "model" / "model.onnx"
        proto = onnx.load(str(path))
        change(proto)
        path.write_bytes(proto.SerializeToString())

    return apply


def replaced(proto: onnx.ModelProto) -> Breaker:
    return write("model/model.onnx", proto.SerializeToString())


def one(op: str, inputs: list[str], stored: list[onnx.TensorProto], **attributes: object) -> onnx.ModelProto:
    return model(
        [node(op, inputs, ["y"], **attributes)], [value("x", ["n", 2])], [value("y", ["n", 2])], stored
    )


def together(*breakers: Breaker) -> Breaker:
    return lambda package: [b(package) for b in breakers]


def lock(text: str, digest: str | None = None) -> Breaker:
    sha = digest or hashlib.sha256(text.encode()).hexdigest()
    old = "lock: null  # QUESTION(algorithm): which lock file made the model, as {file: ..., sha256: ...}?"
    named = edit("environment.yaml", old, f'lock: {{file: made.lock, sha256: "{sha}"}}')
    return together(write("made.lock", text), named)


def external_at(location: str, data: bytes | None = b"\0" * 16, **entries: object) -> Breaker:
    breakers = [replaced(external(location, **entries))]
    if data is not None:
        breakers.append(write(f"model/{location}", data))
    return together(*breakers)


def overlapping(package: Path) -> None:
    proto = external("w.bin", offset=0, length=16)
    second = onnx.TensorProto()
    second.CopyFrom(proto.graph.initializer[0])
    second.name = "v"
    second.external_data[1].value = "8"
    proto.graph.initializer.append(second)
    together(replaced(proto), write("model/w.bin", b"\0" * 32))(package)


def hard_linked(package: Path) -> None:
    external_at("w.bin")(package)
    os.link(package / "model" / "w.bin", package.parent / "other-name")


def huge_model(package: Path) -> None:
    with (package / "model" / "model.onnx").open("r+b") as stream:
        stream.truncate(1 << 31)


def unreadable(package: Path) -> None:
    with (package / "slo.yaml").open("r+b") as stream:
        stream.truncate(2 << 20)


SEQUENCE = model(
    [node("SequenceConstruct", ["x"], ["y"])],
    [value("x", ["n", 2])],
    [helper.make_tensor_sequence_value_info("y", F, None)],
)
TRAINED = one("Dropout", ["x", "ratio", "mode"], [const("ratio", 0.5), const("mode", True, bool)])
QUANTISED = model(
    [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])],
    [value("x", ["n", 2])],
    [value("y", ["n", 2])],
)
LONG = "\n\nThis section says in its own words what has to be said here.\n"
CUSTOM = [("", 17), ("com.example", 1)]

# Code -> what breaks the package so that this code is found.
BREAKERS: dict[str, Breaker] = {
    "PKG001": remove("slo.yaml"),
    "PKG002": lambda p: (p / "vocab.txt").symlink_to("/etc/hostname"),
    "PKG003": write("samples/state.bin", pickle.dumps({"a": [1, 2, 3]})),
    "PKG004": unreadable,
    "SCH001": write("slo.yaml", "a: [1"),
    "SCH002": edit("slo.yaml", "window: 30d", "window: 30d\nwindow: 30d"),
    "SCH003": edit("slo.yaml", "window: 30d", "windov: 30d"),
    "SCH004": edit("slo.yaml", "latency:", "x-latency:"),
    "SCH005": edit("slo.yaml", "30d", "30"),
    "SCH006": edit("slo.yaml", "seatrial/v1", "seatrial/v9"),
    "SCH007": write("slo.yaml", "a: " + "[" * 500 + "]" * 500),
    "IDN001": edit(
        "seatrial.yaml", '"QUESTION(infra): which mail list or channel reaches the serving owners?"', "them"
    ),
    "IDN002": edit(
        "seatrial.yaml", "licence: null  # QUESTION(algorithm): what is the SPDX name of the licence?", ""
    ),
    "IDN003": edit("seatrial.yaml", "seeds: {}  # QUESTION(algorithm)", "seeds: {}  # asked"),
    "IDN004": edit(
        "seatrial.yaml", "rollback_class: null  # QUESTION(both)", "rollback_class: null  # asked"
    ),
    "IDN005": edit("seatrial.yaml", "task: null  # QUESTION(algorithm)", "task: null  # asked"),
    "QST001": lambda p: None,
    "CRD001": edit("card.md", "## Known risks", "## Known rests"),
    "CRD002": edit("card.md", "## Known risks", "## Known risks\n\nTBD\n\n## Rest"),
    "CRD003": edit("card.md", "---", "+++"),
    "SIG001": edit("signature.yaml", '"ids"', '"idz"'),
    "SIG002": edit("signature.yaml", "INT64", "INT32"),
    "SIG003": edit("signature.yaml", "      - 3\n", "      - 3\n      - 1\n"),
    "SIG004": edit("signature.yaml", "      - 3\n", '      - {name: "k"}\n'),
    "SIG005": graph(lambda m: (m.graph.input.append(m.graph.input[0]), m.graph.input.pop(0))),
    "SIG006": edit("signature.yaml", "range: [0, 7]", "range: [-1, 7]"),
    "SIG007": edit("signature.yaml", '      - {name: "batch", max: null}\n      - 1', "      - 1\n      - 1"),
    "SIG008": edit("signature.yaml", "  # QUESTION(both): how large may batch be at most?", ""),
    "MAN001": write("note.txt", "new"),
    "MOD001": write("model/model.onnx", "<html>not found</html>"),
    "MOD002": graph(lambda m: setattr(m.graph.output[0], "name", "")),
    "MOD003": huge_model,
    "MOD004": graph(lambda m: setattr(m, "ir_version", 99)),
    "MOD005": graph(lambda m: setattr(m.opset_import[0], "version", 99)),
    "MOD006": graph(lambda m: setattr(m.opset_import[0], "version", 6)),
    "MOD007": replaced(
        model(
            [node("Own", ["x"], ["y"], domain="com.example")],
            [value("x", [2])],
            [value("y", [2])],
            opsets=CUSTOM,
        )
    ),
    "MOD008": replaced(
        model(
            [node("Gelu", ["x"], ["y"], domain="com.microsoft")],
            [value("x", [2])],
            [value("y", [2])],
            opsets=[("", 17), ("com.microsoft", 1)],
        )
    ),
    "MOD009": replaced(one("Nonsense", ["x"], [])),
    "MOD010": replaced(SEQUENCE),
    "MOD011": replaced(TRAINED),
    "MOD012": graph(lambda m: m.opset_import.append(m.opset_import[0])),
    "MOD013": replaced(QUANTISED),
    "MOD014": replaced(one("RandomNormalLike", ["x"], [])),
    "EXT001": external_at("../w.bin", None),
    "EXT002": external_at("w.bin", None),
    "EXT003": hard_linked,
    "EXT004": external_at("w.bin", b"\0" * 15, length=16),
    "EXT005": overlapping,
    "ENV001": edit("environment.yaml", "ir: 8", "ir: 9"),
    "ENV002": edit("environment.yaml", "lock: null  # QUESTION(algorithm)", "lock: null  # asked"),
    "ENV003": lock("numpy==2.4.6 --hash=sha256:00\n", "0" * 64),
    "ENV004": edit("environment.yaml", 'version: "1.31.1"', 'version: "1.20.1"'),
    "ENV005": lock("numpy==2.4.6 --hash=sha256:00\nonnx>=1.18\n"),
    "SLO001": together(
        edit("slo.yaml", "p50: null", "p50: 50ms"), edit("slo.yaml", "p99: null", "p99: 20ms")
    ),
    "SLO002": together(
        edit("slo.yaml", "p99: null", "p99: 20ms"), edit("slo.yaml", "stages: {}", "stages: {run: {p99: 1s}}")
    ),
    "SLO003": edit("slo.yaml", "p99: null  # QUESTION(both)", "p99: null  # asked"),
    "SLO004": together(
        edit("slo.yaml", "mean: null", "mean: 9/s"), edit("slo.yaml", "peak: null", "peak: 8/s")
    ),
    "SRV001": lambda p: None,  # replaced below: needs evidence of another mode
    "SRV002": edit("serving.yaml", "executors: auto", "executors: auto\nbuckets: [8, 8]"),
    "SRV003": edit("serving.yaml", "rows: 1024", "rows: 8"),
    "RES001": together(
        edit("resources.yaml", "min: null", "min: 3"), edit("resources.yaml", "max: null", "max: 2")
    ),
    "SMP001": write("samples/requests.jsonl", '{"inputs": NaN}\n'),
    "SMP002": edit("samples/requests.jsonl", '"INT64"', '"INT32"'),
    "SMP003": remove("samples/requests.jsonl"),
    "SMP004": remove("samples/golden.jsonl"),
    "SMP005": write("samples/requests.jsonl", '{"inputs": []}\n' * 600),
    "SMP006": lambda p: None,
    "FEA001": write(
        "features.yaml",
        "apiVersion: seatrial/v1\nkind: Features\nfeatures:\n  - {field: a, type: string, tensor: nowhere}\n",
    ),
    "FEA002": write("features.yaml", "apiVersion: seatrial/v1\nkind: Features\nfeatures: []\n"),
    "EVI001": write("evidence/batching.json", "{}"),
    "EVI002": lambda p: None,
}


def evidence_of_mode_none(package: Path) -> None:
    path = package / "evidence" / "batching.json"
    record = json.loads(path.read_text())
    record["payload"].update(mode="none", axis=None, why="made up")
    path.write_text(json.dumps(record))


BREAKERS["SRV001"] = evidence_of_mode_none


def test_the_table_and_the_examples_are_the_same_codes() -> None:
    assert set(BREAKERS) == set(FINDINGS)


def test_the_untouched_draft_has_only_notes(package: Path) -> None:
    report = check_package(package)
    assert [f for f in report.findings if f.severity != "note"] == []
    assert report.ok
    assert {f.code for f in report.findings} == {"QST001", "EVI002", "SMP006"}


@pytest.mark.parametrize("code", list(BREAKERS))
def test_a_code_is_found_with_place_owner_and_cure(package: Path, code: str) -> None:
    BREAKERS[code](package)
    found = [f for f in check_package(package).findings if f.code == code]
    assert found, [f"{f.code} {f.text}" for f in check_package(package).findings if f.code != "QST001"]
    kind = FINDINGS[code]
    for finding in found:
        assert finding.severity == kind.severity
        assert finding.owner in ("algorithm", "infra", "both")
        assert finding.text
        assert finding.hint
        assert not Path(finding.file).is_absolute()


@pytest.mark.parametrize(
    ("code", "file", "line"),
    [
        ("SCH002", "slo.yaml", 17),
        ("SCH003", "slo.yaml", 16),
        ("SIG002", "signature.yaml", 5),
        ("SIG004", "signature.yaml", 8),
        ("SIG006", "signature.yaml", 9),
        ("ENV001", "environment.yaml", 7),
        ("SMP002", "samples/requests.jsonl", 1),
        ("CRD002", "card.md", 45),
    ],
)
def test_a_finding_points_at_the_line(package: Path, code: str, file: str, line: int) -> None:
    BREAKERS[code](package)
    found = [(f.file, f.line) for f in check_package(package).findings if f.code == code]
    assert found == [(file, line)]


def test_an_answered_card_and_identity_leave_no_question(package: Path) -> None:
    for file in (
        "seatrial.yaml",
        "signature.yaml",
        "slo.yaml",
        "resources.yaml",
        "environment.yaml",
        "card.md",
        "CODEOWNERS",
    ):
        text = (package / file).read_text().replace("QUESTION(", "answered (")
        (package / file).write_text(text)
    codes = {f.code for f in check_package(package).findings}
    assert "QST001" not in codes
    assert {"IDN001", "IDN002", "IDN003", "IDN004", "IDN005", "ENV002", "SLO003", "SIG008"} <= codes


def test_the_message_of_a_new_ir_gives_both_numbers_and_the_cure(package: Path) -> None:
    BREAKERS["MOD004"](package)
    found = next(f for f in check_package(package).findings if f.code == "MOD004")
    assert found.text == "IR 99, runtime 1.31.1 takes up to 13"
    assert "ir_version = 13" in found.hint


def test_stage_budgets_that_together_exceed_the_total_are_found(package: Path) -> None:
    edit("slo.yaml", "p99: null", "p99: 20ms")(package)
    edit("slo.yaml", "stages: {}", "stages: {run: {p99: 15ms}, queue: {p99: 10ms}}")(package)
    assert any(f.code == "SLO002" and "25 ms" in f.text for f in check_package(package).findings)


def test_a_broken_file_does_not_silence_the_others(package: Path) -> None:
    for code in ("SCH001", "SIG002", "CRD001", "SRV003"):
        BREAKERS[code](package)
    codes = {f.code for f in check_package(package).findings}
    assert {"SCH001", "SIG002", "CRD001", "SRV003", "MAN001"} <= codes


def test_a_manifest_written_anew_is_fresh(package: Path) -> None:
    BREAKERS["SRV003"](package)
    assert any(f.code == "MAN001" for f in check_package(package).findings)
    write_manifest(package)
    assert not any(f.code == "MAN001" for f in check_package(package).findings)


def test_evidence_stays_valid_while_the_model_files_do(package: Path) -> None:
    BREAKERS["SRV003"](package)
    write_manifest(package)
    assert check_package(package).batching is not None
    graph(lambda m: setattr(m, "producer_name", "other"))(package)
    write_manifest(package)
    report = check_package(package)
    assert report.batching is None
    assert any(f.code == "EVI001" for f in report.findings)


def test_bfloat_and_odd_types_are_known() -> None:
    from seatrial.check.reading import DTYPES

    assert DTYPES[TensorProto.BFLOAT16] == "BF16"
    assert TensorProto.COMPLEX64 not in DTYPES
    assert DTYPES[I64] == "INT64"
