"""The rules of external data, applied before any runtime opens a file: inside, regular, single-link, in bounds, apart."""

from __future__ import annotations

import stat
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.check.findings import Finding, finding
from seatrial.check.reading import tensors_of
from seatrial.contract import MODEL

__all__ = ["ExternalTensor", "external_findings", "external_tensors", "location_fault"]

EXTERNAL = 1  # TensorProto.EXTERNAL


@dataclass(frozen=True)
class ExternalTensor:
    """One tensor kept in another file. `length` is None when the model does not say."""

    name: str
    location: str
    offset: int
    length: int | None


def external_tensors(proto: Any) -> list[ExternalTensor] | str:
    """Every external tensor of a model, or what is wrong with a reference itself."""
    found = []
    for tensor in tensors_of(proto):
        if tensor.data_location != EXTERNAL and not tensor.external_data:
            continue
        entries = {e.key: e.value for e in tensor.external_data}
        try:
            offset, length = int(entries.get("offset") or 0), entries.get("length")
            size = None if length in (None, "") else int(str(length))
        except ValueError:
            return f"tensor `{tensor.name}`: offset or length is no number"
        if offset < 0 or (size is not None and size < 0):
            return f"tensor `{tensor.name}`: offset or length is negative"
        found.append(ExternalTensor(tensor.name, entries.get("location", ""), offset, size))
    return found


def external_findings(proto: Any, folder: Path, file: str = MODEL) -> list[Finding]:
    """Everything wrong with the external data of a model that lies in `folder`."""
    tensors = external_tensors(proto)
    if isinstance(tensors, str):
        return [finding("EXT004", file, tensors)]
    by_location: dict[str, list[ExternalTensor]] = defaultdict(list)
    for tensor in tensors:
        by_location[tensor.location].append(tensor)
    found: list[Finding] = []
    for location, group in by_location.items():
        fault = location_fault(location)
        if fault is not None:
            found.append(finding("EXT001", file, f"tensor `{group[0].name}`: {fault}"))
            continue
        found += _file_findings(folder, location, group, file)
    return found


def location_fault(location: str) -> str | None:
    """Why a location may not be used whatever lies there; None when it stays inside the folder."""
    parts = location.replace("\\", "/").split("/")
    if not location or "\x00" in location:
        return "external data without a location"
    if location.startswith(("/", "\\", "~")) or ":" in parts[0]:
        return f"external data at the absolute path `{location:.120}`"
    if ".." in parts:
        return f"external data at `{location:.120}`, which leaves the folder"
    return None


def _file_findings(folder: Path, location: str, group: list[ExternalTensor], file: str) -> list[Finding]:
    path = folder
    for part in location.replace("\\", "/").split("/"):
        path = path / part
        if path.is_symlink():
            return [finding("EXT003", file, f"external data `{location}` passes through a symbolic link")]
    if not path.exists():
        text = f"external data file `{location}` is missing, tensor `{group[0].name}` lies in it"
        return [finding("EXT002", file, text)]
    info = path.lstat()
    if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
        what = f"has {info.st_nlink} hard links" if stat.S_ISREG(info.st_mode) else "is no regular file"
        return [finding("EXT003", file, f"external data `{location}` {what}")]
    return extent_findings(group, info.st_size, file)


def extent_findings(group: list[ExternalTensor], size: int, file: str) -> list[Finding]:
    """Tensors that reach beyond a file of `size` bytes, or into each other."""
    found = []
    end, before = 0, ""
    for tensor in sorted(group, key=lambda t: (t.offset, t.length or 0)):
        length = size - tensor.offset if tensor.length is None else tensor.length
        if tensor.offset > size or tensor.offset + length > size:
            reach = f"bytes {tensor.offset} to {tensor.offset + max(length, 0)}"
            text = f"tensor `{tensor.name}` lies at {reach} of `{tensor.location}`, which has {size}"
            found.append(finding("EXT004", file, text))
            continue
        if tensor.offset < end and length > 0:
            text = f"tensors `{before}` and `{tensor.name}` overlap in `{tensor.location}`"
            found.append(finding("EXT005", file, text))
        if tensor.offset + length > end:
            end, before = tensor.offset + length, tensor.name
    return found
