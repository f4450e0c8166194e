"""`/openapi.json`: a valid document, true to the signatures of the models and to what the server answers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import openapi_spec_validator
import pytest

from seatrial.contract import load_package
from seatrial.engine import EngineOptions, Server, resolve, start
from tests.conformance.environments import InstallError, prepare
from tests.conformance.models import MODELS, pack_model
from tests.engine import tiny
from tests.engine.client import ask

SERVED = ("echo_bytes", "echo_int8", "lookup", "plain", "scores", "sums")
CONFIG = Path(__file__).with_name("schemathesis.toml")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("described")
    packages = [load_package(pack_model(model, folder)) for model in MODELS if model.name in SERVED]
    with start(resolve(packages, EngineOptions()), timeout=120) as running:
        yield running


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    answer = ask(server.port, "GET", "/openapi.json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    return answer.json


def fits(document: Any, component: str, value: Any) -> bool:
    """Whether a value fits a component of the document."""
    schema = {"$ref": f"#/components/schemas/{component}", "components": document["components"]}
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def tensor(name: str, datatype: str, shape: list[int], data: Any) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


A, B = tensor("a", "FP32", [1, 2], [1, 2]), tensor("b", "FP32", [1, 2], [[1, "NaN"]])


def test_the_document_is_valid_openapi(document: Any) -> None:
    openapi_spec_validator.validate(document)
    assert document["openapi"].startswith("3.1")


def test_every_model_and_version_has_its_path(document: Any) -> None:
    paths = {path for path, item in document["paths"].items() if path.endswith("/infer")}
    assert paths == {
        f"/v2/models/{name}{version}/infer" for name in SERVED for version in ("", "/versions/0.1.0")
    }
    assert document["components"]["parameters"]["model"]["schema"]["enum"] == sorted(SERVED)


def test_every_described_page_is_served(server: Server, document: Any) -> None:
    for path, item in document["paths"].items():
        at = path.replace("{model}", "plain").replace("{version}", "0.1.0")
        method = "POST" if "post" in item else "GET"
        status = ask(server.port, method, at).status
        assert status == (400 if at.endswith("/infer") else 200), at


@pytest.mark.parametrize(
    ("component", "value", "good"),
    [
        ("sums-0.1.0.request", {"inputs": [A, B]}, True),
        ("sums-0.1.0.request", {"inputs": [B, A], "id": None, "parameters": {"own": [1]}}, True),
        ("sums-0.1.0.request", {"inputs": [A, B], "outputs": [{"name": "sum"}]}, True),
        ("sums-0.1.0.request", {"inputs": [A, B], "outputs": [{"name": "sum"}] * 2}, False),
        ("sums-0.1.0.request", {"inputs": [A, B], "outputs": [{"name": "product"}]}, False),
        ("sums-0.1.0.request", {"inputs": [A]}, False),
        ("sums-0.1.0.request", {"inputs": [A, A]}, False),
        ("sums-0.1.0.request", {"inputs": [A, B], "id": 7}, False),
        ("sums-0.1.0.request", {"inputs": [A, B | {"shape": [1, 3]}]}, False),
        ("sums-0.1.0.request", {"inputs": [A, B | {"data": ["1", "2"]}]}, False),
        ("sums-0.1.0.request", {"inputs": [A, B], "parameters": {"triton_x": 1}}, False),
        ("echo_5f_int8-0.1.0.request", {"inputs": [tensor("x", "INT8", [1, 1], [127])]}, True),
        ("echo_5f_int8-0.1.0.request", {"inputs": [tensor("x", "INT8", [1, 1], [128])]}, False),
        ("plain-0.1.0.request", {"inputs": [tensor("x", "INT64", [2, 2], [[1, 2], [3, 4]])]}, True),
        ("plain-0.1.0.request", {"inputs": [tensor("x", "INT64", [2, 2], [1, 2, 3, 4])]}, True),
        ("plain-0.1.0.request", {"inputs": [tensor("x", "INT64", [2, 2], [[1, 2, 3, 4]])]}, False),
        ("plain-0.1.0.request", {"inputs": [tensor("x", "INT64", [2, 2], [1, 2, 3])]}, False),
        ("plain-0.1.0.request", {"inputs": [tensor("x", "INT64", [2, 3], [[1, 2], [3, 4]])]}, False),
    ],
)
def test_signatures_are_schemas_that_agree_with_the_server(
    server: Server, document: Any, component: str, value: Any, good: bool
) -> None:
    model = component.partition("-")[0].replace("_5f_", "_")
    answer = ask(server.port, "POST", f"/v2/models/{model}/infer", json.dumps(value).encode())
    assert fits(document, component, value) == good
    assert answer.status == (200 if good else 400)
    if good:
        assert fits(document, component.replace(".request", ".response"), answer.json)


def test_raw_fields_are_described_where_a_model_has_features(tmp_path: Path) -> None:
    spec = {
        "tensors": [{"name": "x", "datatype": "FP32", "inner": [2]}],
        "features": [
            {"field": "size", "type": "number", "tensor": "x", "column": 0},
            {"field": "age", "type": "integer", "tensor": "x", "column": 1, "missing": {"rule": "value", "value": 0}},
        ],
    }  # fmt: skip
    entry = tiny.entry(tiny.doubling(tmp_path), features={"folder": str(tmp_path), "spec": spec})
    rows = [
        ({"size": 1.5, "age": 2}, True),
        ({"size": 1}, True),
        ({"size": 1, "age": None}, True),
        ({"age": 2}, False),
    ]
    path = "/v1/models/doubling:predict"
    with start(tiny.config(entry), timeout=60) as server:
        described = ask(server.port, "GET", "/openapi.json").json
        openapi_spec_validator.validate(described)
        assert {path, "/v1/models/doubling/versions/1.2.0:predict"} <= set(described["paths"])
        for row, good in rows:
            body = {"instances": [row]}
            assert fits(described, "doubling-1.2.0.instances", body) == good, row
            status = ask(server.port, "POST", path, json.dumps(body).encode()).status
            assert status == (200 if good else 400), row


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_schemathesis_finds_nothing(server: Server, document: Any, tmp_path: Path) -> None:
    try:
        python = prepare("schemathesis")
    except (InstallError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"SKIPPED: {error}")
    command = [str(python.with_name("schemathesis")), "--config-file", str(CONFIG), "run"]
    command += [f"http://127.0.0.1:{server.port}/openapi.json", "--no-color"]
    # The server of the tests lies on the loopback address, behind no proxy.
    environment = os.environ | {"NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    # Everything but the document itself, which schemathesis read to begin with.
    assert f"Tested: {len(document['paths']) - 1}\n" in done.stdout
