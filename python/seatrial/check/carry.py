"""Carrying a model and its external data into a package: copies, never links, and only what lies with the model.

A model cache keeps links to files in one blob folder. Such links are followed, but only into the folder of the
model as it was given or as its own link resolves, so that a link cannot bring in a file from elsewhere.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

from seatrial.check.external import extent_findings, external_tensors, location_fault
from seatrial.check.findings import Finding, finding

__all__ = ["copy_external", "external_sources"]


def external_sources(model: Path, proto: Any) -> dict[str, Path] | list[Finding]:
    """Location -> real file for all external data of a model, or what is wrong."""
    tensors = external_tensors(proto)
    if isinstance(tensors, str):
        return [finding("EXT004", model.name, tensors)]
    groups = defaultdict(list)
    for tensor in tensors:
        groups[tensor.location].append(tensor)
    sources: dict[str, Path] = {}
    found: list[Finding] = []
    for location, group in groups.items():
        fault = location_fault(location)
        if fault is not None:
            found.append(finding("EXT001", model.name, f"tensor `{group[0].name}`: {fault}"))
            continue
        real = _real_file(model, location)
        if isinstance(real, Finding):
            found.append(real)
            continue
        found += extent_findings(group, real.stat().st_size, model.name)
        sources[location] = real
    return found or sources


def copy_external(sources: dict[str, Path], folder: Path) -> None:
    """Copies every file to its location below `folder`."""
    for location, real in sources.items():
        target = folder.joinpath(*location.replace("\\", "/").split("/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(real, target)


def _real_file(model: Path, location: str) -> Path | Finding:
    homes = list(dict.fromkeys([model.parent.resolve(), model.resolve().parent]))
    candidates = [model.parent / location, model.resolve().parent / location]
    there = next((c for c in candidates if c.exists()), None)
    if there is None:
        text = f"external data file `{location}` is missing beside `{model.name}`"
        return finding("EXT002", model.name, text)
    real = there.resolve()
    if not real.is_file():
        return finding("EXT003", model.name, f"external data `{location}` is no regular file")
    if not any(real.is_relative_to(home) for home in homes):
        text = f"external data `{location}` is a link to another folder"
        return finding(
            "EXT003", model.name, text, hint="copy the data file beside the model and run init again"
        )
    return real
