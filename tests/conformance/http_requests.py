"""The HTTP requests that are put to Triton: for every rule of the protocol one that keeps it and those that break it.

Group and name of a request are its name in the golden files. Only the standard library is used.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Request", "requests"]

LENGTH = "Inference-Header-Content-Length"


class Request(NamedTuple):
    """A request as bytes. `rule` says in a few words what is asked of a server."""

    name: str
    rule: str
    raw: bytes


def requests() -> list[Request]:
    """All of them, in the order in which they are sent."""
    groups = (
        server,
        models,
        repository,
        as_json,
        as_binary,
        bare,
        classes,
        coded,
        parameters,
        malformed,
        unfit,
    )
    return [request for group in groups for request in group()]


def http(method: str, path: str, body: bytes = b"", version: str = "1.1", **headers: str) -> bytes:
    """The bytes of a request. Underscores in header names become dashes."""
    lines = [f"{method} /{path} HTTP/{version}", "Host: test"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if (body or method == "POST") and "Transfer_Encoding" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def infer(model: str, document: Any, binary: bytes | None = None, **headers: str) -> bytes:
    """An inference request; with `binary` the header that says where the JSON ends."""
    text = document if isinstance(document, bytes) else json.dumps(document, ensure_ascii=False).encode()
    if binary is not None:
        headers = {LENGTH.replace("-", "_"): str(len(text)), **headers}
    return http("POST", f"v2/models/{model}/infer", text + (binary or b""), **headers)


def tensor(name: str, datatype: str, shape: list[Any], data: Any = None, **more: Any) -> dict[str, Any]:
    """An input of a request."""
    made = {"name": name, "datatype": datatype, "shape": shape}
    return made | ({} if data is None else {"data": data}) | more


def x32(data: Any = (1.5, -2.25), shape: tuple[int, ...] = (1, 2), **more: Any) -> dict[str, Any]:
    """The input of `echo_fp32`."""
    return tensor("x", "FP32", list(shape), list(data), **more)


def sized(name: str, datatype: str, shape: list[int], size: int) -> dict[str, Any]:
    """An input whose bytes follow the JSON."""
    return tensor(name, datatype, shape, parameters={"binary_data_size": size})


def strings(*texts: str) -> bytes:
    """BYTES elements as they go over the wire."""
    return b"".join(struct.pack("<I", len(t.encode())) + t.encode() for t in texts)


def server() -> Iterator[Request]:
    """The server as a whole."""
    yield Request("server/metadata", "H1", http("GET", "v2"))
    yield Request("server/live", "H2", http("GET", "v2/health/live"))
    yield Request("server/ready", "H2", http("GET", "v2/health/ready"))
    yield Request("server/query", "a query does not change the path", http("GET", "v2/health/ready?x=1"))
    yield Request("server/http10", "HTTP/1.0 is answered", http("GET", "v2/health/live", version="1.0"))
    yield Request("server/slash", "H11 slash at the end", http("GET", "v2/"))
    yield Request("server/models", "H11 list of models", http("GET", "v2/models"))
    yield Request("server/unknown-path", "H12", http("GET", "v2/nothing"))
    yield Request("server/root", "H12", http("GET", ""))
    yield Request("server/wrong-method", "H12", http("POST", "v2/health/live"))
    yield Request("server/delete", "H12", http("DELETE", "v2/models/plain"))
    yield Request("server/infer-by-get", "H12", http("GET", "v2/models/plain/infer"))
    yield Request("server/stats-by-post", "H12", http("POST", "v2/models/plain/stats"))
    yield Request("server/trace", "H9 not claimed here", http("GET", "v2/trace/setting"))
    yield Request("server/logging", "H9 not claimed here", http("GET", "v2/logging"))
    shm = "v2/systemsharedmemory/status"
    yield Request("server/shared-memory", "H10 not claimed here", http("GET", shm))


def models() -> Iterator[Request]:
    """What is said about a model."""
    for model in ("echo_fp32", "echo_bytes", "echo_fp16", "sums", "scores", "plain"):
        yield Request(f"model/metadata-{model}", "H4", http("GET", f"v2/models/{model}"))
        yield Request(f"model/config-{model}", "H6", http("GET", f"v2/models/{model}/config"))
        yield Request(f"model/ready-{model}", "H3", http("GET", f"v2/models/{model}/ready"))
    version = "v2/models/plain/versions"
    yield Request("model/metadata-version", "H4", http("GET", f"{version}/1"))
    yield Request("model/ready-version", "H3", http("GET", f"{version}/1/ready"))
    yield Request("model/config-version", "H6", http("GET", f"{version}/1/config"))
    yield Request("model/metadata-unknown-version", "H4", http("GET", f"{version}/9"))
    yield Request("model/ready-unknown-version", "H3", http("GET", f"{version}/9/ready"))
    yield Request("model/metadata-word-version", "H11 version in words", http("GET", f"{version}/latest"))
    yield Request("model/metadata-unknown", "H4", http("GET", "v2/models/nobody"))
    yield Request("model/ready-unknown", "H3", http("GET", "v2/models/nobody/ready"))
    yield Request("model/config-unknown", "H6", http("GET", "v2/models/nobody/config"))
    yield Request("model/stats-unused", "S1", http("GET", "v2/models/plain/stats"))
    two = tensor("x", "INT64", [2, 2], [1, 2, 3, 4])
    yield Request("model/first-use", "B1 no batch dimension", infer("plain", {"inputs": [two]}))
    yield Request("model/stats-used", "S1", http("GET", "v2/models/plain/stats"))
    yield Request("model/stats-version", "S1", http("GET", f"{version}/1/stats"))
    yield Request("model/stats-unknown", "S1", http("GET", "v2/models/nobody/stats"))


def repository() -> Iterator[Request]:
    """The repository index."""
    index = "v2/repository/index"
    yield Request("repository/index-empty-body", "R1", http("POST", index))
    yield Request("repository/index-ready", "R1", http("POST", index, b'{"ready": true}'))
    yield Request("repository/index-all", "R1", http("POST", index, b"{}"))
    yield Request("repository/index-by-get", "H12", http("GET", index))
    yield Request("repository/index-bad-json", "R1", http("POST", index, b"{"))
    load = "v2/repository/models"
    yield Request("repository/load-unknown", "R2", http("POST", f"{load}/nobody/load"))
    yield Request("repository/unload-unknown", "R3", http("POST", f"{load}/nobody/unload"))


def as_json() -> Iterator[Request]:
    """Inference with tensors as JSON."""
    flat: dict[str, list[Any]] = {
        "BOOL": [True, False],
        "UINT8": [0, 255], "UINT16": [0, 65_535], "UINT32": [0, 4_294_967_295], "UINT64": [0, 2**64 - 1],
        "INT8": [-128, 127], "INT16": [-32_768, 32_767], "INT32": [-(2**31), 2**31 - 1],
        "INT64": [-(2**63), 2**63 - 1],
        "FP32": [0.1, -3.4e38], "FP64": [0.1, 1e308], "FP16": [1.5, -2.0],
        "BYTES": ["text", "ümlaut 漢字 \N{GRINNING FACE}"],
    }  # fmt: skip
    for datatype, data in flat.items():
        model = f"echo_{datatype.lower()}"
        made = {"inputs": [tensor("x", datatype, [1, 2], data)]}
        yield Request(f"json/{model}", "B1, B2", infer(model, made))
    nested = {"inputs": [x32([[1, 2], [3, 4]], (2, 2))]}
    yield Request("json/nested", "B1 nested data", infer("echo_fp32", nested))
    yield Request("json/batch", "B1 rows", infer("echo_fp32", {"inputs": [x32([1, 2, 3, 4], (2, 2))]}))
    yield Request("json/empty-row", "B1 size 0", infer("echo_fp32", {"inputs": [x32([], (1, 0))]}))
    yield Request("json/no-rows", "B1 size 0", infer("echo_fp32", {"inputs": [x32([], (0, 2))]}))
    yield Request("json/integers-for-floats", "B1", infer("echo_fp32", {"inputs": [x32([1, 2])]}))
    yield Request("json/exponents", "B1", infer("echo_fp64", b'{"inputs":[{"name":"x","datatype":"FP64",'
                  b'"shape":[1,3],"data":[1e-3,-2.5E2,0.0]}]}'))  # fmt: skip
    texts = {"inputs": [tensor("x", "BYTES", [1, 3], ["", 'quote " and \\ and \n', "a\u0000b"])]}
    yield Request("json/escapes", "B1 strings", infer("echo_bytes", json.dumps(texts).encode()))
    yield Request("json/id", "B8", infer("echo_fp32", {"id": "r-1", "inputs": [x32()]}))
    yield Request("json/empty-id", "B8", infer("echo_fp32", {"id": "", "inputs": [x32()]}))
    yield Request("json/unknown-key", "keys of others pass", infer("echo_fp32", {"x": 1, "inputs": [x32()]}))
    yield Request(
        "json/content-type", "H5", infer("echo_fp32", {"inputs": [x32()]}, Content_Type="text/plain")
    )
    path = "echo_fp32/versions/1"
    yield Request("json/version", "H5", infer(path, {"inputs": [x32()]}))
    both = [tensor("a", "FP32", [1, 2], [5, 7]), tensor("b", "FP32", [1, 2], [1, 2])]
    yield Request("json/two-inputs", "B1", infer("sums", {"inputs": both}))
    yield Request("json/inputs-in-other-order", "B1", infer("sums", {"inputs": both[::-1]}))
    for name, asked in {
        "one-output": ["difference"], "outputs-in-other-order": ["difference", "sum"], "no-outputs": [],
    }.items():  # fmt: skip
        document = {"inputs": both, "outputs": [{"name": output} for output in asked]}
        yield Request(f"json/{name}", "B8", infer("sums", document))
    body = json.dumps({"inputs": [x32()]}).encode()
    chunked = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    sent = http("POST", "v2/models/echo_fp32/infer", chunked, Transfer_Encoding="chunked")
    yield Request("json/chunked", "B11", sent)
    yield Request("json/not-finite", "B10", infer("inverse", {"inputs": [x32([0, 2])]}))


def as_binary() -> Iterator[Request]:
    """Inference with the binary tensor extension."""
    packed: dict[str, bytes] = {
        "BOOL": b"\x01\x00", "UINT8": b"\x00\xff", "UINT16": struct.pack("<2H", 1, 65_535),
        "UINT32": struct.pack("<2I", 1, 2**32 - 1), "UINT64": struct.pack("<2Q", 1, 2**64 - 1),
        "INT8": struct.pack("<2b", -128, 127), "INT16": struct.pack("<2h", -1, 2),
        "INT32": struct.pack("<2i", -1, 2), "INT64": struct.pack("<2q", -(2**63), 2),
        "FP16": struct.pack("<2e", 1.5, -2), "FP32": struct.pack("<2f", 0.1, -3.5),
        "FP64": struct.pack("<2d", 0.1, -3.5), "BYTES": strings("text", "漢字"),
    }  # fmt: skip
    for datatype, data in packed.items():
        model = f"echo_{datatype.lower()}"
        made = {
            "inputs": [sized("x", datatype, [1, 2], len(data))],
            "parameters": {"binary_data_output": True},
        }
        yield Request(f"binary/{model}", "B3, B4, B7", infer(model, made, data))
    ones = struct.pack("<2f", 1, 2)
    sent = {"inputs": [sized("x", "FP32", [1, 2], 8)]}
    yield Request("binary/in-only", "B6", infer("echo_fp32", sent, ones))
    lower = http("POST", "v2/models/echo_fp32/infer", json.dumps(sent).encode() + ones,
                 **{LENGTH.lower().replace("-", "_"): str(len(json.dumps(sent)))})  # fmt: skip
    yield Request("binary/header-in-lower-case", "B3", lower)
    out = {"inputs": [x32()], "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}
    yield Request("binary/out-only", "B6", infer("echo_fp32", out))
    other = out | {"parameters": {"binary_data_output": True}}
    other["outputs"] = [{"name": "y", "parameters": {"binary_data": False}}]
    yield Request("binary/output-overrides-request", "B6", infer("echo_fp32", other))
    asked = {"outputs": [{"name": "y"}], "parameters": {"binary_data_output": True}, "inputs": [x32()]}
    yield Request("binary/request-default-for-listed", "B6", infer("echo_fp32", asked))
    mixed = [tensor("a", "FP32", [1, 2], [5, 7]), sized("b", "FP32", [1, 2], 8)]
    some = [{"name": "difference", "parameters": {"binary_data": True}}, {"name": "sum"}]
    yield Request("binary/mixed", "B3, B7", infer("sums", {"inputs": mixed, "outputs": some}, ones))
    turned = {"inputs": [sized("b", "FP32", [1, 2], 8), sized("a", "FP32", [1, 2], 8)]}
    yield Request("binary/order-of-inputs", "B3", infer("sums", turned, ones + struct.pack("<2f", 10, 20)))
    nothing = {"inputs": [sized("x", "FP32", [0, 2], 0)], "parameters": {"binary_data_output": True}}
    yield Request("binary/no-rows", "B7 size 0", infer("echo_fp32", nothing, b""))
    infinite = {"inputs": [x32([0, 2])], "parameters": {"binary_data_output": True}}
    yield Request("binary/not-finite", "B10", infer("inverse", infinite))
    whole = {"inputs": [x32()]}
    yield Request("binary/length-of-all", "B3 no binary part", infer("echo_fp32", whole, b""))


def bare() -> Iterator[Request]:
    """Raw requests: the body is one tensor and nothing else."""
    zero = {LENGTH.replace("-", "_"): "0"}

    def raw(model: str, body: bytes) -> bytes:
        return http("POST", f"v2/models/{model}/infer", body, **zero)

    yield Request("raw/one-free-dimension", "B5", raw("echo_fp32", struct.pack("<3f", 1, 2, 3)))
    yield Request("raw/fixed", "B5", raw("plain", struct.pack("<4q", 1, 2, 3, 4)))
    yield Request("raw/batched-fixed", "B5", raw("scores", struct.pack("<4f", 4, 3, 2, 1)))
    yield Request("raw/text", "B5", raw("echo_bytes", strings("one text")))
    yield Request("raw/wrong-size", "B5", raw("scores", b"123"))
    yield Request("raw/not-a-multiple", "B5", raw("echo_fp32", b"12345"))
    yield Request("raw/two-inputs", "B5", raw("sums", struct.pack("<2f", 1, 2)))
    yield Request("raw/empty", "B5", raw("echo_fp32", b""))


def classes() -> Iterator[Request]:
    """The classification extension. Triton 2.51 dies of a request to classify text, so that none is put to it."""
    scores = tensor("x", "FP32", [1, 4], [0.5, 2, -1, 1.25])
    rows = tensor("x", "FP32", [2, 4], [0.5, 2, -1, 1.25, 9, 8, 7, 6])

    def ask(count: Any, *, given: dict[str, Any] = scores, **more: Any) -> bytes:
        output = {"name": "y", "parameters": {"classification": count, **more}}
        return infer("scores", {"inputs": [given], "outputs": [output]})

    yield Request("classification/two", "S4", ask(2))
    yield Request("classification/rows", "S4", ask(3, given=rows))
    yield Request("classification/more-than-there-are", "S4", ask(9))
    yield Request("classification/none", "S4", ask(0))
    yield Request("classification/binary", "S4", ask(2, binary_data=True))
    yield Request("classification/text-count", "S4", ask("two"))
    yield Request("classification/negative-count", "S4", ask(-1))
    output = {"name": "y", "parameters": {"classification": 1}}
    floats = {"inputs": [x32([3, 4, 1], (1, 3))], "outputs": [output]}
    yield Request("classification/no-labels", "S4", infer("echo_fp32", floats))
    ties = {"inputs": [tensor("x", "INT32", [1, 3], [7, 7, 2])], "outputs": [output]}
    yield Request("classification/integers", "S4", infer("echo_int32", ties))


def coded() -> Iterator[Request]:
    """Content codings both ways."""
    document = {"inputs": [x32(range(300), (1, 300))]}
    text = json.dumps(document).encode()
    path = "v2/models/echo_fp32/infer"
    raw_deflate = zlib.compressobj(wbits=-15)
    bodies = {
        "gzip": ("gzip", gzip.compress(text, mtime=0)),
        "deflate": ("deflate", zlib.compress(text)),
        "deflate-without-wrapper": ("deflate", raw_deflate.compress(text) + raw_deflate.flush()),
        "identity": ("identity", text),
        "unknown": ("br", text),
        "corrupt": ("gzip", b"\x1f\x8b" + text),
        "cut-short": ("gzip", gzip.compress(text, mtime=0)[:-12]),
    }
    for name, (coding, body) in bodies.items():
        yield Request(f"coding/sent-{name}", "B9", http("POST", path, body, Content_Encoding=coding))
    for accept in ("gzip", "deflate", "gzip, deflate", "identity", "br", "gzip;q=0, deflate", "*"):
        name = "".join(c if c.isalnum() else "-" for c in accept.replace("*", "any"))
        yield Request(f"coding/taken-{name}", "B9", infer("echo_fp32", document, Accept_Encoding=accept))
    values = struct.pack("<300f", *range(300))
    head = {"inputs": [sized("x", "FP32", [1, 300], 1200)], "parameters": {"binary_data_output": True}}
    packed = gzip.compress(json.dumps(head).encode() + values, mtime=0)
    length = str(len(json.dumps(head)))
    both = {LENGTH.replace("-", "_"): length, "Content_Encoding": "gzip", "Accept_Encoding": "gzip"}
    yield Request("coding/binary-both-ways", "B9", http("POST", path, packed, **both))


def parameters() -> Iterator[Request]:
    """Parameters of requests, inputs and outputs."""
    good: dict[str, Any] = {
        "own": {"text": "x", "number": 7, "part": 0.5, "flag": True},
        "priority": {"priority": 1},
        "timeout": {"timeout": 5_000_000},
        "no-sequence": {"sequence_id": 0, "sequence_start": False, "sequence_end": False},
        "empty": {},
    }
    bad: dict[str, Any] = {
        "reserved": {"triton_x": 1},
        "nested": {"own": {"a": 1}},
        "list": {"own": [1]},
        "null": {"own": None},
        "priority-text": {"priority": "high"},
        "timeout-text": {"timeout": "soon"},
        "timeout-negative": {"timeout": -1},
        "binary-output-text": {"binary_data_output": "yes"},
        "sequence": {"sequence_id": 7, "sequence_start": True},
    }
    for name, given in (good | bad).items():
        document = {"inputs": [x32()], "parameters": given}
        yield Request(f"parameters/{name}", "B12, S2, S3", infer("echo_fp32", document))
    yield Request("parameters/not-an-object", "B12", infer("echo_fp32", {"inputs": [x32()], "parameters": 3}))
    own = {"inputs": [x32(parameters={"own": 1})]}
    yield Request("parameters/of-an-input", "B12", infer("echo_fp32", own))
    region = {"shared_memory_region": "r", "shared_memory_byte_size": 8}
    shared = {"inputs": [tensor("x", "FP32", [1, 2], parameters=region)]}
    yield Request("parameters/shared-memory", "6.7", infer("echo_fp32", shared))
    binary = {"inputs": [tensor("x", "FP32", [1, 2], parameters={"binary_data_size": "8"})]}
    yield Request("parameters/binary-size-text", "B3", infer("echo_fp32", binary, b"12345678"))


def malformed() -> Iterator[Request]:
    """Bodies that are no request."""
    bodies: dict[str, bytes] = {
        "empty": b"",
        "not-json": b"{not json",
        "cut-short": b'{"inputs": [{"name": "x"',
        "trailing-text": json.dumps({"inputs": [x32()]}).encode() + b" x",
        "list": b"[]",
        "text": b'"inputs"',
        "null": b"null",
        "no-inputs": b"{}",
        "inputs-null": b'{"inputs": null}',
        "inputs-object": b'{"inputs": {}}',
        "inputs-empty": b'{"inputs": []}',
        "input-number": b'{"inputs": [3]}',
        "not-utf8": b'{"inputs": [{"name": "\xff"}]}',
        "outputs-object": json.dumps({"inputs": [x32()], "outputs": {}}).encode(),
        "output-without-name": json.dumps({"inputs": [x32()], "outputs": [{}]}).encode(),
        "id-number": json.dumps({"id": 7, "inputs": [x32()]}).encode(),
        "id-null": json.dumps({"id": None, "inputs": [x32()]}).encode(),
    }
    for name, body in bodies.items():
        yield Request(f"malformed/{name}", "6.3", infer("echo_fp32", body))
    for key in ("name", "datatype", "shape", "data"):
        document = {"inputs": [{k: v for k, v in x32().items() if k != key}]}
        yield Request(f"malformed/input-without-{key}", "6.3", infer("echo_fp32", document))
    ones = struct.pack("<2f", 1, 2)
    whole = {"inputs": [sized("x", "FP32", [1, 2], 8)]}
    yield Request("malformed/binary-short", "B4", infer("echo_fp32", whole, ones[:6]))
    yield Request("malformed/binary-surplus", "B4", infer("echo_fp32", whole, ones + b"x"))
    wrong = {"inputs": [sized("x", "FP32", [1, 2], 12)]}
    yield Request("malformed/binary-size-not-of-shape", "B4", infer("echo_fp32", wrong, ones + b"1234"))
    yield Request("malformed/binary-without-header", "B3", infer("echo_fp32", whole))
    twice = {"inputs": [x32(parameters={"binary_data_size": 8})]}
    yield Request("malformed/data-and-binary", "B3", infer("echo_fp32", twice, ones))
    for name, value in {"too-long": "9999", "negative": "-5", "text": "ten"}.items():
        headers = {LENGTH.replace("-", "_"): value}
        sent = http("POST", "v2/models/echo_fp32/infer", json.dumps({"inputs": [x32()]}).encode(), **headers)
        yield Request(f"malformed/length-{name}", "B3", sent)
    cut = {"inputs": [sized("x", "BYTES", [1, 1], 6)]}
    yield Request("malformed/text-longer-than-body", "B4", infer("echo_bytes", cut, b"\x09\0\0\0ab"))


def unfit() -> Iterator[Request]:
    """Requests that are well formed but do not fit the model."""
    inputs: dict[str, dict[str, Any]] = {
        "too-few-values": x32([1]),
        "too-many-values": x32([1, 2, 3]),
        "text-for-number": x32(["a", "b"]),
        "true-for-number": x32([True, False]),
        "null-for-number": x32([None, 1]),
        "object-for-data": tensor("x", "FP32", [1, 2], {"b64": "AAAA"}),
        "text-for-data": tensor("x", "FP32", [1, 2], "12"),
        "other-datatype": tensor("x", "INT32", [1, 2], [1, 2]),
        "unknown-datatype": tensor("x", "FLOAT", [1, 2], [1, 2]),
        "datatype-number": tensor("x", 32, [1, 2], [1, 2]),  # type: ignore[arg-type]
        "rank-too-low": x32([1, 2], (2,)),
        "rank-too-high": x32([1, 2], (1, 1, 2)),
        "shape-negative": x32([1, 2], (-1, 2)),
        "shape-text": tensor("x", "FP32", ["1", 2], [1, 2]),
        "shape-fraction": tensor("x", "FP32", [1.0, 2], [1, 2]),
        "shape-number": tensor("x", "FP32", 2, [1, 2]),  # type: ignore[arg-type]
        "shape-overflows": x32([1, 2], (2**62, 8)),
        "unknown-input": tensor("z", "FP32", [1, 2], [1, 2]),
    }
    for name, given in inputs.items():
        yield Request(f"unfit/{name}", "6.2, 6.3", infer("echo_fp32", {"inputs": [given]}))
    integers = {"fraction": [1.5, 2], "above-range": [128, 0], "below-range": [-129, 0], "text": ["1", "2"]}
    for name, data in integers.items():
        made = {"inputs": [tensor("x", "INT8", [1, 2], data)]}
        yield Request(f"unfit/int8-{name}", "B1", infer("echo_int8", made))
    unsigned = {"inputs": [tensor("x", "UINT32", [1, 2], [-1, 0])]}
    yield Request("unfit/uint32-negative", "B1", infer("echo_uint32", unsigned))
    flags = {"inputs": [tensor("x", "BOOL", [1, 2], [1, 0])]}
    yield Request("unfit/numbers-for-bool", "B1", infer("echo_bool", flags))
    words = {"inputs": [tensor("x", "BYTES", [1, 2], [1, 2])]}
    yield Request("unfit/numbers-for-text", "B1", infer("echo_bytes", words))
    a, b = tensor("a", "FP32", [1, 2], [1, 2]), tensor("b", "FP32", [1, 2], [1, 2])
    yield Request("unfit/missing-input", "6.3", infer("sums", {"inputs": [a]}))
    yield Request("unfit/extra-input", "6.3", infer("sums", {"inputs": [a, b, x32()]}))
    yield Request("unfit/input-twice", "6.3", infer("sums", {"inputs": [a, a]}))
    rows = tensor("b", "FP32", [2, 2], [1, 2, 3, 4])
    yield Request("unfit/rows-differ", "6.3", infer("sums", {"inputs": [a, rows]}))
    wide = {"inputs": [tensor("a", "FP32", [1, 3], [1, 2, 3]), b]}
    yield Request("unfit/fixed-size", "6.3", infer("sums", wide))
    many = {"inputs": [x32(range(18), (9, 2))]}
    yield Request("unfit/more-rows-than-a-batch", "9 rows, batches of 8", infer("echo_fp32", many))
    for name, outputs in {"unknown-output": ["z"], "output-twice": ["sum", "sum"]}.items():
        document = {"inputs": [a, b], "outputs": [{"name": output} for output in outputs]}
        yield Request(f"unfit/{name}", "B8", infer("sums", document))
    yield Request("unfit/unknown-model", "6.3", infer("nobody", {"inputs": [x32()]}))
    yield Request("unfit/unknown-version", "6.3", infer("echo_fp32/versions/9", {"inputs": [x32()]}))
    outside = {"inputs": [tensor("ids", "INT64", [1, 1], [9])]}
    yield Request("unfit/model-says-no", "6.3", infer("lookup", outside))
    inside = {"inputs": [tensor("ids", "INT64", [2, 1], [3, 0])]}
    yield Request("unfit/after-the-refusal", "the model still answers", infer("lookup", inside))
