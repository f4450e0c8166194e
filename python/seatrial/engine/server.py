"""The server as a child process: started with one resolved file, watched through its events, ended with its handle.

The child holds the reading end of a pipe whose writing end lives in this process. However this process dies, the
kernel closes the pipe and the child ends; no handler has to run for that. The same pipe carries the answers when the
server wants a model: it reads no packages, so it asks for the resolved configuration of one.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from seatrial.engine.repository import NoPackageError, Repository
from seatrial.errors import EngineError, SeatrialError

__all__ = ["Ready", "Server", "start"]

READY_TIMEOUT_S = 300.0
_LOG_LINES = 15

# What a running server tells of its versions: for whoever listens, not for those who wait for start and end.
_CHANGES = ("activated", "load_failed", "unloaded")

Listener = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Ready:
    """What the server said when it was ready. Times in seconds."""

    seconds: float
    models: list[dict[str, Any]]


class Server:
    """A running server. Use it as a context manager, or call `stop`."""

    def __init__(
        self,
        config: Mapping[str, Any],
        folder: Path | None = None,
        repository: Repository | None = None,
        on_change: Listener | None = None,
    ) -> None:
        """Starts the process. Its files go to `folder`, or to a temporary one that is removed at the end.

        With a `repository` the server may load its packages while it runs; `on_change` hears of it on a thread.
        """
        self._own_folder = Path(tempfile.mkdtemp(prefix="seatrial-")) if folder is None else None
        self.folder = self._own_folder or Path(folder or ".").absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "server.log"
        self.config = {**config, "exit_with_parent": True, "loads": repository is not None}
        self.drained: dict[str, Any] | None = None
        self.ready: Ready | None = None
        self._listening: dict[str, Any] | None = None
        self._refused: dict[str, Any] | None = None
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._wanted: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._repository = repository
        self._on_change = on_change
        file = self.folder / "server.json"
        file.write_text(json.dumps(self.config, indent=1))
        self._process = _spawn(file, self.log)
        self._reader = threading.Thread(target=self._read_events, name="seatrial-server-events", daemon=True)
        self._reader.start()
        if repository is not None:
            threading.Thread(target=self._answer_loads, name="seatrial-server-loads", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._process.pid

    @property
    def host(self) -> str:
        """The address that the server is bound to."""
        return str(self._need_listening()["host"])

    @property
    def port(self) -> int:
        """The port that the server is bound to."""
        return int(self._need_listening()["port"])

    @property
    def grpc_port(self) -> int | None:
        """The port for gRPC, or None when the server has none."""
        port = self._need_listening().get("grpc_port")
        return None if port is None else int(port)

    @property
    def returncode(self) -> int | None:
        """The exit code, or None while the server runs."""
        return self._process.poll()

    def wait_listening(self, timeout: float = 30.0) -> None:
        """Waits until the port is bound."""
        self._wait_for(lambda: self._listening is not None, "listening", timeout)

    def wait_ready(self, timeout: float = READY_TIMEOUT_S) -> Ready:
        """Waits until every model is loaded and warmed up."""
        self._wait_for(lambda: self.ready is not None, "ready", timeout)
        if self.ready is None:  # `_wait_for` has seen to it
            raise EngineError("the server is not ready")
        return self.ready

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end of the process and returns its exit code."""
        code = self._process.wait(timeout)
        self._reader.join(timeout=5)
        self._take_events()
        return code

    def terminate(self) -> None:
        """Asks the server to drain and end; a second time, to end at once."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self, timeout: float | None = None) -> int:
        """Drains the server and waits; kills it when that takes longer than its own configuration allows."""
        drain = self.config.get("drain") or {}
        patience = (drain.get("grace_ms", 0) + drain.get("timeout_ms", 30_000)) / 1000 + 5
        try:
            self.terminate()
            return self.wait(patience if timeout is None else timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self.wait()
        finally:
            self._close()

    def kill(self) -> None:
        """Ends the process without asking it."""
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
        self._close()

    def log_tail(self) -> str:
        """The last lines of the server's log."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
        except OSError:
            return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _need_listening(self) -> dict[str, Any]:
        if self._listening is None:
            raise EngineError("the server is not listening yet", hint="call `wait_listening` first")
        return self._listening

    def _wait_for(self, reached: Callable[[], bool], what: str, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not reached():
            try:
                event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                tail = self.log_tail()
                self.kill()
                raise EngineError(f"the server was not {what} after {timeout:g} s{_quoted(tail)}") from None
            if event is None:
                raise self._death(what)
            self._note(event)

    def _note(self, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "listening":
                self._listening = event
            case "ready":
                self.ready = Ready(event["seconds"], event["models"])
            case "drained":
                self.drained = event
            case "refused":
                self._refused = event

    def _take_events(self) -> None:
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            if event is not None:
                self._note(event)

    def _death(self, what: str) -> EngineError:
        code = self._process.wait()
        tail = self.log_tail()
        self._events.put(None)  # whoever waits next learns it as well
        self._close()
        if self._refused is not None:
            return EngineError(str(self._refused["error"]), hint=self._refused.get("hint") or None)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return EngineError(f"the server {how} before it was {what}{_quoted(tail)}")

    def _read_events(self) -> None:
        stream = self._process.stdout
        for line in stream or ():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                self._pass_on(event)
        self._events.put(None)
        self._wanted.put(None)

    def _pass_on(self, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "load_wanted":
                self._wanted.put(event)
            case name if name in _CHANGES:
                if self._on_change is not None:
                    self._on_change(event)
            case _:
                self._events.put(event)

    def _answer_loads(self) -> None:
        """Resolves what the server wants, on a thread of its own: hashing a large package takes its time."""
        stream = self._process.stdin
        while (wanted := self._wanted.get()) is not None and stream is not None:
            answer = {"id": wanted["id"], **self._resolved(wanted["model"], wanted["version"])}
            try:
                stream.write(json.dumps(answer) + "\n")
                stream.flush()
            except (OSError, ValueError):
                return  # the server has gone, and whoever waits for it learns that

    def _resolved(self, model: str, version: str | None) -> dict[str, Any]:
        if self._repository is None:
            return {"error": "nothing can be loaded here"}
        try:
            return {"model": self._repository.resolve(model, version)}
        except NoPackageError as error:
            return {"error": error.message, "missing": True}
        except SeatrialError as error:
            hint = f"; {error.hint}" if error.hint else ""
            return {"error": f"{error.message}{hint}"}
        except OSError as error:
            return {"error": f"the package of `{model}` cannot be read: {error}"}

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # an answer that the server no longer takes
                    stream.close()
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)


def start(
    config: Mapping[str, Any],
    folder: Path | None = None,
    timeout: float = READY_TIMEOUT_S,
    repository: Repository | None = None,
) -> Server:
    """Starts a server and waits until it is ready."""
    server = Server(config, folder, repository)
    try:
        server.wait_ready(timeout)
    except BaseException:
        server.kill()
        raise
    return server


def _spawn(config: Path, log: Path) -> subprocess.Popen[str]:
    with log.open("ab") as talk:
        # A process group of its own: Ctrl-C reaches only us, and we drain the server.
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", "seatrial.engine", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=talk,
            text=True,
            process_group=0,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )


def _quoted(tail: str) -> str:
    return f"; its last words:\n{tail}" if tail else ""
