"""KServe's REST client, unmodified and in an environment of its own, against our server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from seatrial.engine import Server
from tests.conformance.environments import InstallError, prepare

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CLIENT = Path(__file__).with_name("kserve_client.py")
SUM, DIFFERENCE = [[4.5, 1.75], [4.5, 1.75]], [[-1.5, -6.25], [1.5, 6.25]]


@pytest.fixture(scope="module")
def told(mirror: Server) -> Any:
    """What the client was told, by question."""
    try:
        python = prepare("kserve")
    except (InstallError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"SKIPPED: {error}")
    command = [str(python), str(CLIENT), f"http://127.0.0.1:{mirror.port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_health_is_understood(told: Any) -> None:
    assert (told["live"], told["ready"], told["model_ready"]) == (True, True, True)


@pytest.mark.parametrize("form", ["json", "binary"])
def test_inference(told: Any, form: str) -> None:
    assert told[form] == {"id": "r-1", "model": "sums", "sum": SUM, "difference": DIFFERENCE}


def test_a_binary_answer_is_read(told: Any) -> None:
    assert told["binary_answer"] == {"sum": SUM}


def test_a_request_may_be_a_plain_dictionary(told: Any) -> None:
    data = {output["name"]: output["data"] for output in told["plain_dict"]["outputs"]}
    assert data == {"sum": [4.5, 1.75, 4.5, 1.75], "difference": [-1.5, -6.25, 1.5, 6.25]}


def test_text_survives(told: Any) -> None:
    assert told["words"] == [["text", "漢字"]]


def test_errors_reach_the_client_with_their_text(told: Any) -> None:
    for name, status, words in (("unknown", 404, "`nobody`"), ("wrong", 400, "missing input `x`")):
        assert told[name][0] == status
        assert words in told[name][1]
    assert told["unknown_ready"] is False
