"""The report as Markdown: the same sections; each chart as its table."""

from __future__ import annotations

import re

from seatrial.report.document import (
    Block,
    Chart,
    Code,
    Document,
    Facts,
    Headline,
    Mark,
    Note,
    Section,
    Steps,
    Table,
)

__all__ = ["markdown"]


def markdown(document: Document) -> str:
    """The whole file."""
    parts = [_headline(document.headline), *(_section(section) for section in document.sections)]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Text that Markdown leaves as it is.

    >>> plain("a|b <i>*x*"), plain("[11.9, 13.0]")
    ('a\\\\|b &lt;i&gt;\\\\*x\\\\*', '[11.9, 13.0]')
    """
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = re.sub(r"([\\|*`]|\](?=[(\[]))", r"\\\1", escaped)
    return re.sub(r"\s+", " ", escaped).strip()


def _headline(top: Headline) -> str:
    lines = [f"# {plain(top.kind)}: {plain(top.subject)}"]
    if top.warning:
        lines.append(f"**{plain(top.warning)}**")
    draft = " (draft promises)" if top.draft else ""
    outcome = f"**{top.outcome.symbol} {top.outcome.text.upper()}**{draft} " if top.outcome else ""
    lines.append(outcome + plain(top.line))
    if len(top.reasons) > 1:
        lines.append("\n".join(f"- {plain(reason)}" for reason in top.reasons))
    tiles = [f"- {plain(name)}: **{plain(figure)}**{_small(small)}" for name, figure, small in top.tiles]
    return "\n\n".join([*lines, "\n".join(tiles)])


def _small(text: str) -> str:
    return f" ({plain(text)})" if text else ""


def _section(section: Section) -> str:
    return "\n\n".join([f"## {plain(section.title)}", *(_block(block) for block in section.blocks)])


def _block(block: Block) -> str:
    match block:
        case Note():
            sign = Mark(block.tone, "").symbol
            return f"{sign} {plain(block.text)}".strip()
        case Table():
            return _table(block)
        case Chart():
            return f"### {plain(block.title)}\n\n{plain(block.about)}\n\n{_table(block.brief or block.table)}"
        case Facts():
            return "\n".join(f"- {plain(name)}: {plain(value)}" for name, value in block.pairs)
        case Steps():
            return "\n".join(f"{i}. **{plain(o)}**: {plain(t)}" for i, (o, t) in enumerate(block.items, 1))
        case Code():
            return "```sh\n" + block.text.replace("```", "'''") + "\n```"


def _table(table: Table) -> str:
    if not table.rows:
        return plain(table.empty)
    sides = ["---:" if i in table.numeric else "---" for i in range(len(table.headers))]
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    lines = [[plain(h) for h in table.headers], sides, *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{plain(table.folded)}:\n\n{text}" if table.folded else text


def _cell(cell: str | Mark) -> str:
    return plain(
        cell if isinstance(cell, str) else " ".join(filter(None, (cell.symbol, cell.text, cell.detail)))
    )
