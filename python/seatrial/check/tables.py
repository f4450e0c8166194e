"""What stored tensors say about a graph: tables that integer inputs are looked up in, and the longest sum of products.

An input has a range when it is only looked up: Gather on axis 0 of a stored table, directly or cast.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any

__all__ = ["longest_sum", "lookup_tables"]

_INTEGERS = {2, 3, 4, 5, 6, 7, 12, 13}
# Steps that change the form or the type of the ids but not their values.
_CONVERTING = {"DequantizeLinear", "Cast", "Identity"}
_SCALING = {"Mul", "Div", "Add", "Sub"}
_PRODUCTS = {"Gemm", "Conv", "ConvTranspose", "ConvInteger", "LSTM", "GRU", "RNN"}
# Steps that look at the form of the ids only.
_BLIND = {"Shape", "Size"}
_PASSING = {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"}


def lookup_tables(graph: Any) -> dict[str, int]:
    """Input -> rows of the smallest table, for each integer input whose every use is such a lookup."""
    tables = _stored_tables(graph)
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


def longest_sum(graph: Any) -> int:
    """Terms of the longest sum that a product with a stored weight makes; 1 when there is none."""
    dims = {t.name: [int(d) for d in t.dims] for t in graph.initializer}
    longest = 1
    for node in graph.node:
        weights = [dims[n] for n in node.input if n in dims and len(dims[n]) >= 2]
        if not weights or not ("MatMul" in node.op_type or node.op_type in _PRODUCTS):
            continue
        terms = prod(weights[0][1:]) if "Conv" in node.op_type else max(weights[0][-2:])
        longest = max(longest, terms)
    return longest


def _stored_tables(graph: Any) -> dict[str, int]:
    """Name -> rows of every stored tensor, also where it is first converted or scaled by another stored one."""
    shapes = {t.name: [int(d) for d in t.dims] for t in graph.initializer}
    for node in graph.node:
        known = [shapes[n] for n in node.input if n in shapes]
        if not node.output or not known or len(known) != len(node.input):
            continue
        if node.op_type in _CONVERTING:
            shapes[node.output[0]] = known[0]
        elif node.op_type in _SCALING:
            rank = max(len(s) for s in known)
            rows = max((s[0] for s in known if len(s) == rank and rank), default=0)
            shapes[node.output[0]] = [rows] + [0] * (rank - 1)
    return {name: s[0] for name, s in shapes.items() if s and s[0] > 0}


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
            if node.op_type in _BLIND:
                continue
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
