"""Figures from rows that were written by hand: what counts where, and that nothing vanishes."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.bench import summarise
from seatrial.errors import RecordError
from tests.bench.streams import CONNECT, HTTP_ERROR, NOT_SENT, RESET, TIMEOUT, Row, finished, write_run


def test_latency_counts_from_the_intended_time(tmp_path: Path) -> None:
    rows = [Row(i * 10, i * 10 + 0.5, i * 10 + 4.5 + i / 100) for i in range(100)]
    found = summarise(write_run(tmp_path, [rows], duration_s=1, done=finished(rows)))
    assert found.response_ms.max == pytest.approx(5.49)
    assert found.service_ms.max == pytest.approx(4.99)
    assert found.late_ms.p50.value == pytest.approx(0.5)
    assert found.response_ms.p50.value == pytest.approx(4.99)
    assert (found.intended, found.sent, found.completed, found.ok) == (100, 100, 100, 100)
    assert (found.offered_per_s, found.achieved_per_s, found.goodput_per_s) == (100, 100, 100)
    assert (found.bytes_in, found.bytes_out) == (5000, 10_000)
    assert found.generator.cpu_share == pytest.approx(0.1)
    assert found.generator.run_queue_share == pytest.approx(0.01)
    assert not found.generator.saturated


def test_requests_given_up_keep_their_place_and_quick_failures_do_not_flatter(tmp_path: Path) -> None:
    rows = [Row(0, 0, 1) for _ in range(90)]
    rows += [Row(0, 0, 1000, TIMEOUT) for _ in range(5)]
    rows += [Row(0, None, 1000, NOT_SENT) for _ in range(3)]
    rows += [Row(0, 0, 0.1, CONNECT), Row(0, 0, 0.1, RESET), Row(0, 0, 0.1, HTTP_ERROR)]
    found = summarise(write_run(tmp_path, [rows], duration_s=1, done=finished(rows)))
    assert found.response_ms.n == 98
    assert found.response_ms.p50.value == 1.0
    assert found.response_ms.p95.value == found.response_ms.max == 1000.0
    assert found.service_ms.n == 95
    assert found.errors == {"http_error": 1, "timeout": 5, "connect": 1, "reset": 1}
    assert (found.not_sent, found.completed, found.ok) == (3, 91, 90)
    assert found.intended == found.ok + sum(found.errors.values()) + found.not_sent
    assert found.generator.saturated
    assert "3 requests found no free place" in found.generator.why


def test_goodput_holds_right_answers_inside_the_budget(tmp_path: Path) -> None:
    rows = [Row(0, 0, 10)] * 60 + [Row(0, 0, 90)] * 30 + [Row(0, 0, 1, HTTP_ERROR)] * 10
    run = write_run(tmp_path, [rows], duration_s=2, done=finished(rows))
    assert summarise(run).goodput_per_s == 45
    assert summarise(run, budget_ms=50).goodput_per_s == 30


@pytest.mark.parametrize(
    ("late_ms", "changes", "budget_ms", "why"),
    [
        (0.9, {}, None, ""),
        (1.1, {}, None, "lateness"),
        (1.9, {}, 100.0, ""),
        (2.1, {}, 100.0, "lateness"),
        (0.1, {"cpu_s": 0.75, "spin_s": 0.1}, None, ""),
        (0.1, {"cpu_s": 0.85, "spin_s": 0.1}, None, "core"),
    ],
)
def test_a_generator_that_was_the_limit_is_named(
    tmp_path: Path, late_ms: float, changes: dict[str, float], budget_ms: float | None, why: str
) -> None:
    rows = [Row(i, i + late_ms, i + 5) for i in range(100)]
    run = write_run(tmp_path, [rows], duration_s=1, done=finished(rows, **changes))
    health = summarise(run, budget_ms=budget_ms).generator
    assert health.saturated == bool(why)
    assert why in health.why


def test_seconds_hold_latency_by_when_it_was_due_and_answers_by_when_they_came(tmp_path: Path) -> None:
    # A stall: what is due in the first second is answered in the third.
    rows = [Row(i * 10, i * 10, 2500) for i in range(100)] + [Row(2600, 2600, 2610)]
    run = write_run(tmp_path, [rows], duration_s=3, done=finished(rows, t=3.0, wall_s=3.0))
    series = summarise(run).series
    assert [(s.t, s.offered, s.achieved, s.ok, s.in_flight) for s in series] == [
        (0, 100, 0, 0, 100), (1, 0, 0, 0, 100), (2, 1, 101, 101, 0),
    ]  # fmt: skip
    assert [s.p99_ms for s in series] == [2490.0, None, 10.0]
    assert [s.p50_ms for s in series] == [2000.0, None, 10.0]
    assert [s.n for s in series] == [100, 0, 1]


def test_stage_times_come_from_right_answers(tmp_path: Path) -> None:
    rows = [Row(0, 0, 5, stages=(1, 2, 0, 3, 4, 5, 1000 * (i + 1), 7, 8)) for i in range(100)]
    rows.append(Row(0, 0, 5, HTTP_ERROR, stages=(9,) * 9))
    found = summarise(write_run(tmp_path, [rows], duration_s=1, done=finished(rows))).stages_ms
    assert list(found)[:2] == ["accept", "parse"]
    assert found["run"].n == 100
    assert (found["run"].p50, found["run"].p99) == (pytest.approx(0.05), pytest.approx(0.099))
    assert found["run"].mean == pytest.approx(0.0505)


def test_a_torn_stream_gives_all_whole_batches(tmp_path: Path) -> None:
    batches = [[Row(i, i, i + 1) for i in range(first, first + 100)] for first in (0, 100, 200)]
    run = write_run(tmp_path, batches, duration_s=10)
    file = run / "requests.arrow"
    file.write_bytes(file.read_bytes()[:-300])
    found = summarise(run)
    assert (found.intended, found.ok) == (200, 200)
    assert found.cut_short
    assert not found.generator.saturated
    assert found.generator.why == "generator died before its end"
    assert found.duration_s == pytest.approx(0.2)
    assert found.offered_per_s == pytest.approx(1000)


def test_an_empty_run_has_counts_and_no_figures(tmp_path: Path) -> None:
    found = summarise(write_run(tmp_path, [[]], duration_s=1, done=finished([])))
    assert (found.intended, found.response_ms.n, found.response_ms.max, found.series) == (0, 0, None, [])


def test_a_folder_without_a_run_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no run"):
        summarise(tmp_path)


def test_offered_counts_what_was_due_and_achieved_what_came_in_time(tmp_path: Path) -> None:
    rows = [Row(0, 0, 10)] * 50 + [Row(0, 0, 1500)] * 30 + [Row(0, None, 900, NOT_SENT)] * 20
    found = summarise(write_run(tmp_path, [rows], duration_s=1, done=finished(rows)))
    assert found.sent == 80
    assert found.offered_per_s == 100, "also what could not be sent was offered"
    assert found.achieved_per_s == 50, "answers after the end do not raise the rate"
    assert found.goodput_per_s == 50, "what is good is no more than what is achieved"
