"""What people hand to `seatrial init --sample`: request lines, one JSON object, or a NumPy archive of arrays."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

from seatrial.check.facts import GraphTensor
from seatrial.check.tensors import numpy_type, to_wire, wire_fault
from seatrial.contract import WireRequest, fail, read_lines
from seatrial.errors import ContractError

__all__ = ["take_samples"]

MAX_SAMPLE_BYTES = 1 << 30
MAX_ROWS = 1000


def take_samples(sample: Path, inputs: tuple[GraphTensor, ...], target: Path) -> int:
    """Writes the samples as request lines to `target` and returns how many there are."""
    if not sample.is_file():
        raise ContractError(
            f"there is no sample file `{sample}`", hint="give request lines, a .json or an .npz"
        )
    if sample.stat().st_size > MAX_SAMPLE_BYTES:
        raise ContractError(
            f"`{sample.name}` is larger than {MAX_SAMPLE_BYTES} bytes", hint="give fewer samples"
        )
    if sample.suffix == ".npz":
        lines = _from_arrays(_load_npz(sample), inputs, sample.name)
        target.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    elif sample.suffix == ".json":
        lines = _from_json(sample, inputs)
        target.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    else:
        shutil.copyfile(sample, target)
    return _check_lines(target, sample.name, inputs)


def _check_lines(target: Path, called: str, inputs: tuple[GraphTensor, ...]) -> int:
    """Every line must hold exactly the model's inputs; the first that does not is the error."""
    types = {t.name: t.datatype for t in inputs}
    n = 0
    for number, checked in read_lines(target.parent, target.name, WireRequest):
        if checked.value is None:
            raise fail(checked.problems)
        request: WireRequest = checked.value
        got = {t.name: t.datatype for t in request.inputs}
        if got != types:
            text = f"{called}:{number}: inputs {_said(got)}, the model takes {_said(types)}"
            raise ContractError(
                text, hint="name every input once, with its datatype", file=called, line=number
            )
        for tensor in request.inputs:
            fault = wire_fault(tensor.model_dump())
            if fault is not None:
                text = f"{called}:{number}: tensor `{tensor.name}`: {fault}"
                raise ContractError(text, hint="correct the line", file=called, line=number)
        n += 1
    if n == 0:
        raise ContractError(
            f"`{called}` holds no request", hint='one line is {"inputs": [{"name": ..., ...}]}'
        )
    return n


def _said(types: dict[str, Any]) -> str:
    return ", ".join(f"`{n}` {t}" for n, t in types.items()) or "nothing"


def _load_npz(sample: Path) -> dict[str, Any]:
    import numpy as np

    try:
        with zipfile.ZipFile(sample) as archive:
            unpacked = sum(e.file_size for e in archive.infolist())
        if unpacked > MAX_SAMPLE_BYTES:
            raise ContractError(f"`{sample.name}` unpacks to {unpacked} bytes", hint="give fewer samples")
        with np.load(sample, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        hint = "save plain arrays with `numpy.savez`; texts go into request lines"
        raise ContractError(f"`{sample.name}` is no archive of plain arrays: {error}", hint=hint) from error


def _from_json(sample: Path, inputs: tuple[GraphTensor, ...]) -> list[dict[str, Any]]:
    import numpy as np

    try:
        data = json.loads(sample.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ContractError(
            f"`{sample.name}` is no valid JSON: {error}", hint="give one JSON object"
        ) from error
    if isinstance(data, dict) and isinstance(data.get("inputs"), list):
        return [data]
    if not isinstance(data, dict):
        raise ContractError(
            f"`{sample.name}` holds no object", hint='give {"inputs": [...]} or {"name": array}'
        )
    types = {t.name: t.datatype for t in inputs}
    try:
        arrays = {n: np.array(v, dtype=object if types.get(n) == "BYTES" else None) for n, v in data.items()}
    except ValueError as error:
        raise ContractError(f"`{sample.name}`: rows of unequal length", hint="give request lines") from error
    return _from_arrays(arrays, inputs, sample.name)


def _from_arrays(
    arrays: dict[str, Any], inputs: tuple[GraphTensor, ...], called: str
) -> list[dict[str, Any]]:
    """One request for each row where all arrays have the same number of rows, else one request in all."""
    tensors = {t.name: t for t in inputs}
    if set(arrays) != set(tensors):
        text = f"`{called}` holds the arrays {sorted(arrays)}, the model takes {sorted(tensors)}"
        raise ContractError(text, hint="name every array like an input")
    cast = {n: _cast(a, tensors[n], called) for n, a in arrays.items()}
    rows = {a.shape[0] if a.ndim else None for a in cast.values()}
    free = all(t.dims and not isinstance(t.dims[0], int) for t in inputs)
    n = rows.pop() if len(rows) == 1 and free else None
    if not n:
        return [_request(cast, tensors)]
    return [_request({k: a[i : i + 1] for k, a in cast.items()}, tensors) for i in range(min(n, MAX_ROWS))]


def _cast(array: Any, tensor: GraphTensor, called: str) -> Any:
    import numpy as np

    wanted = numpy_type(str(tensor.datatype))
    same_family = array.dtype.kind == wanted.kind or (array.dtype.kind in "ui" and wanted.kind in "ui")
    if array.dtype == wanted or tensor.datatype == "BYTES":
        return array.astype(object) if tensor.datatype == "BYTES" else array
    cast = array.astype(wanted)
    loses = array.dtype.kind in "ui" and not np.array_equal(cast.astype(array.dtype), array)
    if (not same_family and not (array.dtype.kind in "ui" and wanted.kind in "fV")) or loses:
        text = f"`{called}`: array `{tensor.name}` is {array.dtype}, the model takes {tensor.datatype}"
        raise ContractError(text, hint="save the array with the model's own type")
    return cast


def _request(arrays: dict[str, Any], tensors: dict[str, GraphTensor]) -> dict[str, Any]:
    return {"inputs": [to_wire(n, str(t.datatype), arrays[n]) for n, t in tensors.items()]}
