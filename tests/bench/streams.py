"""Writes the folder of a run by hand, so that figures can be compared with what is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

OK, HTTP_ERROR, TIMEOUT, CONNECT, RESET, PROTOCOL, NOT_SENT = range(7)
STAGES = ("accept", "parse", "feature", "queue", "form", "copy_in", "run", "copy_out", "encode")
MS = 1_000_000


@dataclass(frozen=True)
class Row:
    """One request; times in milliseconds from the origin."""

    intended: float
    sent: float | None
    end: float
    outcome: int = OK
    stages: tuple[int, ...] | None = None


def ns(ms: float | None) -> int | None:
    return None if ms is None else round(ms * MS)


def table(rows: Sequence[Row]) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = {
        "intended_ns": pa.array([ns(r.intended) for r in rows], pa.int64()),
        "sent_ns": pa.array([ns(r.sent) for r in rows], pa.int64()),
        "first_byte_ns": pa.array([ns(r.end) if r.outcome == OK else None for r in rows], pa.int64()),
        "end_ns": pa.array([ns(r.end) for r in rows], pa.int64()),
        "status": pa.array([{OK: 200, HTTP_ERROR: 503}.get(r.outcome, 0) for r in rows], pa.uint16()),
        "outcome": pa.array([r.outcome for r in rows], pa.uint8()),
        "bytes_out": pa.array([100] * len(rows), pa.uint32()),
        "bytes_in": pa.array([50] * len(rows), pa.uint32()),
        "body": pa.array(range(len(rows)), pa.uint32()),
    }
    for index, stage in enumerate(STAGES):
        values = [None if r.stages is None else r.stages[index] for r in rows]
        columns[f"{stage}_ns"] = pa.array(values, pa.uint32())
    schema = pa.schema(
        [pa.field(n, c.type) for n, c in columns.items()],
        metadata={"seed": "1", "mode": "open", "origin_unix_ns": "1790000000000000000"},
    )
    return pa.record_batch(list(columns.values()), schema=schema)


def write_run(
    folder: Path, batches: Sequence[Sequence[Row]], *, duration_s: float, done: dict[str, Any] | None = None
) -> Path:
    """A run folder as the generator and `run_load` leave it; without `done` the generator has died."""
    encoded = [table(rows) for rows in batches]
    with (folder / "requests.arrow").open("wb") as file, pa.ipc.new_stream(file, encoded[0].schema) as stream:
        for batch in encoded:
            stream.write_batch(batch)
    schedule = {
        "mode": "open",
        "arrivals": "constant",
        "rate_per_s": 100.0,
        "duration_s": duration_s,
        "seed": 1,
    }
    (folder / "load.json").write_text(json.dumps({"schedule": schedule, "timeout_ms": 1000}))
    events = [] if done is None else [{"event": "done", **done}]
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    return folder


def finished(rows: Sequence[Row], **changes: Any) -> dict[str, Any]:
    """The `done` event of a calm generator."""
    return {
        "t": 1.0,
        "intended": len(rows),
        "sent": sum(r.sent is not None for r in rows),
        "cpu_s": 0.2,
        "spin_s": 0.1,
        "wall_s": 1.0,
        "run_queue_wait_s": 0.01,
        "cut_short": False,
        **changes,
    }
