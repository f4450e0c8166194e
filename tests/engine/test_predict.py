"""Raw fields over HTTP: the answer row by row, and what is wrong named by instance and field."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.engine import start
from seatrial.errors import EngineError
from tests.engine import tiny
from tests.engine.client import ask, metric

PREDICT = "/v1/models/doubling:predict"
SPEC: dict[str, Any] = {
    "tensors": [{"name": "x", "datatype": "FP32", "inner": [2], "range": [-1000, 1000]}],
    "missing_texts": [""],
    "features": [
        {"field": "size", "type": "number", "tensor": "x", "column": 0, "missing": {"rule": "value", "value": -1}},
        {"field": "colour", "type": "string", "tensor": "x", "column": 1,
         "steps": [{"step": "vocabulary", "file": "vocab/colour.txt", "unknown": {"rule": "index", "index": 9}}]},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def entry(doubling: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """`doubling` with a feature spec: at most four rows a request."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "vocab").mkdir()
    (folder / "vocab/colour.txt").write_text("red\nblue\n")
    entry = tiny.entry(doubling, features={"folder": str(folder), "spec": SPEC})
    rows = {"name": "batch", "max": 4}
    signature = json.loads(json.dumps(entry["signature"]))
    signature["inputs"][0]["shape"][0] = rows
    return entry | {"signature": signature}


@pytest.fixture(scope="module")
def predicting(entry: dict[str, Any], spinning: Path) -> Iterator[int]:
    with start(tiny.config(entry, tiny.entry(spinning)), timeout=60) as server:
        yield server.port


def post(port: int, rows: list[Any], path: str = PREDICT, **headers: str) -> Any:
    return ask(port, "POST", path, json.dumps({"instances": rows}).encode(), **headers)


def test_predictions_come_row_by_row(predicting: int) -> None:
    rows = [{"size": 2.5, "colour": "blue"}, {"colour": "red"}, {"size": 1, "colour": "green"}]
    for path in (PREDICT, PREDICT + "/", "/v1/models/doubling/versions/1.2.0:predict"):
        answer = post(predicting, rows, path)
        assert (answer.status, answer.json) == (200, {"predictions": [[5.0, 2.0], [-2.0, 0.0], [2.0, 18.0]]})
        assert answer.headers["content-type"] == "application/json"
    assert post(predicting, []).json == {"predictions": []}


def test_the_headers_mean_what_they_mean_for_tensors(predicting: int) -> None:
    answer = post(predicting, [{"colour": "red"}], seatrial_stages="1", seatrial_model_digest="1")
    stages = dict(part.split("=") for part in answer.headers["seatrial-stages"].split(";"))
    assert float(stages["feature"]) > 0
    assert float(stages["run"]) > 0
    assert len(answer.headers["seatrial-model-digest"]) == 64
    assert post(predicting, [{"colour": "red"}], seatrial_timeout_ms="x").status == 400


def test_bodies_are_unpacked_and_answers_packed(predicting: int) -> None:
    body = gzip.compress(json.dumps({"instances": [{"colour": "red"}] * 4}).encode())
    answer = ask(predicting, "POST", PREDICT, body, content_encoding="gzip", accept_encoding="gzip")
    assert answer.status == 200
    packed = answer.headers.get("content-encoding") == "gzip"
    assert json.loads(gzip.decompress(answer.body) if packed else answer.body)["predictions"][3] == [
        -2.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"colour": "red"}, {"colour": 7}], ["instance 1, field `colour`", "`7`", "a string"]),
        ([{"size": "2", "colour": "red"}], ["instance 0, field `size`", "the string `2`", "a finite number"]),
        ([{"size": 1}], ["instance 0, field `colour`", "got nothing"]),
        ([{"size": 1001, "colour": "red"}], ["instance 0, field `size`", "`1001`", "-1000 to 1000"]),
        ([{"colour": "red", "weight": 1}], ["instance 0", "no field `weight`", "`size`, `colour`"]),
        ([{"colour": "red"}] * 5, ["more than 4 `instances`"]),
        ([[1, 2]], ["an object for instance 0"]),
    ],
)
def test_what_is_wrong_is_named(predicting: int, rows: list[Any], words: list[str]) -> None:
    answer = post(predicting, rows)
    assert (answer.status, answer.json["code"]) == (400, "invalid_argument")
    assert [w for w in words if w not in answer.json["error"]] == []


def test_a_body_that_is_cut_short(predicting: int) -> None:
    answer = ask(predicting, "POST", PREDICT, b'{"instances": [{"colour": "red"}')
    assert answer.status == 400
    assert "EOF" in answer.json["error"]


def test_a_model_without_features_says_where_tensors_go(predicting: int) -> None:
    answer = post(predicting, [{}], "/v1/models/spinning:predict")
    assert answer.status == 404
    assert "`/v2/models/spinning/infer`" in answer.json["error"]
    assert ask(predicting, "GET", PREDICT).status == 405
    assert post(predicting, [{}], "/v1/models/nobody:predict").status == 404


def test_missing_and_unknown_values_are_counted(entry: dict[str, Any]) -> None:
    with start(tiny.config(entry), timeout=60) as server:
        post(server.port, [{"colour": "green"}, {"size": 1, "colour": "red"}])
        for _ in range(2):
            assert metric(server.port, "seatrial_features_missing_total", field="size") == 1
            assert metric(server.port, "seatrial_features_unknown_total", field="colour") == 1
        assert metric(server.port, "seatrial_features_missing_total", field="colour") == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": SPEC["features"][:1]}, ["no feature fills column 1"]),
        ({"tensors": [{**SPEC["tensors"][0], "name": "z"}]}, ["not the inputs of its signature"]),
    ],
)
def test_a_spec_that_cannot_work_is_refused_before_a_port_opens(
    entry: dict[str, Any], change: dict[str, Any], words: list[str]
) -> None:
    broken = entry["features"] | {"spec": SPEC | change}
    with pytest.raises(EngineError) as caught, start(tiny.config(entry | {"features": broken}), timeout=60):
        pass
    assert [w for w in words if w not in str(caught.value)] == []
