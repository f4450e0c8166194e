"""The generator as a child process: started with one resolved file, followed through its events, stopped, judged dead.

What it measured lies in the output folder whatever happens: `requests.arrow` from the generator, and from here
`load.json`, `events.jsonl` (each event as it came) and `generator.log`.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from seatrial.bench.bodies import write_bodies
from seatrial.bench.plan import LoadPlan
from seatrial.errors import EngineError, MissingError, SeatrialError, UsageError

__all__ = ["EVENTS", "LOAD", "LoadResult", "run_load"]

EVENTS = "events.jsonl"
LOAD = "load.json"
LOG = "generator.log"

# Beyond its timetable and its last time-out the generator needs this long at most to start and to write.
MARGIN_S = 60.0
# A stopped generator waits one second for requests that are out.
STOP_S = 10.0

Event = dict[str, Any]


@dataclass
class LoadResult:
    """How a run went; the figures come from `summarise(folder)`."""

    folder: Path
    seconds: list[Event] = field(default_factory=list)
    done: Event | None = None
    died: str | None = None
    """`generator died: …` when it did not end by itself; what it wrote until then is kept."""
    interrupted: bool = False
    """Whether Ctrl-C or `stop` ended the run."""

    @property
    def cut_short(self) -> bool:
        """Whether the timetable was not played to its end."""
        return self.died is not None or self.done is None or bool(self.done["cut_short"])


def run_load(
    plan: LoadPlan,
    *,
    output: Path,
    on_second: Callable[[Event], None] | None = None,
    on_start: Callable[[int], None] | None = None,
    stop: threading.Event | None = None,
) -> LoadResult:
    """Runs a load to its end and keeps what was measured.

    `on_second` gets each second's cumulative counts, `on_start` the generator's process id. Ctrl-C or `stop` ends
    the run early, and a generator that dies is told in the result; neither raises. What did not start raises.
    """
    output = output.absolute()
    _prepare(output)
    with tempfile.TemporaryDirectory(prefix="seatrial-") as scratch:
        bodies = Path(scratch) / "bodies.bin"
        _write(bodies, lambda path: write_bodies(plan.bodies, path))
        config = plan.resolved(bodies, output)
        _write(output / LOAD, lambda path: path.write_text(json.dumps(config, indent=1)))
        patience = plan.schedule.duration_s + plan.timeout_ms / 1000 + MARGIN_S
        with _Run(output, on_second or _ignore, patience) as run:
            if on_start is not None:
                on_start(run.pid)
            return run.follow(stop or threading.Event())


class _Run:
    """One generator process and what it has said so far."""

    def __init__(self, folder: Path, on_second: Callable[[Event], None], patience_s: float) -> None:
        self._result = LoadResult(folder)
        self._on_second = on_second
        self._deadline = time.monotonic() + patience_s
        self._refused: Event | None = None
        self._events: queue.Queue[str | None] = queue.Queue()
        self._journal = (folder / EVENTS).open("w")
        self._process = _spawn(folder)
        self._reader = threading.Thread(target=self._read, name="seatrial-load-events", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def follow(self, stop: threading.Event) -> LoadResult:
        stopping = False
        while True:
            try:
                if stop.is_set() and not stopping:
                    stopping = self._stop()
                if not self._take():
                    return self._ended()
            except KeyboardInterrupt:
                if stopping:
                    self._process.kill()
                stopping = self._stop()

    def _stop(self) -> bool:
        self._result.interrupted = True
        self._deadline = min(self._deadline, time.monotonic() + STOP_S)
        if self._process.poll() is None:
            self._process.terminate()
        return True

    def _take(self) -> bool:
        """Handles the next event; false when there will be no more."""
        if time.monotonic() > self._deadline and self._process.poll() is None:
            self._process.kill()
        try:
            line = self._events.get(timeout=0.1)
        except queue.Empty:
            return True
        if line is None:
            return False
        try:
            event = json.loads(line)
        except ValueError:
            return True
        self._keep(line)
        match event.get("event"):
            case "second":
                self._result.seconds.append(event)
                self._on_second(event)
            case "done":
                self._result.done = event
            case "refused":
                self._refused = event
        return True

    def _keep(self, line: str) -> None:
        try:
            self._journal.write(line.rstrip("\n") + "\n")
            self._journal.flush()
        except OSError:
            # The generator writes to the same disk and says it with a refusal; the figures do not need the journal.
            return

    def _ended(self) -> LoadResult:
        code = self._process.wait()
        if self._refused is not None:
            raise _refusal(code, self._refused)
        if self._result.done is None:
            how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            self._result.died = f"generator died: {how}{_last_words(self._result.folder)}"
            if not self._result.interrupted and not (self._result.folder / "requests.arrow").exists():
                raise EngineError(
                    self._result.died, hint="it had sent nothing; see that the environment is whole"
                )
        return self._result

    def _read(self) -> None:
        stream: IO[str] | None = self._process.stdout
        for line in stream or ():
            self._events.put(line)
        self._events.put(None)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        try:
            self._journal.close()
        except OSError:
            return  # a full disk; see _keep


def _ignore(_event: Event) -> None:
    """Nobody follows."""


def _prepare(output: Path) -> None:
    def make(path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    _write(output, make)
    if (output / "requests.arrow").exists():
        raise UsageError(
            f"`{output}` already holds a run",
            hint="give each run a folder of its own; nothing is overwritten",
        )


def _write(path: Path, how: Callable[[Path], object]) -> None:
    try:
        how(path)
    except OSError as error:
        raise MissingError(
            f"`{path}` cannot be written: {error.strerror or error}",
            hint="make room or choose another folder",
        ) from error


def _spawn(folder: Path) -> subprocess.Popen[str]:
    with (folder / LOG).open("wb") as talk:
        # A process group of its own: Ctrl-C reaches only us, and we stop the generator in good order.
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", "seatrial.bench", str(folder / LOAD)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=talk,
            text=True,
            process_group=0,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )


def _refusal(code: int, event: Event) -> SeatrialError:
    kind = {2: UsageError, 3: MissingError}.get(code, EngineError)
    return kind(str(event["error"]), hint=event.get("hint"))


def _last_words(folder: Path) -> str:
    try:
        lines = (folder / LOG).read_text(errors="replace").splitlines()[-5:]
    except OSError:
        return ""
    return "; its last words: " + " / ".join(lines) if lines else ""
