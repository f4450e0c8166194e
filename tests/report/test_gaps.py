"""Records with holes: what was not measured is named, never drawn, and nothing breaks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from seatrial.records import (
    BenchPayload,
    Event,
    FindingRow,
    GeneratorHealth,
    Knee,
    LoadSummary,
    Percentiles,
    Phase,
    Record,
    RecordWriter,
    TrialPayload,
    Verdict,
    load_record,
)
from seatrial.report import render
from tests.report.reading import Page, bare_percentiles
from tests.report.sample_record import columns, sample_payload, sample_record, write_requests


def texts(record: Record, folder: Path) -> tuple[str, str, dict[str, Any]]:
    files = render(record, folder)
    Page(files["html"].read_text())
    markdown = files["md"].read_text()
    assert bare_percentiles(markdown) == []
    return files["html"].read_text(), markdown, json.loads(files["json"].read_text())


def no_answers() -> LoadSummary:
    empty = Percentiles.empty()
    return LoadSummary(
        mode="open", arrivals="poisson", rate_per_s=100, duration_s=5, seed=1, intended=500, sent=500, completed=0, ok=0,
        errors={"timeout": 500}, not_sent=0, offered_per_s=100, achieved_per_s=0, goodput_per_s=0, response_ms=empty,
        service_ms=empty, late_ms=empty, generator=GeneratorHealth(), bytes_in=0, bytes_out=0,
    )  # fmt: skip


def test_without_columns_the_recorded_quantiles_are_drawn(tmp_path: Path) -> None:
    html, markdown, whole = texts(sample_record(None), tmp_path)
    gaps = whole["derived"]["not_measured"]
    assert {"CPU and memory over time", "system figures", "full latency spectrum", "GPU"} <= set(gaps)
    assert "CPU and memory over time: not measured." in markdown
    assert "| server | not measured | not measured |" in markdown
    assert 'id="chart-usage"' not in html
    assert 'id="chart-spectrum"' in html
    assert not any(curve["every_request"] for curve in whole["derived"]["curves"])


def test_with_columns_the_spectrum_holds_every_request(tmp_path: Path) -> None:
    record = sample_record(tmp_path, stop_after=2)
    _, _, whole = texts(record, tmp_path)
    curves = whole["derived"]["curves"]
    assert all(curve["every_request"] for curve in curves)
    assert [c["points"][-1][1] for c in curves if c["measure"] == "response"] == [
        pytest.approx(phase.load.response_ms.max, rel=1e-6) for phase in record.payload.phases if phase.load
    ]


def test_columns_that_disagree_with_the_record_are_not_believed(tmp_path: Path) -> None:
    record = sample_record(tmp_path, stop_after=1)
    (tmp_path / "smoke" / "requests.arrow").unlink()
    write_requests(tmp_path / "smoke" / "requests.arrow", columns(60, 6, seed=99), 99)
    _, _, whole = texts(record, tmp_path)
    assert not any(curve["every_request"] for curve in whole["derived"]["curves"])


def test_a_load_without_an_answer_gives_no_figure(tmp_path: Path) -> None:
    phase = Phase(name="smoke", kind="smoke", started_s=0, ended_s=5, rate_per_s=100, load=no_answers())
    verdict = Verdict(outcome="error", line="Error: the server answered nothing.")
    payload = TrialPayload(profile="quick", phases=[phase], verdict=verdict)
    _, markdown, whole = texts(sample_record(None, payload=payload), tmp_path)
    assert "Response p99: **not measured**" in markdown
    assert "Latency: not measured." in markdown
    assert "Time per stage: not measured." in markdown
    assert {"load", "golden rows", "knee", "package check", "batching probe"} <= set(
        whole["derived"]["not_measured"]
    )


def test_a_trial_that_was_cut_short_says_so_first(tmp_path: Path) -> None:
    record = sample_record(tmp_path, stop_after=3, status="cut_short", status_reason="stopped by Ctrl-C")
    html, markdown, _ = texts(record, tmp_path)
    assert markdown.splitlines()[2] == "**This record was cut short: stopped by Ctrl-C**"
    assert html.index("cut short") < html.index('class="verdict')
    assert "INVALID" in markdown


def test_a_run_that_died_shows_the_seconds_it_had(tmp_path: Path) -> None:
    verdict = Verdict(outcome="pass", line="Never shown.")
    with RecordWriter.create(tmp_path, "trial", "movie-ctr") as writer:
        writer.start(sample_record(None, payload=TrialPayload(profile="quick", verdict=verdict)))
        folder = writer.phase_folder("hold-100")
        writer.phase_started(
            Phase(name="hold-100", kind="hold", started_s=2, ended_s=2, rate_per_s=100, folder="hold-100")
        )
    write_requests(folder / "requests.arrow", columns(100, 6, seed=5), 5)
    whole_stream = (folder / "requests.arrow").read_bytes()
    (folder / "requests.arrow").write_bytes(whole_stream[: len(whole_stream) * 2 // 3])
    html, markdown, whole = texts(load_record(writer.folder), writer.folder)
    assert "The run died before it could close this record" in markdown
    assert "Never shown" not in html + markdown
    assert "requests were kept" in markdown
    assert 'id="chart-seconds"' in html
    slots = whole["derived"]["slots"]
    assert 2 <= len(slots) <= 5
    assert all(slot["p99_ms"] is not None for slot in slots[:-1])
    assert "Load: not measured." in markdown


@pytest.mark.parametrize(
    ("knee", "text"),
    [
        (Knee(type="at_least", lower=600, why="the schedule ended"), "At least 600/s"),
        (Knee(type="below_first_step", upper=100, why="slow"), "Below 100/s"),
        (Knee(type="generator_limited", lower=400, why="late"), "At least 400/s"),
        (Knee(type="generator_limited", why="late"), "Not measured"),
        (Knee(type="invalid", why="noisy"), "Not measured"),
    ],
)
def test_a_knee_is_never_a_bare_number(tmp_path: Path, knee: Knee, text: str) -> None:
    payload = sample_payload(None, 4).model_copy(update={"knee": knee})
    _, markdown, _ = texts(sample_record(None, payload=payload), tmp_path)
    assert f"Highest good load: **{text}**" in markdown


def test_a_bench_record_has_no_verdict_and_names_its_closed_loop(tmp_path: Path) -> None:
    trial = sample_payload(tmp_path, 2)
    phases = [
        phase.model_copy(
            update={"load": phase.load.model_copy(update={"mode": "closed", "rate_per_s": None})}
        )
        for phase in trial.phases
        if phase.load
    ]
    payload = BenchPayload(target="127.0.0.1:8000 POST /v2/models/m/infer", phases=phases)
    _, markdown, _ = texts(sample_record(None, kind="bench", package=None, payload=payload), tmp_path)
    assert markdown.startswith("# Bench report: 127.0.0.1:8000 POST /v2/models/m/infer")
    assert "Closed loop" in markdown
    assert markdown.count("step-100 (closed loop)") > 5
    assert not re.search(r"step-100(?! \(closed loop\))", markdown), (
        "every figure of a closed loop is labelled"
    )
    assert "Promises" not in markdown


def test_the_tail_names_the_stage_that_holds_it(tmp_path: Path) -> None:
    _, _, whole = texts(sample_record(None), tmp_path)
    tails = whole["derived"]["tails"]
    assert [(tail["phase"], tail["stage"]) for tail in tails] == [
        ("hold-400", "queue"),
        ("step-600", "queue"),
    ]
    assert all(tail["ratio"] > 3 for tail in tails)


def test_what_was_not_good_is_not_called_good(tmp_path: Path) -> None:
    knee = Knee(type="below_first_step", upper=100, why="every step was too slow")
    payload = sample_payload(None, 2).model_copy(update={"knee": knee})
    _, markdown, whole = texts(sample_record(None, payload=payload), tmp_path)
    assert whole["derived"]["reference"] == "step-100"
    assert "In step-100 the stages of the server take" in markdown
    assert "highest good load," not in markdown


def test_stages_longer_than_the_clients_time_are_doubted(tmp_path: Path) -> None:
    payload = sample_payload(None, 2)
    phase = payload.phases[-1]
    assert phase.load is not None
    service = phase.load.service_ms.model_copy(update={"mean": 0.001})
    load = phase.load.model_copy(update={"service_ms": service, "cut_short": True})
    payload = payload.model_copy(update={"phases": [phase.model_copy(update={"load": load})], "knee": None})
    _, markdown, _ = texts(sample_record(None, payload=payload), tmp_path)
    assert "! In step-100" in markdown
    assert "do not trust these stages" in markdown
    assert "! step-100 was cut short: its figures cover 8 s." in markdown


def test_long_lists_are_folded_and_nothing_urgent_is(tmp_path: Path) -> None:
    row = FindingRow(code="QST001", severity="note", text="which unit?", hint="answer it")
    urgent = row.model_copy(update={"code": "SIG001", "severity": "error", "text": "the shapes differ"})
    events = [Event(t_s=i, kind="refused", text=f"event number {i}") for i in range(30)]
    payload = sample_payload(None, 1).model_copy(update={"findings": [row] * 20 + [urgent], "events": events})
    html, markdown, _ = texts(sample_record(None, payload=payload), tmp_path)
    assert "Which unit? Hint: answer it." in markdown
    folded = re.findall(r"<details><summary>([^<]+)</summary>(.*?)</details>", html, re.S)
    inside = dict(folded)
    assert "event number 29" in inside["The 30 events"]
    assert inside["20 notes of the package check"].count("QST001") == 20
    assert not [summary for summary, body in folded if "SIG001" in body]


def test_a_saturated_generator_is_named_with_its_reason(tmp_path: Path) -> None:
    payload = sample_payload(None, 1)
    phase = payload.phases[-1]
    assert phase.load is not None
    health = GeneratorHealth(cpu_share=0.99, saturated=True, why="it used 99% of its core, above 70%")
    load = phase.load.model_copy(update={"generator": health})
    payload = payload.model_copy(update={"phases": [phase.model_copy(update={"load": load})]})
    _, markdown, _ = texts(sample_record(None, payload=payload), tmp_path)
    assert "| 99.0% | not measured |" in markdown
    assert "✗ no it used 99% of its core, above 70% |" in markdown
