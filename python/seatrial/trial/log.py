"""What a trial has found so far: phases and events on one clock, journalled as they happen, told to whoever watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from seatrial.records import Event, LoadSummary, Phase, PhaseKind, RecordWriter

__all__ = ["TrialLog", "Watcher"]

Watcher = Callable[[Event], None]


@dataclass
class OpenPhase:
    """A phase under way. The body of the `with` fills in what it found."""

    name: str
    kind: PhaseKind
    started_s: float
    rate_per_s: float | None
    folder: str | None = None
    load: LoadSummary | None = None
    note: str = ""

    def closed(self, ended_s: float) -> Phase:
        """The phase as a record keeps it."""
        return Phase(ended_s=ended_s, **vars(self))


@dataclass
class TrialLog:
    """The growing content of one record. Only the flow writes it."""

    writer: RecordWriter
    watcher: Watcher
    phases: list[Phase] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    origin: float = field(default_factory=time.monotonic)

    def clock(self) -> float:
        """Seconds since the trial began."""
        return time.monotonic() - self.origin

    def event(self, kind: str, text: str) -> None:
        """Notes something that happened now."""
        event = Event(t_s=self.clock(), kind=kind, text=text)
        self.events.append(event)
        self.writer.mark(event)
        self.watcher(event)

    def tick(self, text: str) -> None:
        """Tells the watcher how far a phase is; nothing is kept."""
        self.watcher(Event(t_s=self.clock(), kind="tick", text=text))

    @contextmanager
    def phase(self, name: str, kind: PhaseKind, rate_per_s: float | None = None) -> Iterator[OpenPhase]:
        """A phase; it is kept, with what it found so far, also when its body fails."""
        phase = OpenPhase(name, kind, self.clock(), rate_per_s)
        self.writer.phase_started(phase.closed(phase.started_s))
        rate = f" at {rate_per_s:g}/s" if rate_per_s else ""
        self.event("phase", f"{name.replace('-' + format(rate_per_s or 0, 'g'), '')}{rate}")
        try:
            yield phase
        finally:
            closed = phase.closed(self.clock())
            self.phases.append(closed)
            self.writer.phase(closed)

    def found(self) -> dict[str, Any]:
        """Phases and events as the fields of a payload."""
        return {"phases": list(self.phases), "events": list(self.events)}
