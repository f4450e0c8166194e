"""A tiny builder of HTML and SVG. Text becomes markup only through here, and is escaped on the way."""

from __future__ import annotations

import html
from collections.abc import Iterable

__all__ = ["Child", "Markup", "el", "join"]


class Markup(str):
    """Text that is markup already, made by `el` or `join`."""

    __slots__ = ()


Child = str | None | Iterable["Child"]
VOID = {"meta", "br", "hr", "link", "img"}


def join(children: Iterable[Child]) -> Markup:
    """Children one after the other, escaped where they are plain text.

    >>> join(["a < b", el("b", "c"), None])
    'a &lt; b<b>c</b>'
    """
    return Markup("".join(_markup(child) for child in children))


def el(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """One element. `class_` becomes `class`, other underscores become hyphens; None and False are left out.

    >>> el("p", "<script>", class_="note", data_n=3, hidden=True)
    '<p class="note" data-n="3" hidden>&lt;script&gt;</p>'
    """
    head = tag + "".join(_attribute(name, value) for name, value in attributes.items())
    return Markup(f"<{head}>" if tag in VOID else f"<{head}>{join(children)}</{tag}>")


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    key = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {key}"
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {key}="{html.escape(text)}"'


def _markup(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(child)
    return join(child)
