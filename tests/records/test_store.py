"""A record is written once, survives a crash and a full disk, and says in a sentence what it cannot do."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import RecordError, UsageError
from seatrial.records import (
    Event,
    Phase,
    Record,
    RecordWriter,
    SystemSample,
    SystemWriter,
    TrialPayload,
    Verdict,
    host_fingerprint,
    load_record,
    read_stream,
    read_system,
)


def beginning(writer: RecordWriter) -> Record:
    return Record(
        kind="trial", id=writer.id, created=writer.created, package=None, tool_version="0", host=host_fingerprint(),
        seed=1, command="seatrial trial p", status="complete",
        payload=TrialPayload(profile="quick", verdict=Verdict(outcome="pass", line="Yes.")),
    )  # fmt: skip


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RecordWriter]:
    with RecordWriter.create(tmp_path, "trial", "movie-ctr") as writer:
        yield writer


def test_the_folder_is_named_by_package_time_kind_and_id(writer: RecordWriter, tmp_path: Path) -> None:
    assert writer.folder.parent == tmp_path / "movie-ctr"
    assert writer.folder.name == f"{writer.created:%Y%m%dT%H%M%SZ}-trial-{writer.id}"


@pytest.mark.parametrize("name", ["../../etc", "/abs", "a\nb", "..", "", "x" * 300])
def test_a_hostile_package_name_stays_inside_the_root(tmp_path: Path, name: str) -> None:
    with RecordWriter.create(tmp_path / "records", "trial", name) as writer:
        assert writer.folder.parent.parent == tmp_path / "records"


def test_a_finished_record_reads_back_with_its_files(writer: RecordWriter) -> None:
    (writer.phase_folder("smoke") / "requests.arrow").write_bytes(b"abc")
    record = beginning(writer)
    path = writer.finish(record)
    back = load_record(path)
    assert back == load_record(writer.folder)
    assert back.payload == record.payload
    files = {f.path: f for f in back.files}
    assert files["smoke/requests.arrow"].sha256 == hashlib.sha256(b"abc").hexdigest()
    assert files["journal.jsonl"].bytes == (writer.folder / "journal.jsonl").stat().st_size


def test_a_record_is_written_once(writer: RecordWriter) -> None:
    path = writer.finish(beginning(writer))
    before = path.read_bytes()
    with pytest.raises(RecordError, match="exists already"):
        writer.finish(beginning(writer))
    assert path.read_bytes() == before


def test_a_crash_leaves_a_record_that_says_it_died(writer: RecordWriter) -> None:
    writer.start(beginning(writer))
    writer.mark(Event(t_s=0.1, kind="ready", text="ready"))
    writer.phase(Phase(name="smoke", kind="smoke", started_s=0, ended_s=5))
    writer.phase_started(Phase(name="hold", kind="hold", started_s=6, ended_s=6, folder="hold"))
    with (writer.folder / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"event":"phase","pha')
    record = load_record(writer.folder)
    assert isinstance(record.payload, TrialPayload)
    assert record.status == "died"
    assert record.payload.verdict.outcome == "invalid"
    assert [(p.name, p.note) for p in record.payload.phases] == [
        ("smoke", ""),
        ("hold", "under way when the run died; no requests were kept"),
    ]
    assert [e.kind for e in record.payload.events] == ["ready"]


def test_a_full_disk_is_a_sentence_and_keeps_what_was_written(
    writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.start(beginning(writer))
    real = os.fsync

    def full(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".tmp":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RecordError, match="No space left on device") as caught:
        writer.finish(beginning(writer))
    assert caught.value.exit_code == 3
    assert caught.value.hint
    assert sorted(p.name for p in writer.folder.iterdir()) == ["journal.jsonl"]
    lost = load_record(writer.folder)
    assert (lost.status, "could not be written at the end" in lost.status_reason) == ("died", True)
    monkeypatch.undo()
    assert load_record(writer.finish(beginning(writer))).status == "complete"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 99}, "schema version `99`"),
        ({"kind": "bench"}, "holds the payload of a trial"),
        ({"created": "2026-03-14T09:26:53"}, "`created`"),
        ({"surprise": 1}, "`surprise`"),
    ],
)
def test_what_is_not_a_record_is_refused_by_field(
    writer: RecordWriter, change: dict[str, Any], message: str
) -> None:
    path = writer.finish(beginning(writer))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UsageError, match=message):
        load_record(path)


def test_an_empty_folder_is_not_a_record(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no record"):
        load_record(tmp_path)


def test_system_samples_read_back_also_from_a_torn_file(tmp_path: Path) -> None:
    file = tmp_path / "system.arrow"
    samples = [SystemSample(t, "server", cpu_s=t / 2, rss_bytes=2**40, threads=3) for t in (0.0, 1.0, 2.0)]
    with SystemWriter(file) as writer:
        for sample in samples:
            writer.append([sample])
    assert read_system(file) == samples
    file.write_bytes(file.read_bytes()[:-300])
    assert read_system(file) == samples[:-1]
    with pytest.raises(RecordError, match="could not be written"):
        SystemWriter(file)


def test_a_file_that_is_no_stream_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.arrow").write_bytes(b"not arrow at all")
    with pytest.raises(RecordError, match=r"x\.arrow"):
        read_stream(tmp_path / "x.arrow")


def test_the_fingerprint_of_one_host_is_stable() -> None:
    first, second = host_fingerprint(), host_fingerprint()
    assert first == second
    assert 1 <= first.affinity_cpus <= first.logical_cpus
    assert len(first.like) == 16
