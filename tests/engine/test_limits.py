"""What a client may not do: too large, too slow, too many. The server refuses in words and stays well."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.engine import tiny
from tests.engine.client import Connection, ask, infer, metric, raw_request
from tests.engine.conftest import Serve

LIMITS = {
    "max_body_bytes": 4096,
    "max_header_bytes": 2048,
    "max_headers": 20,
    "header_timeout_ms": 300,
    "body_timeout_ms": 300,
    "idle_timeout_ms": 600,
}


@pytest.fixture
def strict(serve: Serve, doubling: Path) -> int:
    return serve(tiny.entry(doubling), limits=LIMITS).port


def test_a_declared_length_over_the_limit_is_refused_before_the_body(strict: int) -> None:
    with Connection(strict) as connection:
        connection.send(
            b"POST /v2/models/doubling/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000000\r\n\r\n"
        )
        answer = connection.read()
        assert (answer.status, answer.json["code"]) == (413, "payload_too_large")
        assert "`5000000000`" in answer.json["error"]
        assert "4096" in answer.json["error"]
        assert answer.headers["connection"] == "close"
        assert connection.closed()


def test_a_chunked_body_is_bounded_while_it_is_read(strict: int) -> None:
    with Connection(strict) as connection:
        connection.send(
            b"POST /v2/models/doubling/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"400\r\n" + b"x" * 1024 + b"\r\n"
        )  # fmt: skip
        for _ in range(4):
            connection.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
        answer = connection.read()
    assert (answer.status, answer.json["code"]) == (413, "payload_too_large")


def test_an_unpacked_body_is_bounded(strict: int) -> None:
    import gzip

    packed = gzip.compress(b" " * 1_000_000)
    assert len(packed) < LIMITS["max_body_bytes"]
    answer = infer(strict, "doubling", packed, content_encoding="gzip")
    assert (answer.status, answer.json["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize(
    "lines",
    [b"A: " + b"x" * 3000 + b"\r\n", b"".join(b"H%d: x\r\n" % n for n in range(30))],
    ids=["size", "count"],
)
def test_a_header_over_the_limit_is_a_431(strict: int, lines: bytes) -> None:
    with Connection(strict) as connection:
        connection.send(b"GET /v2 HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n")
        answer = connection.read()
        assert answer.status == 431
        assert "2048 bytes and 20 lines" in answer.json["error"]
        assert connection.closed()
    assert metric(strict, "seatrial_server_requests_total", code="431") == 1


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nbad header\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"POST /v2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n", 400),
    ],
)
def test_what_is_no_http_gets_an_answer_in_our_form(strict: int, raw: bytes, status: int) -> None:
    with Connection(strict) as connection:
        connection.send(raw)
        answer = connection.read()
        assert (answer.status, answer.json["code"]) == (status, "invalid_argument")
        assert connection.closed()


@pytest.mark.parametrize("first", [b"GET /v2 HT", b"POST /v2 HTTP/1.1\r\nHost: x\r\nA: "])
def test_a_slow_header_is_a_408_and_frees_the_connection(strict: int, first: bytes) -> None:
    with Connection(strict) as connection:
        start = time.monotonic()
        connection.send(first)
        time.sleep(0.15)
        connection.send(b"x")  # a byte now and then does not move the deadline
        answer = connection.read()
        took = time.monotonic() - start
        assert (answer.status, answer.json["code"]) == (408, "request_timeout")
        assert "300 ms" in answer.json["error"]
        assert connection.closed()
        assert 0.25 < took < 1.5, f"the limit is 0.3 s, it took {took:.2f} s"


def test_a_slow_body_is_a_408_and_frees_the_connection(strict: int) -> None:
    with Connection(strict) as connection:
        start = time.monotonic()
        connection.send(b"POST /v2/models/doubling/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        answer = connection.read()
        took = time.monotonic() - start
        assert (answer.status, answer.json["code"]) == (408, "request_timeout")
        assert connection.closed()
        assert 0.25 < took < 1.5, f"the limit is 0.3 s, it took {took:.2f} s"


def test_a_silent_connection_is_closed_without_a_word(strict: int) -> None:
    with Connection(strict) as connection:
        assert connection.request("GET", "/v2").status == 200
        start = time.monotonic()
        assert connection.closed()
        took = time.monotonic() - start
        assert 0.5 < took < 2.0, f"the limit is 0.6 s, it took {took:.2f} s"


def test_a_client_that_does_not_read_its_answer_loses_it(serve: Serve, doubling: Path) -> None:
    port = serve(tiny.entry(doubling, queue_rows=1 << 20), limits={"body_timeout_ms": 500}).port
    body = tiny.rows(*[0.123456789] * 200_000)
    with Connection(port) as connection:
        for _ in range(20):  # far more answers than the buffers of both sockets hold
            try:
                connection.send(raw_request("POST", "/v2/models/doubling/infer", body))
            except OSError:
                break
            if metric(port, "seatrial_server_requests_total", model="doubling", code="499"):
                break
        deadline = time.monotonic() + 10
        while not metric(port, "seatrial_server_requests_total", model="doubling", code="499"):
            assert time.monotonic() < deadline, "the connection is still held"
            time.sleep(0.05)
    assert ask(port, "GET", "/v2/health/live").status == 200


def test_connections_over_the_limit_are_refused_at_once(serve: Serve, doubling: Path) -> None:
    port = serve(tiny.entry(doubling), limits={"max_connections": 3}).port
    held = [Connection(port) for _ in range(3)]
    for connection in held:
        assert connection.request("GET", "/v2/health/live").status == 200
    with Connection(port) as extra:
        answer = extra.read()
        assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (
            503,
            "unavailable",
            "1",
        )
        assert extra.closed()
    held.pop().close()
    deadline = time.monotonic() + 5
    while True:
        with Connection(port) as again:
            if again.request("GET", "/v2/health/live").status == 200:
                break
        assert time.monotonic() < deadline, "the place of a closed connection was not given back"
    for connection in held:
        connection.close()


def test_a_thousand_idle_connections_do_no_harm(serve: Serve, doubling: Path) -> None:
    port = serve(tiny.entry(doubling)).port
    idle = [Connection(port) for _ in range(1000)]
    assert metric(port, "seatrial_server_connections") == 1001
    assert infer(port, "doubling", tiny.rows(1, 2)).json["outputs"][0]["data"] == [2, 4]
    before = metric(port, "process_cpu_seconds_total")
    time.sleep(1.0)
    spent = metric(port, "process_cpu_seconds_total") - before
    assert spent < 0.1, f"idle connections cost {spent} s of CPU a second"
    assert idle[-1].request("GET", "/v2/health/live").status == 200
    for connection in idle:
        connection.close()


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"inference_header_content_length": "x"}, "inference-header-content-length"),
        ({"inference_header_content_length": "99999"}, "99999"),
        ({"seatrial_timeout_ms": "-1"}, "seatrial-timeout-ms"),
    ],
)
def test_wrong_headers_are_named(port: int, headers: dict[str, str], words: str) -> None:
    answer = infer(port, "doubling", tiny.rows(1, 2), **headers)
    assert answer.status == 400
    assert words in answer.json["error"].lower()


def test_an_unknown_coding_is_a_415_that_lists_what_is_taken(port: int) -> None:
    answer = infer(port, "doubling", tiny.rows(1, 2), content_encoding="br")
    assert (answer.status, answer.json["code"]) == (415, "unsupported_media_type")
    assert answer.headers["accept-encoding"] == "gzip, deflate, identity"
    assert "gzip" in answer.json["error"]


def test_http_forms_that_clients_use(port: int) -> None:
    body = tiny.rows(1, 2)
    good = raw_request("POST", "/v2/models/doubling/infer", body)
    with Connection(port) as pipelined:
        pipelined.send(good + raw_request("POST", "/v2/models/doubling/infer", tiny.rows(3, 4)))
        assert [pipelined.read().json["outputs"][0]["data"] for _ in range(2)] == [[2, 4], [6, 8]]
    with Connection(port) as old:
        old.send(good.replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert old.read().status == 200
        assert old.closed()
    with Connection(port) as chunked:
        pieces = b"".join(b"5\r\n" + body[i : i + 5] + b"\r\n" for i in range(0, len(body) - 5, 5))
        rest = body[(len(body) - 1) // 5 * 5 :]
        pieces += b"%x\r\n" % len(rest) + rest + b"\r\n0\r\n\r\n"
        head = b"POST /v2/models/doubling/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunked.send(head + pieces)
        assert chunked.read().json["outputs"][0]["data"] == [2, 4]
    with Connection(port) as waiting:
        head, _, _ = raw_request("POST", "/v2/models/doubling/infer", body, Expect="100-continue").partition(
            b"\r\n\r\n"
        )
        waiting.send(head + b"\r\n\r\n")
        assert waiting.read().status == 100
        waiting.send(body)
        assert waiting.read().status == 200


def test_a_large_body_is_answered_exactly(serve: Serve, doubling: Path) -> None:
    port = serve(tiny.entry(doubling, queue_rows=1 << 20)).port
    values = [float(n) for n in range(400_000)]
    answer = infer(port, "doubling", tiny.rows(*values))
    assert answer.status == 200
    assert json.loads(answer.body)["outputs"][0]["data"] == [2 * v for v in values]
