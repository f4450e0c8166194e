"""The whole road on a small model: what is kept, what is said, and what is left running when something goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.contract import load_package, write_manifest
from seatrial.errors import ContractError
from seatrial.records import Event, Record, TrialPayload, load_record, read_stream, read_system
from seatrial.trial import TrialOptions, TrialResult, keep_evidence, run_trial

from .conftest import SHORT, promise

MakePackage = Callable[..., Path]


def sail(package: Path, records: Path, watcher: Callable[[Event], None] = lambda _: None) -> TrialResult:
    return run_trial(
        package, SHORT, TrialOptions(records=records, command="seatrial trial x", watcher=watcher)
    )


def payload(record: Record) -> TrialPayload:
    assert isinstance(record.payload, TrialPayload)
    return record.payload


def children_of(folder: Path) -> list[int]:
    """Processes whose command line names a file under the folder: servers and generators of the test's records."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in line and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def wait_until(reached: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def test_a_trial_keeps_everything_it_found(make_package: MakePackage, tmp_path: Path) -> None:
    result = sail(make_package(), tmp_path / "records")
    record = load_record(result.folder)
    found = payload(record)
    assert result.exit_code == 0, result.verdict.line
    assert record.status == "complete"
    kinds = [p.kind for p in found.phases]
    assert kinds == ["check", "golden", "idle", "smoke", "step", "step", "hold", "step"]
    hold = next(p for p in found.phases if p.kind == "hold")
    assert hold.load is not None
    table = read_stream(result.folder / str(hold.folder) / "requests.arrow")
    assert table.num_rows == hold.load.intended
    assert hold.load.response_ms.n == hold.load.completed + hold.load.not_sent
    assert found.golden is not None
    assert found.golden.agreed == found.golden.rows > 0
    assert found.batching is not None
    assert found.batching.mode == "full"
    assert found.batching.mean_rows is not None
    assert found.batching.mean_rows >= 1
    assert {s.process for s in read_system(result.folder / "system.arrow")} == {"server", "generator", "host"}
    assert record.package is not None
    assert len(record.package.digest or "") == 64
    # The share of stages in the answers is whole: the server's own sum is its total by construction.
    assert {"queue", "run"} <= set(hold.load.stages_ms)
    assert children_of(tmp_path) == []


def test_a_kept_record_ends_the_draft(make_package: MakePackage, tmp_path: Path) -> None:
    package = make_package()
    assert load_package(package).is_draft
    result = sail(package, tmp_path / "records")
    digest = load_package(package).digest
    file = keep_evidence(result, package)
    assert Record.model_validate_json(file.read_bytes()) == load_record(result.folder)
    kept = load_package(package)
    assert not kept.is_draft
    assert kept.digest == digest
    assert result.verdict.draft


def test_a_broken_promise_is_exit_1_or_invalid_on_a_noisy_host(
    make_package: MakePackage, tmp_path: Path
) -> None:
    result = sail(make_package(memory_per_instance="1MiB"), tmp_path / "records")
    assert result.verdict.outcome in ("fail", "invalid")
    assert "memory of one instance" in " ".join(result.verdict.reasons)


