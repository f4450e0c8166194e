"""Integer inputs that are only looked up in a stored table, and so have a range: Gather on axis 0, directly or cast."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

__all__ = ["lookup_tables"]

_INTEGERS = {2, 3, 4, 5, 6, 7, 12, 13}
# Steps that change the form or the type of the ids but not their values.
_PASSING = {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"}


def lookup_tables(graph: Any) -> dict[str, int]:
    """Input -> rows of the smallest table, for each integer input whose every use is such a lookup."""
    tables = {t.name: int(t.dims[0]) for t in graph.initializer if len(t.dims) >= 1 and t.dims[0] > 0}
    uses: dict[str, list[tuple[Any, int]]] = defaultdict(list)
    for node in graph.node:
        for position, name in enumerate(node.input):
            uses[name].append((node, position))
    inner = _inner_names(graph) | {o.name for o in graph.output}
    found = {}
    for value in graph.input:
        if value.type.tensor_type.elem_type in _INTEGERS and value.name not in tables:
            rows = _rows(value.name, uses, tables, inner)
            if rows is not None:
                found[value.name] = rows
    return found


def _rows(name: str, uses: Any, tables: dict[str, int], inner: set[str]) -> int | None:
    waiting, seen, sizes = [name], set(), []
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in inner or not uses.get(current):
            return None
        for node, position in uses[current]:
            if node.op_type == "Gather" and position == 1 and _axis(node) == 0 and node.input[0] in tables:
                sizes.append(tables[node.input[0]])
            elif node.op_type in _PASSING and position == 0 and _keeps_integers(node) and node.output:
                waiting.append(node.output[0])
            else:
                return None
    return min(sizes) if sizes else None


def _axis(node: Any) -> int:
    return next((int(a.i) for a in node.attribute if a.name == "axis"), 0)


def _keeps_integers(node: Any) -> bool:
    return node.op_type != "Cast" or any(a.name == "to" and a.i in (6, 7) for a in node.attribute)


def _inner_names(graph: Any) -> set[str]:
    """Names that graphs inside nodes read; such an input has a use that is not followed here."""
    names: set[str] = set()
    waiting = [a for n in graph.node for a in n.attribute]
    while waiting:
        attribute = waiting.pop()
        for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            for node in inner.node:
                names.update(node.input)
                waiting.extend(node.attribute)
            names.update(o.name for o in inner.output)
    return names
