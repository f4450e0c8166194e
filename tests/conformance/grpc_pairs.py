"""Golden gRPC pairs: the messages of a call and the messages or the error that Triton answered with.

Needs `tritonclient[grpc]`, whose messages are Triton's own.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import json_format
from tritonclient.grpc import service_pb2 as pb

from tests.conformance.grpc_requests import HEALTH, Call
from tests.conformance.pairs import GOLDEN, mask, write_groups

__all__ = ["GrpcPair", "Reply", "ask", "load_pairs", "save_pairs"]


@dataclass(frozen=True)
class Reply:
    """What came back. The messages are in protobuf's JSON form, volatile parts masked."""

    status: str
    details: str
    messages: list[Any]


@dataclass(frozen=True)
class GrpcPair:
    """A call and its reply."""

    call: Call
    reply: Reply


def ask(target: str, call: Call, timeout_s: float) -> Reply:
    """Makes a call on a channel of its own. A stream is closed on this side once every message has its answer."""
    messages: list[Any] = []
    try:
        with grpc.insecure_channel(target) as channel:
            if call.method.endswith("ModelStreamInfer"):
                for raw in channel.stream_stream(call.method)(iter(call.messages), timeout=timeout_s):
                    messages.append(_read(call.method, raw))
            else:
                raw = channel.unary_unary(call.method)(call.messages[0], timeout=timeout_s)
                messages.append(_read(call.method, raw))
    except grpc.RpcError as error:
        return Reply(error.code().name, error.details() or "", messages)
    return Reply("OK", "", messages)


def _read(method: str, raw: bytes) -> Any:
    if method.startswith(HEALTH):
        return {"base64": base64.b64encode(raw).decode()}
    message = getattr(pb, f"{method.rpartition('/')[2]}Response").FromString(raw)
    # A time of 0 ns would vanish, and with it the place that is masked.
    zeros = method.endswith("ModelStatistics")
    document = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=zeros
    )
    return mask(document)


def save_pairs(pairs: list[GrpcPair]) -> None:
    """Writes the pairs where `load_pairs` finds them."""
    write_groups(GOLDEN / "grpc", (_entry(pair) for pair in pairs))


def _entry(pair: GrpcPair) -> dict[str, Any]:
    call, reply = pair.call, pair.reply
    return {
        "name": call.name,
        "rule": call.rule,
        "method": call.method,
        "request": [base64.b64encode(message).decode() for message in call.messages],
        "answer": {"status": reply.status, "details": reply.details, "messages": reply.messages},
    }


def load_pairs() -> list[GrpcPair]:
    """All pairs, by file and then in the order in which they were recorded."""
    pairs = []
    for file in sorted((GOLDEN / "grpc").glob("*.json")):
        for entry in json.loads(file.read_text(encoding="utf-8")):
            messages = [base64.b64decode(message) for message in entry["request"]]
            call = Call(entry["name"], entry["rule"], entry["method"], messages)
            pairs.append(GrpcPair(call, Reply(**entry["answer"])))
    return pairs