def test_a_wrong_golden_row_fails_whatever_the_speed(make_package: MakePackage, tmp_path: Path) -> None:
    package = make_package()
    rows = [json.loads(line) for line in (package / "samples/golden.jsonl").read_text().splitlines()]
    rows[0]["outputs"][0]["data"] = [9.0] * len(rows[0]["outputs"][0]["data"])
    (package / "samples/golden.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    write_manifest(package)
    result = sail(package, tmp_path / "records")
    assert result.exit_code == 1
    assert "row 1" in result.verdict.line


def test_texts_reach_the_server_as_they_are(text_package: Path, tmp_path: Path) -> None:
    found = payload(sail(text_package, tmp_path / "records").record)
    assert found.golden is not None
    assert (found.golden.rows, found.golden.agreed) == (3, 3), found.golden.worst
    assert all(phase.load.ok == phase.load.intended for phase in found.phases if phase.load)


def test_a_check_error_stops_before_any_server(make_package: MakePackage, tmp_path: Path) -> None:
    package = make_package()
    wrong = {"inputs": [{"name": "z", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    (package / "samples/requests.jsonl").write_text(json.dumps(wrong) + "\n")
    write_manifest(package)
    result = sail(package, tmp_path / "records")
    assert result.exit_code == 1
    assert [p.kind for p in payload(result.record).phases] == ["check"]
    assert not (result.folder / "server.json").exists()


def test_a_package_that_was_changed_after_packing_is_refused(
    make_package: MakePackage, tmp_path: Path
) -> None:
    package = make_package()
    with (package / "samples/requests.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(ContractError, match=r"samples/requests\.jsonl"):
        sail(package, tmp_path / "records")
    assert not (tmp_path / "records").exists()


def test_no_promised_peak_is_searched_by_doubling(make_package: MakePackage, tmp_path: Path) -> None:
    seen: list[str] = []
    package = promise(make_package(), peak="null", p99="null", p95="null")

    def stop_at_200(event: Event) -> None:
        seen.append(event.text)
        if event.text == "step at 200/s":
            raise KeyboardInterrupt

    result = sail(package, tmp_path / "records", stop_at_200)
    assert [t for t in seen if t.startswith("step at")] == ["step at 50/s", "step at 100/s", "step at 200/s"]
    assert result.record.status == "cut_short"


@pytest.mark.parametrize("who", ["server", "generator"])
def test_a_killed_process_is_named_and_its_phase_kept(
    make_package: MakePackage, tmp_path: Path, who: str
) -> None:
    def kill(event: Event) -> None:
        if event.kind == "tick" and event.text.startswith("hold"):
            name = "seatrial.engine" if who == "server" else "seatrial.bench"
            for pid in children_of(tmp_path):
                if name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)

    result = sail(make_package(), tmp_path / "records", kill)
    record = load_record(result.folder)
    assert result.exit_code == 4
    assert record.status == "cut_short"
    assert f"{who} died" in record.status_reason
    assert "SIGKILL" in record.status_reason
    hold = payload(record).phases[-1]
    assert hold.kind == "hold"
    assert hold.load is not None
    assert hold.load.completed > 0
    wait_until(lambda: children_of(tmp_path) == [])


SCRIPT = """
import resource, sys
from pathlib import Path
from seatrial.errors import SeatrialError
from seatrial.trial import TrialOptions, run_trial
sys.path.insert(0, sys.argv[3])
from tests.trial.conftest import SHORT
def tell(event):
    print(event.kind, event.text, flush=True)
if len(sys.argv) > 4:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
try:
    result = run_trial(Path(sys.argv[1]), SHORT, TrialOptions(Path(sys.argv[2]), "seatrial trial x", tell))
except SeatrialError as error:
    print(error.message, file=sys.stderr)
    sys.exit(error.exit_code)
sys.exit(result.exit_code)
"""


def launch(package: Path, records: Path, *more: str) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(package), str(records), str(root), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return
    raise AssertionError(f"ended before `{words}`")


def test_ctrl_c_keeps_what_was_measured(make_package: MakePackage, tmp_path: Path) -> None:
    with launch(make_package(), tmp_path / "records") as process:
        read_until(process, "tick hold")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 4
    folder = next((tmp_path / "records").glob("*/*"))
    record = load_record(folder)
    assert record.status == "cut_short"
    assert record.status_reason == "it was interrupted"
    assert payload(record).phases[-1].load is not None
    assert children_of(tmp_path) == []


def test_kill_9_of_the_trial_leaves_no_process_and_a_readable_record(
    make_package: MakePackage, tmp_path: Path
) -> None:
    with launch(make_package(), tmp_path / "records") as process:
        read_until(process, "tick hold")
        process.kill()
    wait_until(lambda: children_of(tmp_path) == [])
    record = load_record(next((tmp_path / "records").glob("*/*")))
    assert record.status == "died"
    assert [p.kind for p in payload(record).phases][:3] == ["check", "golden", "idle"]
    assert payload(record).verdict.outcome == "invalid"


@pytest.mark.parametrize("limit_bytes", [6_000, 40_000])
def test_a_full_disk_is_one_sentence_and_keeps_what_was_written(
    make_package: MakePackage, tmp_path: Path, limit_bytes: int
) -> None:
    """A limit on the size of a file stands in for a full disk: the write fails in the middle, as it would there."""
    with launch(make_package(), tmp_path / "records", str(limit_bytes)) as process:
        _, talk = process.communicate(timeout=60)
    assert process.returncode in (3, 4), talk
    assert "Traceback" not in talk
    wait_until(lambda: children_of(tmp_path) == [])
    record = load_record(next((tmp_path / "records").glob("*/*")))
    assert record.status in ("died", "cut_short")
    assert payload(record).phases
