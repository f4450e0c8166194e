"""Reads a record: `record.json`, or, where a crash left none, what journal and streams still tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seatrial.errors import RecordError, UsageError
from seatrial.records.envelope import SCHEMA_VERSION, Record
from seatrial.records.streams import read_stream
from seatrial.records.trial import Event, Phase, TrialPayload, Verdict

__all__ = ["load_record", "record_folder"]


def record_folder(path: Path) -> Path:
    """The folder of a record that is named by its folder or by its `record.json`."""
    return path.parent if path.name == "record.json" else path


def load_record(path: Path) -> Record:
    """Reads a record by its folder or its `record.json`; without one it is rebuilt with the status `died`."""
    folder = record_folder(path)
    file = folder / "record.json"
    if file.is_file():
        return _parse(file, _json(file))
    if (folder / "journal.jsonl").is_file():
        return _rebuilt(folder)
    raise UsageError(
        f"`{path}` holds no record",
        hint="name a folder with record.json or journal.jsonl; `seatrial trial` prints the folder it wrote",
    )


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except OSError as error:
        raise RecordError(f"`{file}` could not be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"`{file}` is not JSON: {error}") from error


def _parse(file: Path, content: Any) -> Record:
    version = content.get("schema_version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise UsageError(
            f"`{file}` has schema version `{version}`, this seatrial reads up to `{SCHEMA_VERSION}`",
            hint="update seatrial",
        )
    try:
        return Record.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"`{file}` is not a record: `{where}`: {first['msg']}") from error


def _rebuilt(folder: Path) -> Record:
    lines = _journal(folder / "journal.jsonl")
    start = next((line["record"] for line in lines if line.get("event") == "start"), None)
    if start is None:
        raise RecordError(f"the journal of `{folder}` ends before the record began", hint="repeat the run")
    record = _parse(folder / "journal.jsonl", start)
    phases = [Phase.model_validate(line["phase"]) for line in lines if line.get("event") == "phase"]
    phases += _unfinished(folder, lines, {phase.name for phase in phases})
    events = [Event.model_validate(line["mark"]) for line in lines if line.get("event") == "mark"]
    ended = any(line.get("event") == "finished" for line in lines)
    cause = "it could not be written at the end" if ended else "the run died"
    reason = f"no record.json: {cause}; rebuilt from {len(lines)} journal lines"
    found = {"phases": [*record.payload.phases, *phases], "events": [*record.payload.events, *events]}
    payload = record.payload.model_copy(update=found)
    if isinstance(payload, TrialPayload):
        payload = payload.model_copy(update={"verdict": _no_verdict(payload.verdict)})
    return record.model_copy(update={"status": "died", "status_reason": reason, "payload": payload})


def _no_verdict(verdict: Verdict) -> Verdict:
    line = "No verdict: the trial died before it could judge."
    return verdict.model_copy(update={"outcome": "invalid", "line": line, "reasons": ["the trial died"]})


def _journal(file: Path) -> list[dict[str, Any]]:
    """All whole lines; a torn last line is left out."""
    lines = []
    for raw in file.read_bytes().split(b"\n"):
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict):
            lines.append(line)
    return lines


def _unfinished(folder: Path, lines: list[dict[str, Any]], finished: set[str]) -> list[Phase]:
    started = [Phase.model_validate(line["phase"]) for line in lines if line.get("event") == "phase_started"]
    return [_with_note(folder, phase) for phase in started if phase.name not in finished]


def _with_note(folder: Path, phase: Phase) -> Phase:
    """Says how far the request stream of a phase that was under way can be read."""
    note, ended_s = "under way when the run died; no requests were kept", phase.started_s
    file = folder / phase.folder / "requests.arrow" if phase.folder else None
    if file is not None and file.is_file():
        try:
            table = read_stream(file)
        except RecordError:
            table = None
        if table is not None and table.num_rows:
            note = f"under way when the run died; {table.num_rows:,} requests were kept"
            ended_s += max(table.column("intended_ns").to_pylist()[-1], 0) / 1e9
    return phase.model_copy(update={"note": note, "ended_s": ended_s})
