"""The report as one HTML file that needs nothing else: no script, no font, no picture, no request."""

from __future__ import annotations

from importlib.resources import files

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
from seatrial.report.markup import Markup, el, join

__all__ = ["page"]

WIDE, NARROW = 880, 360
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# Paths in a 24-unit square.
ICONS = {
    "good": "M5 12.5l4.5 4.5L19 7.5",
    "bad": "M6.5 6.5l11 11M17.5 6.5l-11 11",
    "unsure": "M12 5v9M12 18.2v.6",
}


def page(document: Document) -> str:
    """The whole file."""
    style = Markup(files("seatrial.report").joinpath("page.css").read_text(encoding="utf-8"))
    top = document.headline
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{top.subject} · {top.outcome.text if top.outcome else 'Bench'} · Seatrial"),
        el("style", style),
    )
    body = el(
        "body",
        el("header", _headline(top)),
        el("nav", [el("a", s.short, href=f"#{s.ident}") for s in document.sections], aria_label="Sections"),
        el("main", [_section(section) for section in document.sections]),
        el("footer", "Made by Seatrial from one record. What was not measured is not shown."),
    )
    return "<!doctype html>\n" + el("html", head, body, lang="en") + "\n"


def _headline(top: Headline) -> Markup:
    tone = top.outcome.tone if top.outcome else "plain"
    verdict = None
    if top.outcome:
        draft = el("span", "Draft", class_="draft", title="The promises are a draft: nobody has signed them.")
        verdict = el(
            "p", _icon(tone), el("strong", top.outcome.text), draft if top.draft else None, class_="outcome"
        )
    return join(
        [
            el("p", el("span", "Seatrial", class_="brand"), f" {top.kind}", class_="kind"),
            el("h1", top.subject),
            el("p", _icon("unsure"), top.warning, class_="warning") if top.warning else None,
            el(
                "section",
                verdict,
                el("p", top.line, class_="line"),
                el("ul", [el("li", reason) for reason in top.reasons]) if len(top.reasons) > 1 else None,
                class_=f"verdict {tone}",
                aria_label="Verdict",
            ),
            el("dl", [_tile(*tile) for tile in top.tiles], class_="tiles"),
        ]
    )


def _tile(name: str, figure: str, small: str) -> Markup:
    return el("div", el("dt", name), el("dd", el("b", figure), el("span", small) if small else None))


def _icon(tone: str) -> Markup | None:
    if tone not in ICONS:
        return None
    return el(
        "svg",
        el("circle", cx=12, cy=12, r=11),
        el("path", d=ICONS[tone]),
        viewBox="0 0 24 24",
        class_="icon",
        aria_hidden="true",
    )


def _section(section: Section) -> Markup:
    blocks = [_block(block) for block in section.blocks]
    return el("section", el("h2", section.title), blocks, id=section.ident)


def _block(block: Block) -> Markup:
    match block:
        case Note():
            return el("p", _icon(block.tone), el("span", block.text), class_=f"note {block.tone}")
        case Table():
            table = _table(block, "plain")
            return el("details", el("summary", block.folded), table) if block.folded else table
        case Chart():
            return _chart(block)
        case Facts():
            pairs = [el("div", el("dt", name), el("dd", value)) for name, value in block.pairs]
            return el("dl", pairs, class_="facts")
        case Steps():
            items = [
                el("li", el("span", owner, class_="owner"), el("span", text)) for owner, text in block.items
            ]
            return el("ol", items, class_="steps")
        case Code():
            return el("pre", el("code", block.text))


def _table(table: Table, class_: str) -> Markup:
    if not table.rows:
        return el("p", table.empty, class_="note plain")
    head = el("tr", [el("th", h, scope="col", class_=_side(table, i)) for i, h in enumerate(table.headers)])
    rows = [
        el(
            "tr",
            [
                el("td", _cell(cell), class_=_side(table, i), data_label=table.headers[i])
                for i, cell in enumerate(row)
            ],
        )
        for row in table.rows
    ]
    return el(
        "div", el("table", el("thead", head), el("tbody", rows)), class_=f"table {class_}", tabindex="0"
    )


def _side(table: Table, column: int) -> str | None:
    return "n" if column in table.numeric else "firm" if column in table.firm else None


def _cell(cell: str | Mark) -> Markup | str:
    if isinstance(cell, str):
        return cell
    mark = el("span", _icon(cell.tone), cell.text, class_=f"mark {cell.tone}")
    return join([mark, el("span", cell.detail, class_="detail") if cell.detail else None])


def _chart(chart: Chart) -> Markup:
    wide = chart.draw(WIDE)
    drawing = el("div", wide, class_="facets") if chart.facets else join([wide, chart.draw(NARROW)])
    return el(
        "figure",
        el("figcaption", el("h3", chart.title), el("p", chart.about)),
        el("ul", [_legend(*entry) for entry in chart.legend], class_="legend"),
        drawing,
        el("details", el("summary", "The same as a table"), _table(chart.table, "figures")),
        id=f"chart-{chart.ident}",
    )


def _legend(class_: str, text: str) -> Markup:
    shape = (
        el("rect", x=0, y=3, width=24, height=8, rx=2, class_=class_)
        if class_ == "stage"
        else el("path", d="M0 7H24", class_=f"line {class_}")
    )
    return el("li", el("svg", shape, viewBox="0 0 24 14", class_="swatch", aria_hidden="true"), text)
