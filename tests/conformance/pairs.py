"""Golden pairs: a request as it went over the wire and what the real Triton answered, as JSON files that can be read.

The one list of volatile parts is `MASKS`: values behind these paths differ from run to run or by nature and are never
kept. Only the standard library is used, because the recorder runs in an environment of its own.
"""

from __future__ import annotations

import base64
import fnmatch
import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "GOLDEN",
    "KEPT_HEADERS",
    "MASKS",
    "Answer",
    "Pair",
    "decoded",
    "load_pairs",
    "mask",
    "pack",
    "save_pairs",
    "unpack",
    "write_groups",
]

LINE = 110
GOLDEN = Path(__file__).resolve().parent / "golden"

# Answer headers that carry meaning. Lengths follow from the body, dates and server names mean nothing.
KEPT_HEADERS = ("content-type", "content-encoding", "accept-encoding", "allow", "retry-after")

# Path pattern in a JSON answer -> placeholder. `*` is any key or index of a path.
MASKS = {
    "/version": "<version of the server>",
    "/model_version": "<version of the model>",
    "/versions/*": "<version of the model>",
    "/[0-9]*/version": "<version of the model>",
    "/models/*/version": "<version of the model>",
    "/infer_response/model_version": "<version of the model>",
    "/model_stats/*/version": "<version of the model>",
    "/model_stats/*/last_inference": "<time>",
    "/model_stats/*/inference_count": "<count>",
    "/model_stats/*/execution_count": "<count>",
    "/model_stats/*/inference_stats/*/count": "<count>",
    "/model_stats/*/inference_stats/*/ns": "<time>",
    "/model_stats/*/batch_stats": "<one entry for each size of batch>",
    "/model_stats/*/response_stats": "<one entry for each response of a stream>",
}


@dataclass(frozen=True)
class Answer:
    """An HTTP answer after transfer and content coding were undone. `document` is None where the body is no JSON."""

    status: int
    headers: dict[str, str]
    document: Any
    binary: bytes

    @classmethod
    def read(cls, status: int, headers: dict[str, str], body: bytes) -> Answer:
        """Splits the body where the protocol's length header says."""
        length = int(headers.get("inference-header-content-length", len(body)))
        text, binary = body[:length], body[length:]
        try:
            document, rest = json.loads(text), binary
        except ValueError:
            document, rest = None, body
        kept = {name: headers[name] for name in KEPT_HEADERS if name in headers}
        return cls(status, kept, mask(document), rest)


@dataclass(frozen=True)
class Pair:
    """One exchange. `request` holds every byte of it, request line and headers included."""

    name: str
    rule: str
    request: bytes
    answer: Answer = field(repr=False)


def mask(document: Any, path: str = "") -> Any:
    """The document with its volatile parts replaced by placeholders."""
    for pattern, placeholder in MASKS.items():
        if _matches(path, pattern):
            return placeholder
    if isinstance(document, dict):
        return {key: mask(value, f"{path}/{key}") for key, value in document.items()}
    if isinstance(document, list):
        return [mask(value, f"{path}/{index}") for index, value in enumerate(document)]
    return document


def _matches(path: str, pattern: str) -> bool:
    ours, theirs = path.split("/"), pattern.split("/")
    return len(ours) == len(theirs) and all(map(fnmatch.fnmatchcase, ours, theirs))


def decoded(body: bytes, coding: str | None) -> bytes:
    """The body without its content coding."""
    match coding:
        case "gzip":
            return gzip.decompress(body)
        case "deflate":
            return zlib.decompress(body)
    return body


def pack(data: bytes) -> str | dict[str, str]:
    """Bytes as text where they are text, else as base64."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    printable = all(c.isprintable() or c in "\r\n" for c in text)
    return text if printable else {"base64": base64.b64encode(data).decode()}


def unpack(packed: str | dict[str, str]) -> bytes:
    """What `pack` was given."""
    return packed.encode() if isinstance(packed, str) else base64.b64decode(packed["base64"])


def save_pairs(folder: Path, pairs: Iterable[Pair]) -> None:
    """Writes the pairs into a folder that `load_pairs` reads."""
    write_groups(folder, (_entry(pair) for pair in pairs))


def _entry(pair: Pair) -> dict[str, Any]:
    head, _, body = pair.request.partition(b"\r\n\r\n")
    answer = {"status": pair.answer.status, "headers": pair.answer.headers, "json": pair.answer.document}
    if pair.answer.binary:
        answer["binary"] = pack(pair.answer.binary)
    request = {"head": head.decode("latin-1").split("\r\n"), "body": pack(body)}
    return {"name": pair.name, "rule": pair.rule, "request": request, "answer": answer}


def write_groups(folder: Path, entries: Iterable[dict[str, Any]]) -> None:
    """Writes one file for each group of entries, the part of their names before the slash; removes other files."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        groups.setdefault(entry["name"].partition("/")[0], []).append(entry)
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.json"):
        stale.unlink()
    for group, members in groups.items():
        (folder / f"{group}.json").write_text(_lines(members) + "\n", encoding="utf-8")


def _lines(value: Any, indent: str = "") -> str:
    """JSON for people: what fits on a line stands on one, and so do lists of plain values."""
    short = json.dumps(value, ensure_ascii=False)
    nested = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict) for v in value))
    if not nested or len(indent) + len(short) <= LINE:
        return short
    inner, deeper = f"\n{indent} ", indent + " "
    if isinstance(value, dict):
        entries = [f"{json.dumps(key, ensure_ascii=False)}: {_lines(v, deeper)}" for key, v in value.items()]
        return "{" + inner + f",{inner}".join(entries) + f"\n{indent}}}"
    return "[" + inner + f",{inner}".join(_lines(v, deeper) for v in value) + f"\n{indent}]"


def load_pairs(folder: Path) -> list[Pair]:
    """All pairs of a folder, by file and then in the order in which they were recorded."""
    pairs = []
    for file in sorted(folder.glob("*.json")):
        for entry in json.loads(file.read_text(encoding="utf-8")):
            head = "\r\n".join(entry["request"]["head"]).encode("latin-1")
            given = entry["answer"]
            answer = Answer(given["status"], given["headers"], given["json"], unpack(given.get("binary", "")))
            request = head + b"\r\n\r\n" + unpack(entry["request"]["body"])
            pairs.append(Pair(entry["name"], entry["rule"], request, answer))
    return pairs
