"""Bodies of requests: from a package's samples as JSON or with the binary tensor extension, or from files."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.bench.plan import Body
from seatrial.errors import MissingError, UsageError

__all__ = ["binary_bodies", "file_bodies", "json_bodies", "write_bodies"]

# A file may be a pipe or a device that never ends.
LARGEST_BODY_BYTES = 1 << 30

JSON_TYPE = ("Content-Type", "application/json")

# Protocol name -> the little-endian type of numpy. BF16 and BYTES are written by hand.
NUMPY_TYPES = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8",
    "INT8": "i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8",
    "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip


def json_bodies(requests: Iterable[Mapping[str, Any]]) -> tuple[Body, ...]:
    """One JSON body for each request in Open Inference Protocol form."""
    return tuple(_json_body(number, request) for number, request in enumerate(requests, 1))


def binary_bodies(requests: Iterable[Mapping[str, Any]]) -> tuple[Body, ...]:
    """The same tensors behind a JSON head, and the answer asked for in the same form."""
    return tuple(_binary_body(request) for request in requests)


def file_bodies(paths: Sequence[Path], content_type: str | None = None) -> tuple[Body, ...]:
    """One body for each file; the content type follows `.json` unless it is given."""
    return tuple(_file_body(path, content_type) for path in paths)


def write_bodies(bodies: Sequence[Body], path: Path) -> None:
    """Writes the `bodies.bin` of ARCHITECTURE.md."""
    with path.open("wb") as file:
        for body in bodies:
            head = "".join(f"{name}: {value}\r\n" for name, value in body.headers).encode("latin-1")
            file.write(struct.pack("<II", len(head), len(body.data)) + head + body.data)


def _json_body(number: int, request: Mapping[str, Any]) -> Body:
    for tensor in request["inputs"]:
        if tensor["datatype"] == "BYTES" and any(isinstance(v, Mapping) for v in _flat(tensor["data"])):
            raise UsageError(
                f"sample {number} holds bytes in `{tensor['name']}` that JSON cannot carry",
                hint="send the samples with --binary",
            )
    text = json.dumps(request, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Body(text.encode(), (JSON_TYPE,))


def _binary_body(request: Mapping[str, Any]) -> Body:
    heads, blobs = [], []
    for tensor in request["inputs"]:
        blob = _tensor_bytes(tensor)
        head = {key: value for key, value in tensor.items() if key != "data"}
        heads.append(
            {**head, "parameters": {**(tensor.get("parameters") or {}), "binary_data_size": len(blob)}}
        )
        blobs.append(blob)
    parameters = {**(request.get("parameters") or {}), "binary_data_output": True}
    text = json.dumps({**request, "parameters": parameters, "inputs": heads}, separators=(",", ":")).encode()
    headers = (
        ("Content-Type", "application/octet-stream"),
        ("Inference-Header-Content-Length", str(len(text))),
    )
    return Body(text + b"".join(blobs), headers)


def _tensor_bytes(tensor: Mapping[str, Any]) -> bytes:
    import numpy as np

    datatype, values = tensor["datatype"], list(_flat(tensor["data"]))
    if datatype == "BYTES":
        items = [_element_bytes(value) for value in values]
        return b"".join(struct.pack("<I", len(item)) + item for item in items)
    try:
        if datatype == "BF16":
            return _bfloat16_bytes(values)
        # Samples write the floats that JSON lacks as the texts NaN, Infinity and -Infinity; float() reads them.
        numbers = [float(v) if isinstance(v, str) else v for v in values]
        return np.array(numbers, dtype=NUMPY_TYPES[datatype]).tobytes()
    except (KeyError, ValueError, OverflowError, TypeError) as error:
        raise UsageError(
            f"input `{tensor['name']}` cannot be written as {datatype}: {error}",
            hint="`seatrial check` holds the samples against the signature",
        ) from error


def _bfloat16_bytes(values: Iterable[Any]) -> bytes:
    import numpy as np

    floats = np.array([float(v) for v in values], dtype="<f4")
    bits = floats.view("<u4")
    # Round to nearest, ties to even; a NaN keeps its upper bits and stays one.
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return bytes(np.where(np.isnan(floats), (bits >> 16) | 0x40, rounded).astype("<u2").tobytes())


def _element_bytes(value: Any) -> bytes:
    return base64.b64decode(value["base64"]) if isinstance(value, Mapping) else str(value).encode()


def _flat(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        for item in data:
            yield from _flat(item)
    else:
        yield data


def _file_body(path: Path, content_type: str | None) -> Body:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BODY_BYTES + 1)
    except OSError as error:
        raise MissingError(f"the body `{path}` cannot be read: {error.strerror}") from error
    if len(data) > LARGEST_BODY_BYTES:
        raise UsageError(f"the body `{path}` has more than {LARGEST_BODY_BYTES} bytes")
    kind = content_type or ("application/json" if path.suffix == ".json" else "application/octet-stream")
    return Body(data, (("Content-Type", kind),))
