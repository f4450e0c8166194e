"""Writes the report of one record in the formats that were asked for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from seatrial.errors import RecordError
from seatrial.records import Record
from seatrial.report.derive import Derived, derive
from seatrial.report.markdown import markdown
from seatrial.report.page import page
from seatrial.report.sections import document

__all__ = ["FORMATS", "Format", "render"]

Format = Literal["html", "md", "json"]
FORMATS: tuple[Format, ...] = ("html", "md", "json")


def render(
    record: Record, folder: Path, *, formats: Sequence[Format] = FORMATS, out: Path | None = None
) -> dict[str, Path]:
    """Writes `report.html`, `report.md` and `report.json` and gives their paths by format.

    `folder` is the record's, where its columns lie; the files go to `out`, or beside the record.
    """
    derived = derive(record, folder)
    content: dict[Format, Callable[[], str]] = {
        "html": lambda: page(document(record, derived)),
        "md": lambda: markdown(document(record, derived)),
        "json": lambda: _json(record, derived),
    }
    target = out or folder
    written: dict[str, Path] = {}
    for name in dict.fromkeys(formats):
        file = target / f"report.{name}"
        text = content[name]()
        try:
            target.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RecordError(
                f"the report `{file}` could not be written: {error.strerror or error}",
                hint="free space or choose another folder with --out",
            ) from error
        written[name] = file
    return written


def _json(record: Record, derived: Derived) -> str:
    """The record as it is, and beside it what the report derived."""
    whole = {"record": record.model_dump(mode="json"), "derived": dataclasses.asdict(derived)}
    return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
