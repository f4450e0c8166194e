"""The raw fields of the examples give the tensors that training had, bit for bit, and are served as those are."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.contract import load_package
from seatrial.engine import EngineOptions, resolve, start
from seatrial.features import load

NAMES = ("01-movie-ctr", "03-text-embedding")
DTYPES = {"FP32": np.float32, "INT64": np.int64}
N_ASKED = 24
TOLERANCE = 2e-6


@pytest.fixture(scope="module")
def port(prepared: Path) -> Iterator[int]:
    packages = [load_package(prepared / name) for name in NAMES]
    with start(resolve(packages, EngineOptions()), timeout=120) as server:
        yield server.port


def raw_rows(package: Path) -> list[dict[str, Any]]:
    lines = (package / "samples/features.jsonl").read_text().splitlines()
    return [row for line in lines for row in json.loads(line)["instances"]]


def tensors(package: Path) -> list[dict[str, Any]]:
    lines = (package / "samples/requests.jsonl").read_text().splitlines()
    return [
        {t["name"]: np.array(t["data"], DTYPES[t["datatype"]]).reshape(t["shape"]) for t in json.loads(line)["inputs"]}
        for line in lines
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "n"), [("01-movie-ctr", 1000), ("03-text-embedding", 400)])
def test_every_sample_row_gives_the_tensors_of_training(prepared: Path, name: str, n: int) -> None:
    plan = load(prepared / name)
    rows, expected = raw_rows(prepared / name), tensors(prepared / name)
    assert len(rows) == len(expected) == n
    for row, inputs in zip(rows, expected, strict=True):
        made = plan.transform([row])
        assert made.keys() == inputs.keys()
        for tensor, array in inputs.items():
            assert made[tensor].shape == array.shape
            assert made[tensor].dtype == array.dtype
            assert made[tensor].tobytes() == array.tobytes(), (tensor, row)


def test_the_rows_as_columns_give_the_same(prepared: Path) -> None:
    package = prepared / "01-movie-ctr"
    rows, expected = raw_rows(package), tensors(package)
    made = load(package).transform({field: [row.get(field) for row in rows] for field in rows[0]})
    for tensor, array in made.items():
        assert array.tobytes() == np.concatenate([inputs[tensor] for inputs in expected]).tobytes()


def post(port: int, path: str, body: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, json.dumps(body).encode())
        response = connection.getresponse()
        content = json.loads(response.read())
        assert response.status == 200, content
        return content
    finally:
        connection.close()


@pytest.mark.parametrize("name", NAMES)
def test_raw_fields_are_served_as_tensors_are(prepared: Path, port: int, name: str) -> None:
    model, package = name[3:], prepared / name
    rows = raw_rows(package)
    picked = range(0, len(rows), len(rows) // N_ASKED)
    lines = (package / "samples/requests.jsonl").read_text().splitlines()
    predictions = post(port, f"/v1/models/{model}:predict", {"instances": [rows[i] for i in picked]})[
        "predictions"
    ]
    assert len(predictions) == len(picked)
    for place, prediction in zip(picked, predictions, strict=True):
        (output,) = post(port, f"/v2/models/{model}/infer", json.loads(lines[place]))["outputs"]
        difference = np.abs(np.array(prediction) - np.array(output["data"])).max()
        assert difference <= TOLERANCE, f"row {place}: {difference:.2g}, allowed {TOLERANCE:g}"


def test_a_new_person_and_a_new_film_need_no_field_but_the_film_s(port: int) -> None:
    (score,) = post(port, "/v1/models/movie-ctr:predict", {"instances": [{"genres": ["Drama"]}]})[
        "predictions"
    ]
    assert 0 < score[0] < 1
