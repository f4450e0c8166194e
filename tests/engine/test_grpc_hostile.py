"""Bytes from enemies on the gRPC port: whatever comes, the call ends with a status and the server lives."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb

from seatrial.engine import Server, start
from tests.engine import tiny
from tests.engine.client import metric
from tests.engine.conftest import Serve

SEED = 20260101
BOTH = {"host": "127.0.0.1", "port": 0, "grpc_port": 0}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
UNARY = ("ModelInfer", "ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics", "RepositoryIndex")
CLIENTS_FAULT = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}


@pytest.fixture(scope="module")
def server(doubling: Path) -> Iterator[Server]:
    with start(tiny.config(tiny.entry(doubling), listen=BOTH), timeout=60) as made:
        yield made


@pytest.fixture
def channel(server: Server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as made:
        yield made


def good() -> bytes:
    tensor = pb.ModelInferRequest.InferInputTensor(name="x", datatype="FP32", shape=[2, 2])
    tensor.contents.fp32_contents.extend([1.0, 2.0, 3.0, 4.0])
    request = pb.ModelInferRequest(model_name="doubling", id="r", inputs=[tensor])
    request.parameters["priority"].uint64_param = 1
    request.outputs.add(name="y").parameters["classification"].int64_param = 1
    return bytes(request.SerializeToString())


def outcome(channel: grpc.Channel, method: str, message: bytes) -> grpc.StatusCode:
    call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
    try:
        call(message, timeout=20)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()  # type: ignore[attr-defined]
        return code
    return grpc.StatusCode.OK


def damaged(source: bytes, rng: random.Random) -> bytes:
    made = bytearray(source)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(made))
        match rng.randrange(4):
            case 0:
                made[at] = rng.randrange(256)
            case 1:
                made[at:at] = rng.randbytes(rng.randint(1, 4))
            case 2:
                del made[at : at + rng.randint(1, 3)]
            case _:
                made[at] ^= 1 << rng.randrange(8)
        if not made:
            made += b"\0"
    return bytes(made)


def test_damaged_messages_are_the_clients_fault(server: Server, channel: grpc.Channel) -> None:
    rng = random.Random(SEED)
    assert outcome(channel, "ModelInfer", good()) == grpc.StatusCode.OK
    seen = set()
    for _ in range(1500):
        code = outcome(channel, rng.choice(UNARY[:1] * 5 + UNARY[1:]), damaged(good(), rng))
        assert code in CLIENTS_FAULT, code
        seen.add(code)
    assert {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT} <= seen
    assert outcome(channel, "ModelInfer", good()) == grpc.StatusCode.OK
    assert metric(server.port, "seatrial_server_requests_total", model="doubling", code="500") == 0


def test_a_stream_goes_on_after_damaged_messages(channel: grpc.Channel) -> None:
    rng = random.Random(SEED + 1)
    sent = [good() if n % 2 == 0 else damaged(good(), rng) for n in range(200)]
    call = channel.stream_stream(
        "/inference.GRPCInferenceService/ModelStreamInfer",
        response_deserializer=pb.ModelStreamInferResponse.FromString,
    )
    answers = list(call(iter(sent), timeout=60))
    assert len(answers) == len(sent)
    assert all(answer.error_message == "" for answer in answers[::2])
    assert any(answer.error_message for answer in answers[1::2])


@pytest.mark.parametrize(
    "part",
    [b"\x2a\x00", b"\x3a\x00", b"\x32\x00", b"\x22\x00"],
    ids=["inputs", "raw", "outputs", "parameters"],
)
def test_a_message_of_nothing_but_empty_parts_takes_no_memory(
    server: Server, channel: grpc.Channel, part: bytes
) -> None:
    before = resident_bytes(server.pid)
    assert outcome(channel, "ModelInfer", part * (8 << 20)) == grpc.StatusCode.INVALID_ARGUMENT
    grown = resident_bytes(server.pid) - before
    assert grown < 100 << 20, f"16 MiB of empty parts took {grown >> 20} MiB"


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def spoken(server: Server, raw: bytes, timeout: float = 5.0) -> bytes:
    """What the server says to these bytes until it closes; fails when it does not close in time."""
    with socket.create_connection(("127.0.0.1", server.grpc_port or 0), timeout=timeout) as made:
        heard = b""
        try:
            made.sendall(raw)
            made.shutdown(socket.SHUT_WR)
            while piece := made.recv(65536):
                heard += piece
        except TimeoutError:
            raise
        except OSError:
            pass  # a server that closes while it is being spoken to resets the connection
        return heard


def test_what_is_no_http2_is_closed(server: Server, channel: grpc.Channel) -> None:
    rng = random.Random(SEED + 2)
    spoken(server, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    spoken(server, PREFACE[:10])
    for _ in range(100):
        spoken(server, rng.randbytes(rng.randint(0, 200)))
        spoken(server, PREFACE + SETTINGS + rng.randbytes(rng.randint(1, 300)))
    assert outcome(channel, "ModelInfer", good()) == grpc.StatusCode.OK


def test_those_who_say_nothing_lose_their_place(serve: Serve, doubling: Path) -> None:
    limits = {"header_timeout_ms": 150, "idle_timeout_ms": 400, "max_connections": 2}
    server = serve(tiny.entry(doubling), listen=BOTH, limits=limits)
    for opening, least in ((b"", 0.1), (PREFACE[:20], 0.1), (PREFACE + SETTINGS, 0.3)):
        begun = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.grpc_port or 0), timeout=10) as made:
            made.sendall(opening)
            while made.recv(65536):
                pass
        took = time.monotonic() - begun
        assert least < took < 3, f"`{opening!r}` was borne for {took:.2f} s"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + payload


def frames_of(heard: bytes) -> list[tuple[int, int]]:
    """Kind and stream of every frame."""
    found = []
    while len(heard) >= 9:
        found.append((heard[3], int.from_bytes(heard[5:9], "big")))
        heard = heard[9 + int.from_bytes(heard[:3], "big") :]
    return found


def header(name: str, value: str) -> bytes:
    """A header as HPACK writes it that knows no tables."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def test_those_who_do_not_read_their_answer_lose_their_place(serve: Serve, doubling: Path) -> None:
    server = serve(tiny.entry(doubling), listen=BOTH, limits={"body_timeout_ms": 300})
    path = "/inference.GRPCInferenceService/ModelInfer"
    fields = {":method": "POST", ":scheme": "http", ":path": path, "content-type": "application/grpc"}
    no_window = frame(4, 0, 0, b"\0\x04\0\0\0\0")
    call = frame(1, 4, 1, b"".join(header(*field) for field in fields.items()))
    message = b"\0" + len(good()).to_bytes(4, "big") + good()
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.grpc_port or 0), timeout=10) as made:
        made.sendall(PREFACE + no_window + call + frame(0, 1, 1, message))
        heard = b""
        while piece := made.recv(65536):
            heard += piece
    took = time.monotonic() - begun
    assert (1, 1) in frames_of(heard), "the call was not answered"
    assert (0, 1) not in frames_of(heard), "data came without room for it"
    assert 0.25 < took < 3, f"who does not read was borne for {took:.2f} s"


def test_the_connection_limit_holds_for_both_ports(serve: Serve, doubling: Path) -> None:
    server = serve(tiny.entry(doubling), listen=BOTH, limits={"max_connections": 1})
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        assert outcome(channel, "ModelInfer", good()) == grpc.StatusCode.OK
        with socket.create_connection(("127.0.0.1", server.grpc_port or 0), timeout=10) as second:
            second.sendall(PREFACE + SETTINGS)
            with contextlib.suppress(ConnectionResetError):
                assert second.recv(100) == b""
        assert outcome(channel, "ModelInfer", good()) == grpc.StatusCode.OK


def test_calls_that_are_no_grpc_are_told_so(server: Server) -> None:
    import shutil
    import subprocess

    if shutil.which("curl") is None:
        pytest.skip("SKIPPED: curl is not installed")
    url = f"http://127.0.0.1:{server.grpc_port}/inference.GRPCInferenceService/ModelInfer"
    command = [
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "--http2-prior-knowledge",
        "-X",
        "POST",
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "415"
