"""`seatrial report`: what it prints, where it writes, how it refuses, how long a million requests take."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.report.conftest import Rendered
from tests.report.sample_record import percentiles, sample_record, write_requests


def seatrial(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from seatrial.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_prints_the_paths_of_what_it_wrote(rendered: Rendered, tmp_path: Path) -> None:
    done = seatrial(
        "report",
        rendered.folder / "record.json",
        "--format",
        "md",
        "--format",
        "html",
        "--out",
        tmp_path / "o",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(tmp_path / "o/report.md"), str(tmp_path / "o/report.html")]
    assert (tmp_path / "o/report.md").read_text() == rendered.text("md")


def test_json_holds_the_record_itself(rendered: Rendered) -> None:
    whole = json.loads(rendered.text("json"))
    assert whole["record"] == json.loads((rendered.folder / "record.json").read_text())


def test_what_is_no_record_is_wrong_use(tmp_path: Path) -> None:
    done = seatrial("report", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error[usage]: `{tmp_path}` holds no record\nhint: ")


def test_a_folder_that_cannot_be_written_is_a_sentence(rendered: Rendered, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = seatrial("report", rendered.folder, "--out", tmp_path / "file" / "deeper")
    assert done.returncode == 3
    assert "could not be written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_million_requests_take_under_five_seconds(tmp_path: Path) -> None:
    count, duration = 1_000_000, 100.0
    chance = np.random.RandomState(3)
    intended = np.sort(chance.uniform(0, duration, count))
    made = {
        "intended": intended,
        "sent": intended + 1e-5,
        "end": intended + chance.lognormal(np.log(0.002), 0.5, count),
        "refused": np.zeros(count, dtype=bool),
    }
    record = sample_record(tmp_path, stop_after=1)
    (tmp_path / "smoke" / "requests.arrow").unlink()
    write_requests(tmp_path / "smoke" / "requests.arrow", made, 3)
    phase = record.payload.phases[1]
    assert phase.load is not None
    ns = {name: (made[name] * 1e9).astype("int64") for name in ("intended", "sent", "end")}
    figures = {
        "response_ms": percentiles((ns["end"] - ns["intended"]) / 1e6),
        "service_ms": percentiles((ns["end"] - ns["sent"]) / 1e6),
        "series": [],
    }
    load = phase.load.model_copy(update=figures)
    payload = record.payload.model_copy(update={"phases": [phase.model_copy(update={"load": load})]})
    (tmp_path / "record.json").write_text(record.model_copy(update={"payload": payload}).model_dump_json())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = seatrial("report", tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert done.returncode == 0, done.stderr
    derived = json.loads((tmp_path / "report.json").read_text())["derived"]
    assert all(curve["every_request"] and curve["n"] == count for curve in derived["curves"])
    assert sum(slot["n"] for slot in derived["slots"]) == count
    assert took < 5, f"{took:.1f} s of processor time for {count:,} requests on this host"
