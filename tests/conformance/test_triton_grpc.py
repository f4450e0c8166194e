"""Every golden gRPC pair put to our server: it answers as Triton did, but for the differences that are listed and meant."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import triton_to_np_dtype

from seatrial.engine import Server
from tests.conformance import grpc_pairs
from tests.conformance.comparing import documents_differ, read_listed, unexplained
from tests.conformance.grpc_pairs import Reply

LISTED = read_listed(Path(__file__).with_name("differences.yaml"))
TIMEOUT_S = 20


def differences(theirs: Reply, ours: Reply) -> list[str]:
    """What differs between two replies. Texts of errors are free."""
    found = [] if theirs.status == ours.status else [f"status {theirs.status} -> {ours.status}"]
    if ours.status != "OK":
        return found if ours.details else [*found, "an error without a text"]
    return found + documents_differ(_messages(theirs), _messages(ours))


def _messages(reply: Reply) -> Any:
    return [_raw(message) | _free_text(message) for message in reply.messages]


def _free_text(message: dict[str, Any]) -> dict[str, str]:
    return {"error_message": "<text>"} if message.get("error_message") else {}


def _raw(message: dict[str, Any]) -> dict[str, Any]:
    """Typed contents as the raw ones they stand for, with a trace that they were typed."""
    outputs = message.get("outputs", [])
    if not any("contents" in output for output in outputs):
        return message
    raw = [base64.b64encode(_packed(output)).decode() for output in outputs]
    return message | {
        "outputs": [output | {"contents": "<typed>"} for output in outputs],
        "raw_output_contents": raw,
    }


def _packed(output: dict[str, Any]) -> bytes:
    (values,) = output["contents"].values()
    if output["datatype"] == "BYTES":
        elements = [base64.b64decode(value) for value in values]
        return b"".join(struct.pack("<I", len(element)) + element for element in elements)
    dtype = triton_to_np_dtype(output["datatype"])
    return np.array([dtype(value) for value in values], dtype=dtype).tobytes()


@pytest.mark.timeout(300)
def test_grpc_answers_are_tritons_but_for_the_listed_differences(mirror: Server) -> None:
    pairs = grpc_pairs.load_pairs()
    assert len(pairs) > 80
    target = f"127.0.0.1:{mirror.grpc_port}"
    found = {p.call.name: differences(p.reply, grpc_pairs.ask(target, p.call, TIMEOUT_S)) for p in pairs}
    complaints = unexplained(found, LISTED["grpc"])
    assert complaints == [], "\n".join(complaints)
