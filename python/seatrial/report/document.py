"""The parts that a report is made of. HTML and Markdown are two renderings of the same list of sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from seatrial.report.markup import Markup

__all__ = [
    "Block",
    "Chart",
    "Code",
    "Document",
    "Facts",
    "Headline",
    "Mark",
    "Note",
    "Section",
    "Steps",
    "Table",
]

NOT_MEASURED = "not measured"

Tone = Literal["good", "bad", "unsure", "plain"]


@dataclass(frozen=True)
class Mark:
    """A word with a tone; the symbol carries it where colour does not."""

    tone: Tone
    text: str
    detail: str = ""
    """What stands behind the word, in a plainer voice."""

    @property
    def symbol(self) -> str:
        """A sign that reads without colour."""
        return {"good": "✓", "bad": "✗", "unsure": "!", "plain": ""}[self.tone]


Cell = str | Mark


@dataclass(frozen=True)
class Table:
    """Rows of text; the columns in `numeric` are set to the right, those in `firm` are not wrapped."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = frozenset()
    firm: frozenset[int] = frozenset({0})
    empty: str = NOT_MEASURED
    folded: str = ""
    """What the page says in place of a long table until it is opened."""


@dataclass(frozen=True)
class Facts:
    """Names with values."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Steps:
    """What to do next: who, and what."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Code:
    """A command to copy."""

    text: str


@dataclass(frozen=True)
class Chart:
    """A picture, what it shows in words, and the same figures as a table.

    `draw` takes the width in user units and gives the SVG; facets are drawn once, at their own width. `brief` is
    the table for Markdown, where the full one would be long.
    """

    ident: str
    title: str
    about: str
    legend: tuple[tuple[str, str], ...]
    draw: Callable[[int], Markup]
    table: Table
    brief: Table | None = None
    facets: bool = False


Block = Table | Facts | Note | Steps | Code | Chart


@dataclass(frozen=True)
class Section:
    """A titled part of the report."""

    ident: str
    short: str
    """The name in the list of sections."""
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Headline:
    """What a reader takes away in five seconds."""

    subject: str
    kind: str
    outcome: Mark | None
    draft: bool
    line: str
    reasons: tuple[str, ...]
    warning: str
    tiles: tuple[tuple[str, str, str], ...]
    """Name, figure, and the small print under it."""


@dataclass(frozen=True)
class Document:
    """One report."""

    headline: Headline
    sections: tuple[Section, ...]
