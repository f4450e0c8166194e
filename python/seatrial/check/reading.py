"""The bytes of a model file: bounded, recognised, parsed. No runtime sees a byte before this and the rules of `external`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.check.findings import Finding, finding
from seatrial.contract import MODEL

__all__ = [
    "DTYPES",
    "ParsedModel",
    "graphs_of",
    "node_label",
    "nodes_of",
    "read_model",
    "sniff",
    "tensors_of",
]

# The wire format's own bound; whatever is larger must keep its weights beside the file.
MAX_MODEL_BYTES = (1 << 31) - 1

# ONNX element type -> name in the Open Inference Protocol.
DTYPES: dict[int, str] = {
    1: "FP32", 2: "UINT8", 3: "INT8", 4: "UINT16", 5: "INT16", 6: "INT32", 7: "INT64", 8: "BYTES",
    9: "BOOL", 10: "FP16", 11: "FP64", 12: "UINT32", 13: "UINT64", 16: "BF16",
}  # fmt: skip

PICKLE_HEAD_BYTES = 4096
_IMPORTS = {"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"}
_CALLS = {"REDUCE", "BUILD", "OBJ", "NEWOBJ", "NEWOBJ_EX", "INST"}

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PK\x03\x04", "a zip archive (a PyTorch checkpoint or a NumPy archive)"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"\x89HDF", "an HDF5 file (Keras)"),
    (0, b"GGUF", "a GGUF file"),
    (0, b"\x7fELF", "a shared library or program"),
    (0, b"version https://git-lfs", "a Git LFS pointer; the content was never fetched"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\xfd7zXZ", "an xz archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"(\xb5/\xfd", "a zstd archive"),
    (4, b"ORTM", "an ORT-format model, which is made for one machine"),
    (4, b"TFL3", "a TensorFlow Lite model"),
)


@dataclass(frozen=True)
class ParsedModel:
    """A model file as it was parsed: `proto` without external data, and the size of the file."""

    path: Path
    proto: Any
    size_bytes: int


def read_model(path: Path, file: str = MODEL) -> ParsedModel | Finding:
    """The parsed model, or why it is none. `file` is the name to give in the finding."""
    try:
        size = path.stat().st_size
        if size > MAX_MODEL_BYTES:
            text = f"`{file}` has {size} bytes, one protobuf takes {MAX_MODEL_BYTES}"
            return finding("MOD003", file, text)
        raw = path.read_bytes()
    except OSError as error:
        return finding("PKG004", file, f"`{file}` cannot be read: {error.strerror}")
    what = sniff(raw)
    if what is not None:
        return finding("MOD001", file, f"`{file}` is no ONNX model but {what}")
    return _parse(path, file, raw)


def sniff(raw: bytes) -> str | None:
    """What bytes are that are surely no ONNX model; None when they may be one."""
    if not raw:
        return "an empty file"
    for offset, magic, what in _MAGIC:
        if raw[offset : offset + len(magic)] == magic:
            return what
    if is_pickle(raw):
        return "a Python pickle, which runs code when it is loaded"
    if len(raw) > 9 and int.from_bytes(raw[:8], "little") <= len(raw) - 8 and raw[8:9] == b"{":
        return "a safetensors file"
    if raw[:64].lstrip()[:1] in (b"<", b"{", b"#"):
        return "a text"
    return None


def is_pickle(raw: bytes) -> bool:
    """Whether the first bytes read as instructions of a pickle. Nothing is executed, and only the head is read.

    With a protocol header a few valid instructions are enough. Without one the stream must import something and
    call it or end, since a word list may begin like an import. An instruction that takes from the empty stack
    cannot be the first, which lets a table with a heading such as `score` pass.
    """
    import pickletools

    names: list[str] = []
    try:
        for opcode, _, _ in pickletools.genops(raw[:PICKLE_HEAD_BYTES]):
            if not names and opcode.stack_before:
                return False
            names.append(opcode.name)
    except (ValueError, UnicodeDecodeError, OverflowError, IndexError):
        pass
    if not names:
        return False
    ended = names[-1] == "STOP"
    if names[0] == "PROTO" and 0x02 <= raw[1] <= 0x05:
        return ended or len(names) > 3
    return bool(_IMPORTS & set(names)) and (ended or bool(_CALLS & set(names)))


def _parse(path: Path, file: str, raw: bytes) -> ParsedModel | Finding:
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        proto = onnx.ModelProto.FromString(raw)
    except (DecodeError, ValueError, RecursionError) as error:
        return finding("MOD001", file, f"`{file}` is no ONNX model: {error!s:.100}")
    if not proto.HasField("graph") or not proto.graph.output or proto.ir_version <= 0:
        return finding("MOD001", file, f"`{file}` is no ONNX model: it holds no graph with an output")
    problem = text_problem(proto)
    if problem is not None:
        return finding("MOD002", file, problem)
    return ParsedModel(path, proto, len(raw))


def text_problem(proto: Any) -> str | None:
    """Why a text in the model cannot be used: it is not UTF-8, or an input's or output's name cannot be written."""
    waiting = [proto]
    while waiting:
        for field, content in waiting.pop().ListFields():
            single = isinstance(content, str | bytes) or hasattr(content, "ListFields")
            values = [content] if single else content
            if field.message_type is not None:
                waiting.extend(values)
            elif field.type == field.TYPE_STRING and not all(isinstance(v, str) for v in values):
                return f"a text in `{field.full_name}` is not UTF-8"
    names = [v.name for v in (*proto.graph.input, *proto.graph.output)]
    bad = next((n for n in names if not n or re.search(r"[\x00-\x1f\x7f]", n)), None)
    return None if bad is None else f"an input or output has the name `{bad!r:.60}`"


def graphs_of(graph: Any) -> Iterator[Any]:
    """The graph and every graph inside its nodes (If, Loop, Scan)."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield current
        for node in current.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    waiting.append(attribute.g)
                waiting.extend(attribute.graphs)


def nodes_of(graph: Any) -> Iterator[Any]:
    """Every node, those of inner graphs included."""
    for inner in graphs_of(graph):
        yield from inner.node


def tensors_of(proto: Any) -> Iterator[Any]:
    """Every stored tensor: initializers, sparse ones, and those in attributes, functions included."""
    for graph in graphs_of(proto.graph):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        yield from _attribute_tensors(graph.node)
    for function in proto.functions:
        yield from _attribute_tensors(function.node)


def _attribute_tensors(nodes: Any) -> Iterator[Any]:
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in (*attribute.sparse_tensors, attribute.sparse_tensor):
                yield from (sparse.values, sparse.indices)


def node_label(node: Any) -> str:
    """How to call a node: its operator, and its name or, without one, what it makes."""
    name = node.name or (f"-> {node.output[0]}" if node.output else "without a name")
    return f"{node.op_type} {name}"
