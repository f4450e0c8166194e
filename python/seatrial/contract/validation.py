"""From data to a model: every schema error as a problem with file, line, what came and what was expected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from seatrial.contract.source import KeyPath, Problem, Source

__all__ = ["Checked", "validate"]

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

MAX_PROBLEMS = 50


@dataclass(frozen=True)
class Checked(Generic[T]):
    """A value, or the problems that kept it from being one."""

    value: T | None
    problems: list[Problem] = field(default_factory=list)


def validate(model: type[M], source: Source) -> Checked[M]:
    """The model of a file's data."""
    data = {} if source.data is None else source.data
    try:
        return Checked(model.model_validate(data))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=True)
        problems = [_problem(model, source, dict(e)) for e in found[:MAX_PROBLEMS]]
        return Checked(None, sorted(problems, key=lambda p: p.line or 0))


def _problem(model: type[BaseModel], source: Source, error: dict[str, Any]) -> Problem:
    path = _real_path(source, error["loc"])
    shown = _dotted(path)
    came, kind = error.get("input"), error["type"]
    line = source.line(path)
    if kind == "extra_forbidden":
        allowed = "remove it, mend its spelling, or begin it with `x-`"
        return Problem("unknown-key", source.file, line, f"`{shown}` is not a key of this file", allowed)
    if kind == "missing":
        return Problem(
            "missing-key", source.file, source.line(path[:-1]), f"`{shown}` is missing", f"add `{path[-1]}`"
        )
    if path == ("apiVersion",):
        text = f"`apiVersion` is `{came!s:.40}`, expected `seatrial/v1`"
        return Problem("api-version", source.file, line, text, "write `apiVersion: seatrial/v1`")
    where = f"`{shown}`" if shown else "the file"
    said = error["msg"].removeprefix("Value error, ")
    text = f"{where}: {said[0].lower()}{said[1:]}"
    if kind not in ("quantity", "bounds", "range", "labels", "twice"):
        text += f", got {_brief(came)}"
    return Problem("schema", source.file, line, text, _cure(kind, came))


def _cure(kind: str, came: object) -> str:
    if kind == "string_type" and isinstance(came, int | float):
        return f'put it in quotes: "{came}"'
    if kind == "quantity":
        return "write a number and its unit, without a sign"
    if came is None:
        return "fill it in, or remove the key where it may be left out"
    return "the schema of each file is in `schemas/` and in the reference"


def _real_path(source: Source, location: tuple[str | int, ...]) -> KeyPath:
    """The location without the tags that unions put in; a last missing key is kept."""
    path: KeyPath = ()
    for i, step in enumerate(location):
        if (*path, step) in source.lines or (i == len(location) - 1 and _is_key(step)):
            path = (*path, step)
    return path


def _is_key(step: str | int) -> bool:
    return (
        isinstance(step, str)
        and step.isidentifier()
        and step not in ("number", "fixed", "free", "int", "float", "str")
    )


def _dotted(path: KeyPath) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return "a block of keys"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "nothing" if value is None else f"`{value!s:.60}`"
