"""Keep-alive traffic from a process of its own: neither the test nor whoever resolves packages shares its interpreter.

Prints `ready`, asks until its standard input ends, then prints what it saw as one JSON object.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.engine import tiny
from tests.engine.client import Connection

# A pause between requests: the machine is busy with the load, not with the one who asks.
PAUSE_S = 0.001


class Traffic:
    """Asks `scaling` without end; `statuses` and `times` are there once it has been left."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-m", "tests.engine.traffic", str(port)]
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.statuses: dict[str, int] = {}
        self.times: list[tuple[float, float]] = []

    def __enter__(self) -> Traffic:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        text, _ = self._process.communicate(timeout=30)
        seen = json.loads(text)
        self.statuses = seen["statuses"]
        self.times = [(begin, took) for begin, took in seen["times"]]


def main(port: int) -> None:
    """Asks until standard input ends."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    statuses: dict[str, int] = {}
    times: list[tuple[float, float]] = []
    body = tiny.rows(1, 1)
    with Connection(port) as connection:
        print("ready", flush=True)
        while not over.is_set():
            begin = time.monotonic()
            status = _ask(connection, body)
            times.append((begin, time.monotonic() - begin))
            statuses[status] = statuses.get(status, 0) + 1
            if status != "200":
                break
            time.sleep(PAUSE_S)
    over.wait()
    seen: dict[str, Any] = {"statuses": statuses, "times": times}
    print(json.dumps(seen))


def _ask(connection: Connection, body: bytes) -> str:
    try:
        return str(connection.request("POST", "/v2/models/scaling/infer", body).status)
    except OSError as error:
        return repr(error)


if __name__ == "__main__":
    main(int(sys.argv[1]))
