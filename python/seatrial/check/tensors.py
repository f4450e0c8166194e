"""Arrays and their form in the Open Inference Protocol's JSON, both ways, exact for integers and for every float."""

from __future__ import annotations

import base64
import binascii
import math
from typing import TYPE_CHECKING, Any

from seatrial.errors import ContractError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["flat_values", "from_wire", "numpy_type", "to_wire", "wire_fault"]

_NUMPY = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "FP32": "float32", "FP64": "float64", "BYTES": "object",
}  # fmt: skip
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_INT_BITS = {"INT8": 8, "INT16": 16, "INT32": 32, "INT64": 64}
_UINT_BITS = {"UINT8": 8, "UINT16": 16, "UINT32": 32, "UINT64": 64}


def numpy_type(datatype: str) -> Any:
    """The NumPy type of a protocol type; BF16 comes from ml_dtypes."""
    import numpy as np

    if datatype == "BF16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_NUMPY[datatype])


def from_wire(tensor: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The array of a tensor in wire form. Raises `ContractError` with the reason when the data does not fit."""
    import numpy as np

    fault = wire_fault(tensor)
    if fault is not None:
        raise ContractError(f"tensor `{tensor.get('name', '')}`: {fault}")
    values = [_value(v, tensor["datatype"]) for v in flat_values(tensor["data"])]
    array = np.empty(len(values), dtype=numpy_type(tensor["datatype"]))
    for i, value in enumerate(values):
        array[i] = value
    return array.reshape(tensor["shape"])


def wire_fault(tensor: dict[str, Any]) -> str | None:
    """Why a tensor's shape and data do not fit each other or the datatype; None when they do."""
    shape, datatype = tensor["shape"], tensor["datatype"]
    if any(d < 0 for d in shape):
        return f"the shape {shape} holds a negative size"
    values = flat_values(tensor["data"])
    if len(values) != math.prod(shape):
        return f"{len(values)} values for the shape {shape}, which takes {math.prod(shape)}"
    bad = next((v for v in values if not _fits(v, datatype)), None)
    if bad is not None or None in values:
        return f"the value `{bad!r:.40}` is no {datatype}"
    return None


def to_wire(name: str, datatype: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """A tensor in wire form with flat data."""
    flat = array.reshape(-1)
    data: list[Any]
    if datatype == "BYTES":
        data = [_text(v) for v in flat.tolist()]
    elif datatype in ("FP16", "BF16", "FP32", "FP64"):
        data = [_float(v, datatype) for v in flat]
    else:
        data = flat.tolist()
    return {"name": name, "datatype": datatype, "shape": list(array.shape), "data": data}


def flat_values(data: Any) -> list[Any]:
    """The values of flat or nested data, row by row."""
    out: list[Any] = []
    waiting = [iter(data)]
    while waiting:
        try:
            item = next(waiting[-1])
        except StopIteration:
            waiting.pop()
            continue
        if isinstance(item, list):
            waiting.append(iter(item))
        else:
            out.append(item)
    return out


def _fits(value: Any, datatype: str) -> bool:
    if datatype == "BOOL":
        return isinstance(value, bool)
    if datatype == "BYTES":
        return isinstance(value, str) or (isinstance(value, dict) and _decoded(value) is not None)
    if isinstance(value, bool):
        return False
    if datatype in _INT_BITS:
        half = 1 << (_INT_BITS[datatype] - 1)
        return isinstance(value, int) and -half <= value < half
    if datatype in _UINT_BITS:
        return isinstance(value, int) and 0 <= value < 1 << _UINT_BITS[datatype]
    return isinstance(value, int | float) or value in _SPECIAL


def _value(value: Any, datatype: str) -> Any:
    if datatype == "BYTES":
        return _decoded(value) if isinstance(value, dict) else value
    if datatype in ("FP16", "BF16", "FP32", "FP64"):
        return _SPECIAL[value] if isinstance(value, str) else float(value)
    return value


def _decoded(value: dict[str, Any]) -> bytes | None:
    try:
        return base64.b64decode(value["base64"], validate=True) if set(value) == {"base64"} else None
    except (binascii.Error, TypeError, ValueError):
        return None


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode("ascii")}
    return str(value)


def _float(value: Any, datatype: str) -> Any:
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    # The shortest text that reads back as the same float of this width.
    return number if datatype in ("FP64", "BF16") else float(str(value))
