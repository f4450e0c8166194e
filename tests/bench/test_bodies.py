"""Bodies from samples: JSON as it stands, binary as the tensor extension says, and the file the generator reads."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tritonclient.http as triton

from seatrial.bench import Body, binary_bodies, bodies, file_bodies, json_bodies
from seatrial.bench.bodies import write_bodies
from seatrial.errors import MissingError, UsageError


def request(datatype: str, data: list[Any], shape: list[int] | None = None) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "datatype": datatype, "shape": shape or [len(data)], "data": data}]}


def test_json_bodies_are_the_samples() -> None:
    sample = request("FP32", [[1.5, "NaN"], [0.1, 3]], [2, 2])
    (body,) = json_bodies([sample])
    assert json.loads(body.data) == sample
    assert body.headers == (("Content-Type", "application/json"),)


def test_bytes_that_json_cannot_carry_are_refused_with_the_cure() -> None:
    with pytest.raises(UsageError, match="sample 2 holds bytes in `x`") as caught:
        json_bodies([request("INT8", [1]), request("BYTES", [{"base64": "/w=="}])])
    assert "--binary" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("datatype", "values", "expected"),
    [
        ("BOOL", [True, False], np.array([True, False])),
        ("UINT8", [0, 255], np.array([0, 255], "u1")),
        ("INT64", [-(2**63), 2**63 - 1], np.array([-(2**63), 2**63 - 1], "<i8")),
        ("UINT64", [0, 2**64 - 1], np.array([0, 2**64 - 1], "<u8")),
        ("FP16", [1.5, "NaN"], np.array([1.5, np.nan], "<f2")),
        ("FP32", [[0.1, "-Infinity"]], np.array([0.1, -np.inf], "<f4")),
        ("FP64", [0.1], np.array([0.1], "<f8")),
        ("BF16", [0.1, 1e39, "NaN", -2.71828, 3.0039], np.array([0.1, 1e39, np.nan, -2.71828, 3.0039], ml_dtypes.bfloat16)),
    ],
)  # fmt: skip
def test_binary_tensors_hold_the_same_bits(datatype: str, values: list[Any], expected: Any) -> None:
    with np.errstate(over="ignore"):
        (body,) = binary_bodies([request(datatype, values)])
    head_length = int(dict(body.headers)["Inference-Header-Content-Length"])
    head = json.loads(body.data[:head_length])
    blob = body.data[head_length:]
    assert head["inputs"][0]["parameters"] == {"binary_data_size": len(blob)}
    assert "data" not in head["inputs"][0]
    if datatype != "BF16":
        assert blob == expected.tobytes()
    else:
        got = np.frombuffer(blob, ml_dtypes.bfloat16)
        assert np.array_equal(got, expected, equal_nan=True)


def test_binary_strings_equal_those_of_tritonclient() -> None:
    values = ["", "naïve", {"base64": "/wA="}]
    (body,) = binary_bodies([request("BYTES", values)])
    tensor = triton.InferInput("x", [3], "BYTES")
    tensor.set_data_from_numpy(np.array([b"", "naïve".encode(), b"\xff\x00"], dtype=object))
    theirs, head_length = triton.InferenceServerClient.generate_request_body([tensor])
    ours = int(dict(body.headers)["Inference-Header-Content-Length"])
    assert body.data[ours:] == theirs[head_length:]


def test_values_outside_their_type_are_named() -> None:
    with pytest.raises(UsageError, match="input `x` cannot be written as UINT8"):
        binary_bodies([request("UINT8", [300])])


def test_files_take_their_type_from_their_name(tmp_path: Path) -> None:
    for name in ("a.json", "b.bin"):
        (tmp_path / name).write_bytes(name.encode())
    one, two = file_bodies([tmp_path / "a.json", tmp_path / "b.bin"])
    assert (one.data, dict(one.headers)["Content-Type"]) == (b"a.json", "application/json")
    assert dict(two.headers)["Content-Type"] == "application/octet-stream"
    with pytest.raises(MissingError, match="cannot be read"):
        file_bodies([tmp_path / "absent"])


def test_the_file_is_laid_out_as_documented(tmp_path: Path) -> None:
    write_bodies([Body(b"xyz", (("A", "b"), ("C", "d"))), Body()], tmp_path / "bodies.bin")
    head = b"A: b\r\nC: d\r\n"
    assert (tmp_path / "bodies.bin").read_bytes() == struct.pack("<II", len(head), 3) + head + b"xyz" + bytes(
        8
    )


def test_a_body_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LARGEST_BODY_BYTES", 1000)
    with pytest.raises(UsageError, match="`/dev/zero` has more than 1000 bytes"):
        file_bodies([Path("/dev/zero")])
