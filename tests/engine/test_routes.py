"""What each path answers: metadata, health, configuration, statistics, index, metrics, and errors in one form."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.engine import tiny
from tests.engine.client import Connection, ask, infer, metric
from tests.engine.conftest import Serve


def test_server_metadata_claims_only_what_works(port: int) -> None:
    about = ask(port, "GET", "/v2").json
    assert about["name"] == "seatrial"
    assert set(about["extensions"]) == {
        "binary_tensor_data", "classification", "model_configuration", "parameters", "schedule_policy", "statistics",
    }  # fmt: skip


@pytest.mark.parametrize(
    "path", ["/v2/health/live", "/v2/health/ready", "/v2/health/ready/", "/v2/health/live?x=1"]
)
def test_health_has_both_keys(port: int, path: str) -> None:
    answer = ask(port, "GET", path)
    assert (answer.status, answer.json) == (200, {"ready": True, "live": True})


def test_models_and_index_list_every_model(port: int) -> None:
    expected = [("doubling", "1.2.0", "READY"), ("spinning", "1.2.0", "READY")]
    for answer in (
        ask(port, "GET", "/v2/models"),
        ask(port, "POST", "/v2/repository/index"),
        ask(port, "POST", "/v2/repository/index", b'{"ready": true}'),
    ):
        assert [(m["name"], m["version"], m["state"]) for m in answer.json] == expected
    for wrong in (b"[", b"[]", b"null", b'{"ready": 1}', b'{"ready": null}'):
        answer = ask(port, "POST", "/v2/repository/index", wrong)
        assert (answer.status, answer.json["code"]) == (400, "invalid_argument"), wrong


def test_versions_are_named_by_semantic_version_digest_prefix_or_one(port: int, doubling: Path) -> None:
    digest = hashlib.sha256(doubling.read_bytes()).hexdigest()
    for version in ("1.2.0", digest, digest[:12], "1"):
        path = f"/v2/models/doubling/versions/{version}"
        assert ask(port, "GET", path).json["parameters"]["digest"] == digest, version
        assert ask(port, "POST", f"{path}/infer", tiny.rows(1, 2)).json["outputs"][0]["data"] == [2, 4], (
            version
        )
    for version in ("2", "1.2", digest[:11], digest[:12].upper() + "X"):
        answer = ask(port, "GET", f"/v2/models/doubling/versions/{version}/ready")
        assert answer.status == 404, version
        assert f"`{version}`" in answer.json["error"], version


def test_one_is_no_alias_where_there_are_two_versions(serve: Serve, doubling: Path, tmp_path: Path) -> None:
    older, newer = tiny.entry(doubling), tiny.entry(doubling, version="2.0.0", digest="f" * 64)
    server = serve(older, newer)
    assert ask(server.port, "GET", "/v2/models/doubling/versions/1/ready").status == 404
    about = ask(server.port, "GET", "/v2/models/doubling").json
    assert (about["versions"], about["parameters"]["semantic_version"]) == (["1.2.0", "2.0.0"], "2.0.0")
    assert infer(server.port, "doubling", tiny.rows(1, 2)).json["model_version"] == "2.0.0"


def test_config_is_in_tritons_words(port: int) -> None:
    config = ask(port, "GET", "/v2/models/doubling/config").json
    assert config["max_batch_size"] == 64
    assert config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}]


def test_statistics_count_requests_and_rows(serve: Serve, doubling: Path) -> None:
    server = serve(tiny.entry(doubling))
    for _ in range(3):
        infer(server.port, "doubling", tiny.rows(1, 2, 3, 4))
    infer(server.port, "doubling", b"{}")
    for path in ("/v2/models/doubling/stats", "/v2/models/stats", "/v2/models/doubling/versions/1/stats"):
        (stats,) = ask(server.port, "GET", path).json["model_stats"]
        of = stats["inference_stats"]
        assert (stats["inference_count"], of["success"]["count"], of["fail"]["count"]) == (6, 3, 1)
        assert (
            of["compute_input"]["count"] == of["compute_infer"]["count"] == of["compute_output"]["count"] == 3
        )
        assert 0 < of["compute_infer"]["ns"] < of["success"]["ns"]
        assert stats["last_inference"] > 1_600_000_000_000


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v2/nothing", 404, "not_found"),
        ("GET", "/v2/models/nobody", 404, "not_found"),
        ("POST", "/v2/models/nobody/infer", 404, "not_found"),
        ("GET", "/v2/models/%2e%2e/ready", 400, "invalid_argument"),
        ("GET", "/v2/models/doubling/versions/..%2f..%2fetc", 400, "invalid_argument"),
        ("GET", "/v2/models/doubling/infer", 405, "method_not_allowed"),
        ("DELETE", "/v2/models/doubling", 405, "method_not_allowed"),
        ("POST", "/v2/health/live", 405, "method_not_allowed"),
        ("POST", "/v2/models/doubling/infer", 400, "invalid_argument"),
    ],
)
def test_errors_have_one_form(port: int, method: str, path: str, status: int, code: str) -> None:
    answer = ask(port, method, path)
    assert (answer.status, answer.json["code"]) == (status, code)
    assert answer.json["error"]
    assert answer.headers["content-type"] == "application/json"
    assert ("allow" in answer.headers) == (status == 405)


def test_head_answers_like_get_without_a_body(port: int) -> None:
    with Connection(port) as connection:
        head = connection.request("HEAD", "/v2/health/ready")
        get = connection.request("GET", "/v2/health/ready")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(get.body)))
    assert ask(port, "HEAD", "/v2/models/doubling/infer").status == 405


def test_metrics_are_in_the_text_format(serve: Serve, doubling: Path) -> None:
    server = serve(tiny.entry(doubling))
    for _ in range(5):
        assert infer(server.port, "doubling", tiny.rows(1, 2)).status == 200
    infer(server.port, "doubling", b"")
    ask(server.port, "GET", "/nowhere")
    answer = ask(server.port, "GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    port = server.port
    assert metric(port, "seatrial_server_requests_total", model="doubling", code="200") == 5
    assert metric(port, "seatrial_server_requests_total", model="doubling", code="400") == 1
    assert metric(port, "seatrial_server_requests_total", model="", code="404") == 1
    assert metric(port, "seatrial_server_request_seconds_count", model="doubling") == 5
    assert metric(port, "seatrial_server_connections") == 1
    assert metric(port, "seatrial_server_requests_in_flight") == 1
    assert metric(port, "seatrial_batching_batch_rows_count", model="doubling") == 5
    assert metric(port, "seatrial_session_runs_total", model="doubling", outcome="ok") == 5
    assert metric(port, "process_resident_memory_bytes") > 1e6
    stages = ("accept", "parse", "feature", "queue", "form", "copy_in", "run", "copy_out", "encode", "write")
    sums = [metric(port, "seatrial_server_stage_seconds_sum", model="doubling", stage=s) for s in stages]
    total = metric(port, "seatrial_server_request_seconds_sum", model="doubling")
    assert sum(sums) == pytest.approx(total, rel=0.01)
    assert all(
        metric(port, "seatrial_server_stage_seconds_count", model="doubling", stage=s) == 5 for s in stages
    )


def test_headers_that_come_on_request(port: int, doubling: Path) -> None:
    plain = infer(port, "doubling", tiny.rows(1, 2))
    assert not {"seatrial-stages", "seatrial-model-digest"} & set(plain.headers)
    asked = infer(port, "doubling", tiny.rows(1, 2), seatrial_stages="1", seatrial_model_digest="1")
    assert asked.headers["seatrial-model-digest"] == hashlib.sha256(doubling.read_bytes()).hexdigest()
    stages = dict(part.split("=") for part in asked.headers["seatrial-stages"].split(";"))
    assert list(stages) == [
        "accept",
        "parse",
        "feature",
        "queue",
        "form",
        "copy_in",
        "run",
        "copy_out",
        "encode",
    ]
    assert float(stages["run"]) > 0
    assert all(len(value.split(".")[1]) == 1 for value in stages.values())
