"""A package as the rules see it: whatever could be read, with the sources that know the lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.check.facts import ModelFacts
from seatrial.contract import Batching, Card, Manifest, Source

__all__ = ["View"]


@dataclass
class View:
    """Documents that hold to their schema by file name; what does not is absent, and its rules are silent."""

    root: Path
    documents: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    card: Card | None = None
    manifest: Manifest | None = None
    facts: ModelFacts | None = None
    batching: Batching | None = None
    # Links and special files: never opened, whatever they point to.
    linked: frozenset[str] = frozenset()

    def may_open(self, file: str) -> bool:
        """Whether neither a file nor its folder is a link."""
        return file not in self.linked and file.split("/", 1)[0] not in self.linked

    def line(self, file: str, *path: str | int) -> int | None:
        """The line of a key in a file that was read."""
        source = self.sources.get(file)
        return None if source is None else source.line(path)
