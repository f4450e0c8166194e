"""YAML of a package: plain data, read under bounds, with the line of every key, so that findings can point at it.

Scalars follow the YAML 1.2 core schema (`no` is a text, `1:30` is a text); nothing is ever constructed but
dictionaries, lists, texts, numbers, booleans and null.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from seatrial.errors import ContractError

__all__ = ["MAX_YAML_BYTES", "Problem", "Source", "fail", "parse_yaml", "read_text", "read_yaml"]

MAX_YAML_BYTES = 1 << 20
MAX_NODES = 50_000
MAX_DEPTH = 32

KeyPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a package file. `file` is relative to the package, `line` counts from 1."""

    kind: str
    file: str
    line: int | None
    text: str
    hint: str

    def where(self) -> str:
        """`file:line`, or the file alone."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


def fail(problems: list[Problem]) -> ContractError:
    """The error of a file that has these problems: the first one, and how many more there are."""
    first = problems[0]
    more = f" (and {len(problems) - 1} more, see `seatrial check`)" if len(problems) > 1 else ""
    return ContractError(
        f"{first.where()}: {first.text}{more}", hint=first.hint, file=first.file, line=first.line
    )


@dataclass(frozen=True)
class Source:
    """Data of a YAML file and the line of every key and item in it."""

    file: str
    data: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """The line of a path, or of the nearest parent that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1 if not path else None)


class _RefusedError(Exception):
    def __init__(self, kind: str, mark: Any, text: str, hint: str) -> None:
        super().__init__(text)
        self.kind, self.mark, self.text, self.hint = kind, mark, text, hint


def read_text(root: Path, file: str, limit: int = MAX_YAML_BYTES) -> str | Problem:
    """The UTF-8 text of a package file of at most `limit` bytes."""
    try:
        with (root / file).open("rb") as stream:
            raw = stream.read(limit + 1)
    except FileNotFoundError:
        return Problem(
            "missing", file, None, f"`{file}` is missing", "`seatrial init` writes a draft of every file"
        )
    except OSError as error:
        return Problem(
            "unreadable", file, None, f"`{file}` cannot be read: {error.strerror}", "mend the file's rights"
        )
    if len(raw) > limit:
        text = f"`{file}` is larger than {limit} bytes"
        return Problem(
            "too-large", file, None, text, f"keep it below {limit} bytes; data belongs into samples/"
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return Problem("encoding", file, line, f"byte {error.start} is not UTF-8", "save the file as UTF-8")


def read_yaml(root: Path, file: str) -> Source | Problem:
    """The data of a YAML file of the package."""
    text = read_text(root, file)
    return text if isinstance(text, Problem) else parse_yaml(text, file)


def parse_yaml(text: str, file: str, first_line: int = 1) -> Source | Problem:
    """The data of a YAML text that begins on `first_line` of `file`."""
    offset = first_line - 1
    try:
        _measure(text)
        node = yaml.compose(text, Loader=_Loader)
        builder = _Builder(offset)
        data = builder.build(node, (), 0) if node is not None else None
    except _RefusedError as refused:
        return Problem(refused.kind, file, refused.mark.line + 1 + offset, refused.text, refused.hint)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "cannot be read"
        hint = "check the indentation, the quotes and the colons around this line"
        return Problem(
            "syntax", file, (mark.line + 1 if mark else 1) + offset, f"no valid YAML: {said}", hint
        )
    except yaml.YAMLError as error:
        at = text[: getattr(error, "position", 0)].count("\n") + 1 + offset
        return Problem(
            "syntax", file, at, "no valid YAML: a character that YAML forbids", "remove control characters"
        )
    return Source(file, data, builder.lines)


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars as YAML 1.2 does. Used for composing only, so that it constructs nothing."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


_NUMBER_START = list("-+.0123456789")
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]{1,25}$"), _NUMBER_START)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?$"),
    _NUMBER_START,
)


def _measure(text: str) -> None:
    """Refuses a text that is too deep or too large to compose, from the flat row of events."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _RefusedError(
                "bounds", event.start_mark, f"nested more than {MAX_DEPTH} levels deep", "flatten the file"
            )
        if nodes > MAX_NODES:
            raise _RefusedError(
                "bounds", event.start_mark, f"more than {MAX_NODES} values", "data belongs into samples/"
            )


class _Builder:
    """Turns composed nodes into plain data and notes where each stood."""

    def __init__(self, offset: int) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.offset = offset
        self.built = 0

    def build(self, node: yaml.Node, path: KeyPath, depth: int) -> Any:
        self.built += 1
        if self.built > MAX_NODES or depth > MAX_DEPTH:
            raise _RefusedError(
                "bounds", node.start_mark, "aliases expand beyond bounds", "write the values out"
            )
        self.lines.setdefault(path, node.start_mark.line + 1 + self.offset)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            _plain_tag(node, "seq")
            return [self.build(item, (*path, i), depth + 1) for i, item in enumerate(node.value)]
        return _scalar(node)

    def mapping(self, node: yaml.MappingNode, path: KeyPath, depth: int) -> dict[str, Any]:
        _plain_tag(node, "map")
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _RefusedError(
                    "syntax", key_node.start_mark, "a key is not a plain text", "write `key: value`"
                )
            key = str(key_node.value)
            if key in data:
                text = f"`{key}` stands twice in the same block"
                raise _RefusedError("duplicate", key_node.start_mark, text, "remove one of the two")
            self.lines[(*path, key)] = key_node.start_mark.line + 1 + self.offset
            data[key] = self.build(value_node, (*path, key), depth + 1)
        return data


def _plain_tag(node: yaml.Node, kind: str) -> None:
    if node.tag != f"tag:yaml.org,2002:{kind}":
        raise _RefusedError("tag", node.start_mark, f"the tag `{node.tag}` is not allowed", "remove the tag")


def _scalar(node: yaml.Node) -> Any:
    tag, value = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
    try:
        match tag:
            case "str":
                return value
            case "int":
                return int(value)
            case "float":
                return float(value)
            case "bool" if value in ("true", "false"):
                return value == "true"
            case "null":
                return None
    except ValueError:
        pass
    raise _RefusedError(
        "tag",
        node.start_mark,
        f"`{node.tag}` with the value `{value!s:.40}` is not allowed",
        "remove the tag",
    )
