"""Every golden pair put to our server: it answers as Triton did, but for the differences that are listed and meant."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

import pytest

from seatrial.engine import Server
from tests.conformance.comparing import differences, read_listed, unexplained
from tests.conformance.pairs import GOLDEN, Answer, Pair, decoded, load_pairs

LISTED = read_listed(Path(__file__).with_name("differences.yaml"))


def ask(port: int, pair: Pair) -> Answer:
    """Puts the recorded bytes to our server."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(pair.request)
        response = http.client.HTTPResponse(connection, method=pair.request.split(b" ", 1)[0].decode())
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        body = decoded(response.read(), headers.get("content-encoding"))
        return Answer.read(response.status, headers, body)


@pytest.mark.timeout(300)
def test_http_answers_are_tritons_but_for_the_listed_differences(mirror: Server) -> None:
    pairs = load_pairs(GOLDEN / "http")
    assert len(pairs) > 200
    found = {pair.name: differences(pair.answer, ask(mirror.port, pair)) for pair in pairs}
    complaints = unexplained(found, LISTED["http"])
    assert complaints == [], "\n".join(complaints)
