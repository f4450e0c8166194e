"""The server answers as ONNX Runtime's own Python interface does: JSON and binary, alone and in batches."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from seatrial.contract import load_package, read_golden, read_requests
from seatrial.engine import EngineOptions, resolve, start
from tests.examples.conftest import NAMES

Tensors = dict[str, np.ndarray[Any, Any]]
DTYPES = {"FP32": np.float32, "INT64": np.int64, "INT32": np.int32}
DATATYPES = {np.dtype(dtype).name: name for name, dtype in DTYPES.items()}
TOLERANCE = 2e-6
N_ROWS = 40


@pytest.fixture(scope="module")
def port(prepared: Path) -> Iterator[int]:
    packages = [load_package(prepared / name) for name in NAMES]
    with start(resolve(packages, EngineOptions())) as server:
        yield server.port


@pytest.mark.parametrize("name", NAMES)
def test_json_one_row_at_a_time(prepared: Path, port: int, name: str) -> None:
    for row in _rows(prepared / name):
        _same(_ask_json(port, name, row), _reference(prepared / name, row))


@pytest.mark.parametrize("name", NAMES)
def test_binary_one_row_at_a_time(prepared: Path, port: int, name: str) -> None:
    for row in _rows(prepared / name):
        _same(_ask_binary(port, name, row), _reference(prepared / name, row))


@pytest.mark.parametrize("name", NAMES)
def test_rows_joined_by_the_client(prepared: Path, port: int, name: str) -> None:
    for batch in _batches(_rows(prepared / name)):
        expected = _reference(prepared / name, batch)
        _same(_ask_json(port, name, batch), expected)
        _same(_ask_binary(port, name, batch), expected)


@pytest.mark.parametrize("name", NAMES)
def test_rows_joined_by_the_server(prepared: Path, port: int, name: str) -> None:
    rows = _rows(prepared / name)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda row: _ask_binary(port, name, row), rows))
    for row, answer in zip(rows, answers, strict=True):
        _same(answer, _reference(prepared / name, row))


@pytest.mark.parametrize("name", NAMES)
def test_golden_rows_agree(prepared: Path, port: int, name: str) -> None:
    for golden in read_golden(prepared / name):
        answer = _post(port, name, json.dumps(golden.request.model_dump(exclude_none=True)).encode(), {})
        got = json.loads(answer[1])["outputs"]
        for want, found in zip(golden.outputs, got, strict=True):
            difference = np.abs(np.array(want.data) - np.array(found["data"])).max()
            assert difference <= golden.tolerance.abs, (want.name, difference)


def test_an_id_beyond_its_field_is_read_as_unknown(prepared: Path, port: int) -> None:
    row = _rows(prepared / "01-movie-ctr")[0]
    strange, unknown = ({**row, "ids": row["ids"].copy()} for _ in range(2))
    strange["ids"][0, 3], unknown["ids"][0, 3] = 1000, 0
    _same(_ask_json(port, "01-movie-ctr", strange), _ask_json(port, "01-movie-ctr", unknown))


def test_an_id_beyond_every_field_is_refused(prepared: Path, port: int) -> None:
    row = _rows(prepared / "01-movie-ctr")[0]
    row["ids"][0, 1] = 1617
    status, body, _ = _post(port, "01-movie-ctr", json.dumps(_body(row)).encode(), {})
    assert status == 400
    assert b"ids" in body


def _rows(package: Path) -> list[Tensors]:
    """Sample rows spread over the whole file."""
    requests = list(read_requests(package))
    return [_tensors(r["inputs"]) for r in requests[:: max(1, len(requests) // N_ROWS)]]


def _tensors(entries: list[dict[str, Any]]) -> Tensors:
    return {e["name"]: np.array(e["data"], dtype=DTYPES[e["datatype"]]).reshape(e["shape"]) for e in entries}


def _batches(rows: list[Tensors], most: int = 8) -> list[Tensors]:
    """Rows of equal inner shape together."""
    groups: dict[tuple[tuple[int, ...], ...], list[Tensors]] = {}
    for row in rows:
        groups.setdefault(tuple(a.shape[1:] for a in row.values()), []).append(row)
    parts = [group[:most] for group in groups.values() if len(group) > 1]
    assert parts, "no two sample rows can be joined"
    return [{name: np.concatenate([row[name] for row in part]) for name in part[0]} for part in parts]


SESSIONS: dict[Path, onnxruntime.InferenceSession] = {}


def _reference(package: Path, inputs: Tensors) -> Tensors:
    if package not in SESSIONS:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        SESSIONS[package] = onnxruntime.InferenceSession(
            package / "model/model.onnx", options, providers=["CPUExecutionProvider"]
        )
    session = SESSIONS[package]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def _same(got: Tensors, expected: Tensors) -> None:
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        assert got[name].shape == array.shape
        difference = np.abs(got[name] - array).max()
        assert difference <= TOLERANCE, (
            f"{name}: {difference:.2g} over {len(array)} rows, allowed {TOLERANCE:g}"
        )


def _body(inputs: Tensors) -> dict[str, Any]:
    return {
        "inputs": [
            {"name": n, "datatype": DATATYPES[a.dtype.name], "shape": a.shape, "data": a.reshape(-1).tolist()}
            for n, a in inputs.items()
        ]
    }


def _ask_json(port: int, name: str, inputs: Tensors) -> Tensors:
    status, body, _ = _post(port, name, json.dumps(_body(inputs)).encode(), {})
    assert status == 200, body
    return _tensors(json.loads(body)["outputs"])


def _ask_binary(port: int, name: str, inputs: Tensors) -> Tensors:
    head = json.dumps(
        {
            "inputs": [
                {
                    "name": n,
                    "datatype": DATATYPES[a.dtype.name],
                    "shape": a.shape,
                    "parameters": {"binary_data_size": a.nbytes},
                }
                for n, a in inputs.items()
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    raw = head + b"".join(a.tobytes() for a in inputs.values())
    status, body, length = _post(port, name, raw, {"Inference-Header-Content-Length": str(len(head))})
    assert status == 200, body
    assert length is not None
    return _cut(json.loads(body[: int(length)])["outputs"], body[int(length) :])


def _cut(entries: list[dict[str, Any]], data: bytes) -> Tensors:
    found: Tensors = {}
    for entry in entries:
        size = entry["parameters"]["binary_data_size"]
        found[entry["name"]] = np.frombuffer(data[:size], DTYPES[entry["datatype"]]).reshape(entry["shape"])
        data = data[size:]
    assert data == b""
    return found


def _post(port: int, name: str, raw: bytes, headers: dict[str, str]) -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", f"/v2/models/{name[3:]}/infer", raw, headers)
        response = connection.getresponse()
        return response.status, response.read(), response.getheader("Inference-Header-Content-Length")
    finally:
        connection.close()
