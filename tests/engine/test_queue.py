"""Overload and patience: full queues, deadlines, and clients that go away while the executor is busy."""

from __future__ import annotations

import time
from pathlib import Path

from tests.engine import tiny
from tests.engine.client import Connection, infer, metric, raw_request, wait_for
from tests.engine.conftest import Serve

LONG = 800_000  # turns of the loop: about a second


def send(port: int, body: bytes) -> Connection:
    connection = Connection(port)
    connection.send(raw_request("POST", "/v2/models/spinning/infer", body))
    return connection


def queued(port: int) -> float:
    return metric(port, "seatrial_batching_queued_rows", model="spinning")


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(serve: Serve, spinning: Path) -> None:
    port = serve(tiny.entry(spinning, queue_rows=3)).port
    running = send(port, tiny.steps(LONG))
    wait_for(lambda: metric(port, "seatrial_batching_released_total", reason="single") >= 1, "nothing runs")
    waiting = [send(port, tiny.steps(1)) for _ in range(3)]
    wait_for(lambda: queued(port) == 3, "the queue does not fill")
    start = time.monotonic()
    refused = infer(port, "spinning", tiny.steps(1))
    took = time.monotonic() - start
    assert (refused.status, refused.json["code"]) == (429, "resource_exhausted")
    assert int(refused.headers["retry-after"]) >= 1
    assert int(refused.headers["retry-after-ms"]) >= 1
    assert took < 0.25, f"a refusal took {took:.3f} s"
    assert [c.read().status for c in (running, *waiting)] == [200] * 4, "who was admitted is answered"
    assert infer(port, "spinning", tiny.steps(5)).json["outputs"][0]["data"] == [5]
    for connection in (running, *waiting):
        connection.close()


def test_deadlines_come_from_the_request_then_its_header_then_the_package(
    serve: Serve, spinning: Path
) -> None:
    port = serve(tiny.entry(spinning, timeout_ms=120)).port
    for body, headers, limit in (
        (tiny.steps(LONG, timeout=60_000), {"seatrial_timeout_ms": "5000"}, 60),
        (tiny.steps(LONG), {"seatrial_timeout_ms": "80"}, 80),
        (tiny.steps(LONG), {}, 120),
    ):
        start = time.monotonic()
        answer = infer(port, "spinning", body, **headers)
        took = (time.monotonic() - start) * 1000
        assert (answer.status, answer.json["code"]) == (504, "deadline_exceeded")
        assert f"{limit} ms" in answer.json["error"], answer.json
        assert limit - 5 <= took < limit + 200, f"the limit is {limit} ms, it took {took:.0f} ms"


def test_what_is_late_or_unwanted_leaves_the_queue_while_the_executor_is_busy(
    serve: Serve, spinning: Path
) -> None:
    port = serve(tiny.entry(spinning)).port
    running = send(port, tiny.steps(LONG))
    wait_for(lambda: metric(port, "seatrial_batching_released_total", reason="single") >= 1, "nothing runs")
    gone = [send(port, tiny.steps(LONG)) for _ in range(20)]
    late = [send(port, tiny.steps(LONG, timeout=100_000)) for _ in range(5)]
    wait_for(lambda: queued(port) == 25, "the queue does not fill")
    for connection in gone:
        connection.close()
    wait_for(lambda: queued(port) <= 5, "gone clients still hold places", 0.5)
    assert [c.read().status for c in late] == [504] * 5
    wait_for(lambda: queued(port) == 0, "late requests still hold places", 0.5)
    assert running.read().status == 200
    start = time.monotonic()
    assert infer(port, "spinning", tiny.steps(5)).json["outputs"][0]["data"] == [5]
    took = time.monotonic() - start
    assert took < 0.5, f"the capacity came back after {took:.2f} s"
    assert metric(port, "seatrial_batching_dropped_total", reason="client_gone") >= 20
    assert metric(port, "seatrial_server_requests_total", model="spinning", code="499") == 20
    assert metric(port, "seatrial_session_runs_total", model="spinning", outcome="ok") == 2, (
        "unwanted work was done"
    )
    for connection in (running, *late):
        connection.close()


def test_requests_that_wait_together_run_together(serve: Serve, doubling: Path, spinning: Path) -> None:
    port = serve(tiny.entry(doubling), tiny.entry(spinning)).port
    connections = [Connection(port) for _ in range(8)]
    for _ in range(50):
        for n, connection in enumerate(connections):
            connection.send(raw_request("POST", "/v2/models/doubling/infer", tiny.rows(n, n + 0.5)))
        for n, connection in enumerate(connections):
            assert connection.read().json["outputs"][0]["data"] == [2 * n, 2 * n + 1]
    assert metric(port, "seatrial_batching_batch_rows_sum", model="doubling") == 400
    assert metric(port, "seatrial_batching_batch_rows_count", model="doubling") < 400
    for connection in connections:
        connection.close()
