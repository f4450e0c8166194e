"""Documents: unknown keys, wrong values and missing keys are named with path, line, what came and what is expected."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.contract import FILES, Problem, Source, parse_yaml, validate

SIGNATURE = """apiVersion: seatrial/v1
kind: Signature
inputs:
  - name: x
    datatype: FP32
    shape: [{name: batch, max: 64}, 2]
outputs:
  - name: y
    datatype: FP32
    shape: [{name: batch}, 2]
    labels: [a, b]
"""
SLO = """apiVersion: seatrial/v1
kind: Slo
latency:
  total: {p50: 10ms, p99: 100ms}
  stages:
    run: {p99: 5ms}
error_budget: 0.1%
load: {mean: 500/s, peak: 2000/s, growth: 5%/month}
window: 30d
"""


def problems(file: str, text: str) -> list[Problem]:
    source = parse_yaml(text, file)
    assert isinstance(source, Source)
    return validate(FILES[file], source).problems


def test_good_documents_are_read() -> None:
    assert problems("signature.yaml", SIGNATURE) == []
    assert problems("slo.yaml", SLO) == []


def test_keys_that_begin_with_x_are_carried() -> None:
    source = parse_yaml(SLO + "x-board: {url: here}\n", "slo.yaml")
    assert isinstance(source, Source)
    slo: Any = validate(FILES["slo.yaml"], source).value
    assert slo.extensions == {"x-board": {"url": "here"}}
    nested = SLO.replace("p50: 10ms", "p50: 10ms, x-why: guess")
    assert problems("slo.yaml", nested) == []


@pytest.mark.parametrize(
    ("file", "text", "kind", "line", "words"),
    [
        ("slo.yaml", SLO.replace("p50: 10ms", "p50: 10"), "schema", 4, ["latency.total.p50", "10", "100ms"]),
        ("slo.yaml", SLO.replace("p50", "p51"), "unknown-key", 4, ["latency.total.p51"]),
        ("slo.yaml", SLO.replace("    run:", "    runn:"), "schema", 6, ["runn"]),
        ("slo.yaml", SLO.replace("/v1", "/v2"), "api-version", 1, ["seatrial/v2", "seatrial/v1"]),
        ("slo.yaml", SLO.replace("latency:", "latenzy:"), "missing-key", 1, ["latency"]),
        (
            "signature.yaml",
            SIGNATURE.replace("FP32", "STRING", 1),
            "schema",
            5,
            ["datatype", "STRING", "BYTES"],
        ),
        ("signature.yaml", SIGNATURE.replace(", 2]", ", -1]", 1), "schema", 6, ["shape[1]", "-1"]),
        ("signature.yaml", SIGNATURE.replace(", 2]", ", 2.5]", 1), "schema", 6, ["shape[1]", "2.5"]),
        ("signature.yaml", SIGNATURE.replace("max: 64", "max: 64, min: 65"), "schema", 6, ["65", "64"]),
        ("signature.yaml", SIGNATURE.replace(", 2]", ", {size: 2}]", 1), "missing-key", 6, ["why"]),
        ("signature.yaml", SIGNATURE.replace("[a, b]", "[a, b, c]"), "schema", 8, ["3 labels", "2 columns"]),
        (
            "signature.yaml",
            SIGNATURE.replace("    labels", "    range: [2, 1]\n    labels"),
            "schema",
            8,
            ["low to high"],
        ),
        ("signature.yaml", SIGNATURE.replace("name: y", "name: 7"), "schema", 8, ["name", "7"]),
        ("signature.yaml", SIGNATURE.replace("name: batch", "name: 'a b'", 1), "schema", 6, ["a b"]),
    ],
)
def test_a_mistake_is_named_with_its_place(
    file: str, text: str, kind: str, line: int, words: list[str]
) -> None:
    found = problems(file, text)
    matching = [p for p in found if p.kind == kind]
    assert matching, found
    assert matching[0].line == line, matching
    said = " ".join(p.text for p in matching)
    assert all(word in said for word in words), said
    assert matching[0].hint


def test_a_tensor_declared_twice_is_named() -> None:
    twice = SIGNATURE.replace("outputs:", "  - {name: x, datatype: FP32, shape: []}\noutputs:")
    assert "`x` is declared twice" in problems("signature.yaml", twice)[0].text


def test_a_number_where_a_text_is_due_is_cured_by_quotes() -> None:
    text = "apiVersion: seatrial/v1\nkind: Environment\nruntime: {name: onnxruntime, version: 1.31}\nopset: {}\nir: 8\n"
    assert 'in quotes: "1.31"' in problems("environment.yaml", text)[0].hint


@pytest.mark.parametrize("file", list(FILES))
@pytest.mark.parametrize("text", ["", "[]", "7", "text", "{}"])
def test_a_document_of_another_form_is_a_problem_and_no_crash(file: str, text: str) -> None:
    assert problems(file, text)
