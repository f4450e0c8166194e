"""A client of sockets: sends bytes as they are, so that tests decide what goes over the wire and when."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON; NaN and infinities are refused as a strict parser would."""
        return json.loads(self.body, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


class Connection:
    """One connection to the server."""

    def __init__(self, port: int, timeout: float = 20.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._file = self.socket.makefile("rb")

    def send(self, raw: bytes) -> None:
        """Sends bytes as they are."""
        self.socket.sendall(raw)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Sends a request and reads its answer. Underscores in header names become dashes."""
        self.send(raw_request(method, path, body, **headers))
        return self.read(head=method == "HEAD")

    def read(self, head: bool = False) -> Answer:
        """Reads one answer; `ConnectionError` when the server closes instead."""
        line = self._file.readline()
        if not line:
            raise ConnectionError("closed without an answer")
        headers: dict[str, str] = {}
        while (header := self._file.readline().rstrip(b"\r\n")) != b"":
            name, _, value = header.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        length = 0 if head else int(headers.get("content-length", "0"))
        return Answer(int(line.split()[1]), headers, self._file.read(length))

    def closed(self) -> bool:
        """Waits for the server to close; False when it sends something instead."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Closes this side."""
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def raw_request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: test"]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def ask(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    """One request on a connection of its own."""
    with Connection(port) as connection:
        return connection.request(method, path, body, **headers)


def infer(port: int, model: str, body: bytes, **headers: str) -> Answer:
    """One inference request on a connection of its own."""
    return ask(port, "POST", f"/v2/models/{model}/infer", body, **headers)


def metric(port: int, name: str, **labels: str) -> float:
    """The value of one series of /metrics; 0 when it is not there."""
    for line in ask(port, "GET", "/metrics").body.decode().splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] == name and all(f'{k}="{v}"' in series for k, v in labels.items()):
            return float(value)
    return 0.0


def wait_for(reached: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    """Waits until `reached` is true, and says `what` is wrong when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)
