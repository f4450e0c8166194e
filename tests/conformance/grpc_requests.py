"""The gRPC requests that are put to Triton, as messages of its own protocol. Needs `tritonclient[grpc]`."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from tritonclient.grpc import service_pb2 as pb

__all__ = ["Call", "calls"]

SERVICE = "/inference.GRPCInferenceService"
HEALTH = "/grpc.health.v1.Health"


class Call(NamedTuple):
    """A call. `messages` are sent in order; a stream may have more than one, each of which gets an answer."""

    name: str
    rule: str
    method: str
    messages: list[bytes]


def calls() -> list[Call]:
    """All of them, in the order in which they are sent."""
    groups = (about, raw, typed, asked, unfit, streamed)
    return [call for group in groups for call in group()]


def call(name: str, rule: str, message: Any) -> Call:
    """A call of the method that its message is called after."""
    method = type(message).__name__.removesuffix("Request")
    return Call(name, rule, f"{SERVICE}/{method}", [message.SerializeToString()])


def about() -> Iterator[Call]:
    """Health, metadata, configuration, statistics, index."""
    yield call("about/live", "G1", pb.ServerLiveRequest())
    yield call("about/ready", "G1", pb.ServerReadyRequest())
    yield call("about/server", "G1", pb.ServerMetadataRequest())
    yield Call("about/health", "G9", f"{HEALTH}/Check", [b""])
    for name in ("plain", "scores", "echo_bytes", "nobody"):
        yield call(f"about/ready-{name}", "G1, G10", pb.ModelReadyRequest(name=name))
        yield call(f"about/model-{name}", "G1", pb.ModelMetadataRequest(name=name))
        yield call(f"about/config-{name}", "G3", pb.ModelConfigRequest(name=name))
    for version in ("1", "9"):
        yield call(
            f"about/ready-version-{version}", "G10", pb.ModelReadyRequest(name="plain", version=version)
        )
        yield call(
            f"about/model-version-{version}", "G1", pb.ModelMetadataRequest(name="plain", version=version)
        )
    plain = request("plain", ("x", "INT64", [2, 2]), raw=[struct.pack("<4q", 1, 2, 3, 4)])
    yield call("about/first-use", "G4 no batch dimension", plain)
    yield call("about/statistics", "G3, S1", pb.ModelStatisticsRequest(name="plain"))
    yield call("about/statistics-unknown", "G3, S1", pb.ModelStatisticsRequest(name="nobody"))
    yield call("about/index", "G3, R1", pb.RepositoryIndexRequest())
    yield call("about/index-ready", "G3, R1", pb.RepositoryIndexRequest(ready=True))


RAW = {
    "BOOL": b"\x01\x00", "UINT8": b"\x00\xff", "UINT16": struct.pack("<2H", 1, 65_535),
    "UINT32": struct.pack("<2I", 1, 2**32 - 1), "UINT64": struct.pack("<2Q", 1, 2**64 - 1),
    "INT8": struct.pack("<2b", -128, 127), "INT16": struct.pack("<2h", -1, 2),
    "INT32": struct.pack("<2i", -1, 2), "INT64": struct.pack("<2q", -(2**63), 2),
    "FP16": struct.pack("<2e", 1.5, -2), "FP32": struct.pack("<2f", 0.1, -3.5),
    "FP64": struct.pack("<2d", 0.1, -3.5), "BYTES": b"\x04\0\0\0text\x02\0\0\0ab",
}  # fmt: skip

# Datatype -> field of the typed contents and values.
TYPED: dict[str, tuple[str, list[Any]]] = {
    "BOOL": ("bool_contents", [True, False]),
    "UINT8": ("uint_contents", [0, 255]), "UINT16": ("uint_contents", [0, 65_535]),
    "UINT32": ("uint_contents", [0, 2**32 - 1]), "UINT64": ("uint64_contents", [0, 2**64 - 1]),
    "INT8": ("int_contents", [-128, 127]), "INT16": ("int_contents", [-32_768, 32_767]),
    "INT32": ("int_contents", [-1, 2]), "INT64": ("int64_contents", [-(2**63), 2]),
    "FP32": ("fp32_contents", [0.5, -3.5]), "FP64": ("fp64_contents", [0.1, -3.5]),
    "BYTES": ("bytes_contents", [b"text", b"\xff\x00"]),
}  # fmt: skip


def request(model: str, *inputs: tuple[str, str, list[int]], raw: list[bytes] = [], **more: Any) -> Any:  # noqa: B006
    """An inference request."""
    made = pb.ModelInferRequest(model_name=model, raw_input_contents=raw, **more)
    for name, datatype, shape in inputs:
        made.inputs.add(name=name, datatype=datatype, shape=shape)
    return made


def x32(**more: Any) -> Any:
    """A good request to `echo_fp32`."""
    return request("echo_fp32", ("x", "FP32", [1, 2]), raw=[RAW["FP32"]], **more)


def raw() -> Iterator[Call]:
    """Tensors as raw bytes."""
    for datatype, data in RAW.items():
        model = f"echo_{datatype.lower()}"
        yield call(f"raw/{model}", "G4", request(model, ("x", datatype, [1, 2]), raw=[data]))
    yield call("raw/no-rows", "G4 size 0", request("echo_fp32", ("x", "FP32", [0, 2]), raw=[b""]))
    yield call("raw/not-finite", "B10", request("inverse", ("x", "FP32", [1, 2]), raw=[bytes(8)]))
    two = [RAW["FP32"], struct.pack("<2f", 1, 2)]
    shape = [1, 2]
    yield call("raw/two-inputs", "G5", request("sums", ("a", "FP32", shape), ("b", "FP32", shape), raw=two))
    yield call("raw/other-order", "G5", request("sums", ("b", "FP32", shape), ("a", "FP32", shape), raw=two))


def typed() -> Iterator[Call]:
    """Tensors in the typed fields."""
    for datatype, (field, values) in TYPED.items():
        model = f"echo_{datatype.lower()}"
        made = request(model, ("x", datatype, [1, 2]))
        getattr(made.inputs[0].contents, field).extend(values)
        yield call(f"typed/{model}", "G4", made)
    none = request("echo_fp16", ("x", "FP16", [1, 2]))
    none.inputs[0].contents.fp32_contents.extend([1, 2])
    yield call("typed/echo_fp16", "G4 no field for FP16", none)
    wrong = request("echo_fp32", ("x", "FP32", [1, 2]))
    wrong.inputs[0].contents.int_contents.extend([1, 2])
    yield call("typed/wrong-field", "G4", wrong)
    wide = request("echo_int8", ("x", "INT8", [1, 2]))
    wide.inputs[0].contents.int_contents.extend([1, 300])
    yield call("typed/above-range", "G4", wide)
    few = request("echo_fp32", ("x", "FP32", [1, 2]))
    few.inputs[0].contents.fp32_contents.extend([1])
    yield call("typed/too-few", "G4", few)
    both = x32()
    both.inputs[0].contents.fp32_contents.extend([1, 2])
    yield call("typed/and-raw", "G4 never both", both)


def asked() -> Iterator[Call]:
    """Ids, versions, outputs, parameters, classification."""
    yield call("asked/id", "B8", x32(id="r-1"))
    yield call("asked/version", "H5", x32(model_version="1"))
    two = [RAW["FP32"], struct.pack("<2f", 1, 2)]
    for name, outputs in {"one": ["difference"], "turned": ["difference", "sum"], "unknown": ["z"],
                          "twice": ["sum", "sum"]}.items():  # fmt: skip
        made = request("sums", ("a", "FP32", [1, 2]), ("b", "FP32", [1, 2]), raw=two)
        for output in outputs:
            made.outputs.add(name=output)
        yield call(f"asked/outputs-{name}", "B8", made)
    ranked = request("scores", ("x", "FP32", [1, 4]), raw=[struct.pack("<4f", 0.5, 2, -1, 1.25)])
    ranked.outputs.add(name="y").parameters["classification"].int64_param = 2
    yield call("asked/classification", "S4", ranked)
    parameters = {
        "int": {"own": pb.InferParameter(int64_param=7)},
        "text": {"own": pb.InferParameter(string_param="x")},
        "double": {"own": pb.InferParameter(double_param=0.5)},
        "priority": {"priority": pb.InferParameter(uint64_param=1)},
        "timeout": {"timeout": pb.InferParameter(int64_param=5_000_000)},
        "reserved": {"triton_x": pb.InferParameter(int64_param=1)},
        "sequence": {"sequence_id": pb.InferParameter(int64_param=7)},
    }
    for name, given in parameters.items():
        yield call(f"asked/parameter-{name}", "G6, S2, S3", x32(parameters=given))


def unfit() -> Iterator[Call]:
    """Requests that do not fit the model."""
    one = RAW["FP32"]
    shape = [1, 2]
    wrong = {
        "unknown-model": request("nobody", ("x", "FP32", shape), raw=[one]),
        "unknown-version": x32(model_version="9"),
        "no-model": request("", ("x", "FP32", shape), raw=[one]),
        "no-inputs": request("echo_fp32"),
        "unknown-input": request("echo_fp32", ("z", "FP32", shape), raw=[one]),
        "missing-input": request("sums", ("a", "FP32", shape), raw=[one]),
        "input-twice": request("sums", ("a", "FP32", shape), ("a", "FP32", shape), raw=[one, one]),
        "other-datatype": request("echo_fp32", ("x", "INT32", shape), raw=[one]),
        "unknown-datatype": request("echo_fp32", ("x", "FLOAT", shape), raw=[one]),
        "rank": request("echo_fp32", ("x", "FP32", [2]), raw=[one]),
        "negative": request("echo_fp32", ("x", "FP32", [-1, 2]), raw=[one]),
        "fixed-size": request("scores", ("x", "FP32", [1, 2]), raw=[one]),
        "raw-short": request("echo_fp32", ("x", "FP32", shape), raw=[one[:6]]),
        "raw-long": request("echo_fp32", ("x", "FP32", shape), raw=[one + b"x"]),
        "raw-missing": request("echo_fp32", ("x", "FP32", shape)),
        "raw-surplus": request("echo_fp32", ("x", "FP32", shape), raw=[one, one]),
        "text-cut-short": request("echo_bytes", ("x", "BYTES", [1, 1]), raw=[b"\x09\0\0\0ab"]),
        "model-says-no": request("lookup", ("ids", "INT64", [1, 1]), raw=[struct.pack("<q", 9)]),
        "after-the-refusal": request("lookup", ("ids", "INT64", [1, 1]), raw=[struct.pack("<q", 3)]),
    }
    for name, made in wrong.items():
        yield call(f"unfit/{name}", "6.3", made)


def streamed() -> Iterator[Call]:
    """ModelStreamInfer: an error is a message, and the stream stays open."""
    good, bad = x32(id="good").SerializeToString(), x32(id="bad", model_version="9").SerializeToString()
    method = f"{SERVICE}/ModelStreamInfer"
    yield Call("stream/one", "G2", method, [good])
    yield Call("stream/error-between", "G2", method, [good, bad, good])
