"""What differs between two answers, in words that stand in `differences.yaml`. Pure: answers in, sentences out.

Texts of errors are free: both sides must give one, what it says is their own. Tensor values are compared in the width of
their datatype, so that `0.1` and `0.10000000149011612` are the same FP32.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.conformance.pairs import KEPT_HEADERS, Answer

__all__ = ["Listed", "differences", "documents_differ", "read_listed", "unexplained"]

NARROW = {"FP16": np.float16, "FP32": np.float32}


@dataclass(frozen=True)
class Listed:
    """Intended differences: sentences of `differences`, the pairs that show every one of them, and why.

    Pairs are patterns; one that begins with `!` takes names out again.
    """

    differs: tuple[str, ...]
    pairs: tuple[str, ...]
    why: str

    def names(self, known: Iterable[str]) -> list[str]:
        """Those of the known pairs that are meant."""
        out = [pattern[1:] for pattern in self.pairs if pattern.startswith("!")]
        inside = [pattern for pattern in self.pairs if not pattern.startswith("!")]
        matches = lambda name, patterns: any(fnmatch.fnmatchcase(name, p) for p in patterns)  # noqa: E731
        return [name for name in known if matches(name, inside) and not matches(name, out)]


def read_listed(file: Path) -> dict[str, list[Listed]]:
    """The reviewed list, by protocol."""
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {
        protocol: [Listed(tuple(e["differs"]), tuple(e["pairs"]), e["why"]) for e in entries]
        for protocol, entries in content.items()
    }


def unexplained(found: dict[str, list[str]], listed: Iterable[Listed]) -> list[str]:
    """What speaks against the list: differences found and not listed, and listed ones that were not found."""
    explained: set[tuple[str, str]] = set()
    complaints = []
    for entry in listed:
        for pattern in entry.pairs:
            if not fnmatch.filter(found, pattern.removeprefix("!")):
                complaints.append(f"listed: `{pattern}` is no pair ({entry.why})")
        for name, sentence in itertools.product(entry.names(found), entry.differs):
            explained.add((name, sentence))
            if sentence not in found[name]:
                complaints.append(f"listed: `{name}` no longer differs: {sentence}")
    for name, sentences in found.items():
        complaints += [f"unlisted: `{name}`: {s}" for s in sentences if (name, s) not in explained]
    return complaints


def differences(theirs: Answer, ours: Answer) -> list[str]:
    """What differs between Triton's answer and ours."""
    found = [] if theirs.status == ours.status else [f"status {theirs.status} -> {ours.status}"]
    for name in KEPT_HEADERS:
        old, new = theirs.headers.get(name), ours.headers.get(name)
        if old != new:
            found.append(f"{name} {old} -> {new}")
    if (theirs.document is None) != (ours.document is None):
        return [*found, f"body {_form(theirs)} -> {_form(ours)}"]
    found += documents_differ(theirs.document, ours.document)
    if theirs.binary != ours.binary:
        found.append(f"binary part {theirs.binary.hex()} -> {ours.binary.hex()}")
    return found


def _form(answer: Answer) -> str:
    if answer.document is not None:
        return "JSON"
    return "bytes" if answer.binary else "empty"


def _kind(value: Any) -> str:
    return {dict: "object", list: "list"}.get(type(value), "value")


def documents_differ(theirs: Any, ours: Any) -> list[str]:
    """What differs between two JSON documents, by path."""
    if theirs is None and ours is None:
        return []
    theirs, ours = _without_text(theirs), _without_text(ours)
    return list(dict.fromkeys(_walk(_in_own_width(theirs), _in_own_width(ours), "")))


def _without_text(document: Any) -> Any:
    given = isinstance(document, dict) and isinstance(document.get("error"), str) and document["error"] != ""
    return document | {"error": "<text>"} if given else document


def _walk(theirs: Any, ours: Any, path: str) -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        yield from (f"{path}/{key} missing" for key in theirs if key not in ours)
        yield from (f"{path}/{key} added" for key in ours if key not in theirs)
        for key in (key for key in theirs if key in ours):
            yield from _walk(theirs[key], ours[key], f"{path}/{key}")
    elif _are_records(theirs) and _are_records(ours) and len(theirs) == len(ours):
        for old, new in zip(theirs, ours, strict=True):
            yield from _walk(old, new, f"{path}/*")
    elif path.endswith("/extensions"):
        yield from (f"{path} `{name}` missing" for name in theirs if name not in ours)
        yield from (f"{path} `{name}` added" for name in ours if name not in theirs)
    elif isinstance(theirs, dict | list) and not isinstance(ours, type(theirs)):
        yield f"{path} {_kind(theirs)} -> {_kind(ours)}"
    elif theirs != ours or type(theirs) is not type(ours):
        yield f"{path}: {_show(theirs)} -> {_show(ours)}"


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(entry, dict) for entry in value)


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _in_own_width(document: Any) -> Any:
    if not isinstance(document, dict) or not isinstance(document.get("outputs"), list):
        return document
    return document | {"outputs": [_tensor(output) for output in document["outputs"]]}


def _tensor(output: dict[str, Any]) -> dict[str, Any]:
    narrow, data = NARROW.get(str(output.get("datatype"))), output.get("data")
    if narrow is None or data is None:
        return output
    return output | {"data": [float(narrow(v)) if isinstance(v, int | float) else v for v in data]}
