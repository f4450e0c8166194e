"""Reads a rendered report as a browser or a reader would: elements, texts, and percentiles that lack their n."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "link", "img"}
PERCENTILE = re.compile(r"\bp(50|90|95|99)(\.9)?\b")
DURATION = re.compile(r"\d (ms|s)\b")


class Page(HTMLParser):
    """Fails on elements that are not closed in order; collects what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[str]:
        """Texts directly inside elements of one name."""
        return [text for name, text in self.texts if name == tag]


def bare_percentiles(markdown: str) -> list[str]:
    """Lines or table cells that give a percentile in time without a sample size."""
    found: list[str] = []
    headers: list[str] = []
    for line in markdown.splitlines():
        if not line.startswith("|"):
            headers = []
            if PERCENTILE.search(line) and DURATION.search(line) and "n=" not in line:
                found.append(line)
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not headers:
            headers = cells
            continue
        found += _bare_cells(headers, cells)
    return found


def _bare_cells(headers: list[str], cells: list[str]) -> list[str]:
    own = dict(zip(headers, cells, strict=True))
    if own.get("n", "").replace(",", "").isdigit():
        return []
    return [
        f"{name}: {cell}"
        for name, cell in own.items()
        if (PERCENTILE.search(name) or PERCENTILE.search(cells[0])) and re.search(r"\d", cell) and "n=" not in cell
        and (DURATION.search(cell) or "(ms)" in name) and name != "limit"
    ]  # fmt: skip
