"""Columns of any library as the few kinds that the native code takes: by way of Arrow, which all of them know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from seatrial.errors import UsageError

__all__ = ["as_columns"]

# Kind, a byte a row that is 0 without a value, 64-bit offsets, and values or items.
Cells = tuple[str, bytes | None, bytes | None, Any]


def as_columns(data: Any) -> tuple[int, list[tuple[str, Cells]]]:
    """The number of rows and the columns of a dict of arrays, a data frame or an Arrow table."""
    columns = {str(name): _array(str(name), column) for name, column in _columns(data).items()}
    lengths = {name: len(array) for name, array in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"`{name}` {n}" for name, n in lengths.items())
        raise UsageError(f"the columns have different lengths: {told}", hint="give each field a value a row")
    rows = next(iter(lengths.values()), 0)
    return rows, [(name, _cells(name, array)) for name, array in columns.items()]


def _columns(data: Any) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        return data
    if isinstance(data, pa.Table | pa.RecordBatch):
        return dict(zip(data.schema.names, data.columns, strict=True))
    if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
        return {str(name): data[name] for name in data.columns}
    raise UsageError(
        f"data of type `{type(data).__name__}` is none of the known",
        hint="give a list of dicts, a dict of arrays, a pandas data frame or an Arrow table",
    )


def _array(name: str, column: Any) -> pa.Array:
    try:
        if isinstance(column, pa.ChunkedArray):
            return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        if isinstance(column, pa.Array):
            return column
        if isinstance(column, np.ndarray) and column.ndim > 1:
            column = list(column)
        made = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(
            f"field `{name}`: the column has no single type: {error}", hint="give values of one type"
        ) from error
    return pa.concat_arrays(made.chunks) if isinstance(made, pa.ChunkedArray) else made


def _cells(name: str, array: pa.Array) -> Cells:
    if kinds.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    valid = None if array.null_count == 0 else _bytes(array.is_valid(), "u1")
    if kinds.is_null(kind):
        return "nothing", None, None, None
    if kinds.is_boolean(kind):
        return "bool", valid, None, _bytes(array.fill_null(False), "u1")
    if kinds.is_uint64(kind):
        return "uint", valid, None, _bytes(array.fill_null(0), "u8")
    if kinds.is_integer(kind):
        return "int", valid, None, _bytes(array.fill_null(0), "i8")
    if kinds.is_floating(kind):
        return "float", valid, None, _bytes(array.cast(pa.float64()).fill_null(0.0), "f8")
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return "text", valid, *_texts(array.cast(pa.large_string()))
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        lists = array.cast(pa.large_list(kind.value_type))
        return "list", valid, _bytes(lists.offsets, "i8"), _cells(name, lists.values)
    raise UsageError(
        f"field `{name}`: a column of type `{kind}` is none of the known",
        hint="give texts, numbers, booleans or lists of them; moments as seconds since 1970 or ISO 8601 text",
    )


def _texts(array: pa.Array) -> tuple[bytes, bytes]:
    """Offsets and characters; an array may be a piece of a larger one."""
    if len(array) == 0:
        return bytes(8), b""
    _, offsets, characters = array.buffers()
    own = np.frombuffer(offsets, dtype="i8")[array.offset : array.offset + len(array) + 1]
    return own.tobytes(), b"" if characters is None else characters.to_pybytes()


def _bytes(array: pa.Array, dtype: str) -> bytes:
    content: bytes = array.to_numpy(zero_copy_only=False).astype(dtype, copy=False).tobytes()
    return content
