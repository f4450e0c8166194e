"""The folder of a record: created once, journalled as things happen, closed by one `record.json`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from seatrial.errors import RecordError
from seatrial.records.envelope import FileRef, Record, RecordKind
from seatrial.records.trial import Event, Phase

__all__ = ["RecordWriter"]

T = TypeVar("T")


class RecordWriter:
    """Writes one record. Call `start` early, `phase` at the end of each phase and `finish` once.

    A context manager that closes the journal.
    """

    def __init__(self, folder: Path, identifier: str, created: datetime) -> None:
        self.folder = folder
        self.id = identifier
        self.created = created
        self._journal = _guarded(folder, lambda: (folder / "journal.jsonl").open("ab"))

    @classmethod
    def create(cls, root: Path, kind: RecordKind, name: str, *, now: datetime | None = None) -> RecordWriter:
        """Makes `root/<name>/<UTC time>-<kind>-<id>/`; `name` is the package's, made safe for a path."""
        created = (now or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)
        identifier = secrets.token_hex(4)
        folder = root / _safe(name) / f"{created:%Y%m%dT%H%M%SZ}-{kind}-{identifier}"
        _guarded(folder, lambda: folder.mkdir(parents=True))
        return cls(folder, identifier, created)

    def close(self) -> None:
        """Closes the journal. A record that was not finished stays as a crash leaves it."""
        _guarded(self.folder, self._journal.close)

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, record: Record) -> None:
        """Journals the record as it stands at the beginning, so that a crash leaves its envelope."""
        self.journal({"event": "start", "record": record.model_dump(mode="json")}, sync=True)

    def journal(self, event: Mapping[str, Any], *, sync: bool = False) -> None:
        """Appends one line and flushes it to the system; with `sync` also to the disk."""
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"

        def append() -> None:
            self._journal.write(line)
            self._journal.flush()
            if sync:
                os.fsync(self._journal.fileno())

        _guarded(self.folder / "journal.jsonl", append)

    def mark(self, event: Event) -> None:
        """Journals an event of the time axis."""
        self.journal({"event": "mark", "mark": event.model_dump(mode="json")})

    def phase_started(self, phase: Phase) -> None:
        """Journals that a phase begins; `ended_s` equals `started_s`."""
        self.journal({"event": "phase_started", "phase": phase.model_dump(mode="json")})

    def phase(self, phase: Phase) -> None:
        """Journals a finished phase and waits until it is on the disk."""
        self.journal({"event": "phase", "phase": phase.model_dump(mode="json")}, sync=True)

    def phase_folder(self, name: str) -> Path:
        """A new folder for the files of one phase."""
        folder = self.folder / _safe(name)
        _guarded(folder, folder.mkdir)
        return folder

    def finish(self, record: Record) -> Path:
        """Writes `record.json` with the list of the record's files, by temporary file and rename."""
        target = self.folder / "record.json"
        if target.exists():
            raise RecordError(f"`{target}` exists already", hint="a record is written once; make a new one")
        self.journal({"event": "finished", "status": record.status}, sync=True)
        complete = record.model_copy(update={"files": _guarded(self.folder, lambda: _file_refs(self.folder))})
        _guarded(target, lambda: _write_whole(target, complete.model_dump_json(indent=1).encode() + b"\n"))
        self.close()
        return target


def _safe(name: str) -> str:
    """A name that is one component of a path.

    >>> _safe("../a b"), _safe("movie-ctr"), _safe("")
    ('a-b', 'movie-ctr', 'unnamed')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:100] or "unnamed"


def _guarded(path: Path, action: Callable[[], T]) -> T:
    """Runs what touches the disk and turns its failure into a sentence."""
    try:
        return action()
    except OSError as error:
        raise RecordError(
            f"the record `{path}` could not be written: {error.strerror or error}",
            hint="free space or choose another folder with --records; what was written before is kept",
        ) from error


def _write_whole(target: Path, content: bytes) -> None:
    temporary = target.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_refs(folder: Path) -> list[FileRef]:
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    return [_file_ref(path, folder) for path in paths]


def _file_ref(path: Path, folder: Path) -> FileRef:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileRef(path=path.relative_to(folder).as_posix(), bytes=path.stat().st_size, sha256=digest)
