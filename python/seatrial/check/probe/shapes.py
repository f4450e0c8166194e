"""Which free dimensions really are free: found by running sizes 1, 2 and 3. Child process only.

A dimension is declared free by a symbol, or by saying nothing. Two symbols may have to be equal although the file
does not say so; then they are tied into one group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["DimFinding", "ShapeFindings", "find_shapes"]

Sizes = dict[str, int]
# Runs the model with these sizes; None when it worked, else what the runtime said.
Attempt = Callable[[Sizes], str | None]

TRIED = (1, 2, 3)
# Where nothing small works, sizes that image and sequence models commonly ask for.
FALLBACKS = (4, 8, 16, 32, 64, 96, 128, 224, 256)


@dataclass(frozen=True)
class DimFinding:
    """What one group of symbols takes. `fixed` is set when only one size works, `why` then says what stopped others."""

    symbols: tuple[str, ...]
    works: tuple[int, ...]
    fixed: int | None = None
    why: str | None = None


@dataclass
class ShapeFindings:
    """Every group, sizes with which the model runs, and the error when none was found."""

    groups: list[DimFinding] = field(default_factory=list)
    base: Sizes = field(default_factory=dict)
    error: str | None = None


def find_shapes(
    symbols: list[str], first_axis: set[str], attempt: Attempt, known: Sizes | None = None
) -> ShapeFindings:
    """Tries sizes for every symbol. `first_axis` are those that stand on axis 0 of an input: likely the batch.

    `known` are sizes that real requests have; they are tried before any guess.
    """
    base, errors = _base(symbols, first_axis, attempt, known)
    if base is None:
        return ShapeFindings(error=errors)
    alone = {s: {n: attempt({**base, s: n}) for n in TRIED} for s in symbols}
    stuck = [s for s in symbols if any(e is not None for e in alone[s].values())]
    groups = [DimFinding((s,), TRIED) for s in symbols if s not in stuck]
    for tied in _tie(stuck, first_axis, base, attempt):
        groups.append(_judge(tied, base, attempt, alone))
    order = {s: i for i, s in enumerate(symbols)}
    return ShapeFindings(sorted(groups, key=lambda g: order[g.symbols[0]]), base)


def _base(
    symbols: list[str], first_axis: set[str], attempt: Attempt, known: Sizes | None
) -> tuple[Sizes | None, str]:
    """Sizes that work. Two rows come before one, since a single row would hide symbols that must be equal."""
    guesses = [] if known is None else [{s: 2 if s in first_axis else known[s] for s in symbols}, known]
    guesses += [dict.fromkeys(symbols, size) for size in TRIED[1:] + TRIED[:1]]
    for size in (*TRIED, *FALLBACKS):
        guesses += [{s: rows if s in first_axis else size for s in symbols} for rows in (2, 1)]
    guesses += [dict.fromkeys(symbols, size) for size in FALLBACKS]
    first_error = ""
    for sizes in guesses:
        error = attempt(sizes)
        if error is None:
            return sizes, ""
        first_error = first_error or error
        if not symbols:
            break
    return None, first_error


def _tie(stuck: list[str], first_axis: set[str], base: Sizes, attempt: Attempt) -> list[tuple[str, ...]]:
    """Splits the symbols that fail alone into groups that work together."""
    groups: list[tuple[str, ...]] = []
    left = list(stuck)
    for likely in (first_axis, set(stuck)):
        candidates = [s for s in left if s in likely]
        if len(candidates) > 1 and _moves(tuple(candidates), base, attempt):
            groups.append(tuple(candidates))
            left = [s for s in left if s not in candidates]
    while left:
        head = left.pop(0)
        mate = next((s for s in left if _moves((head, s), base, attempt)), None)
        if mate is not None:
            left.remove(mate)
        groups.append((head,) if mate is None else (head, mate))
    return groups


def _moves(group: tuple[str, ...], base: Sizes, attempt: Attempt) -> bool:
    """Whether a group, moved together, takes a size of at least 2 that it does not have now."""
    sizes = {base[s] for s in group}
    return any(attempt({**base, **dict.fromkeys(group, n)}) is None for n in (2, 3, 5) if sizes != {n})


def _judge(
    group: tuple[str, ...], base: Sizes, attempt: Attempt, alone: dict[str, dict[int, str | None]]
) -> DimFinding:
    now = base[group[0]]
    tried = sorted({*TRIED, now, now + 1, now * 2})
    said = {n: attempt({**base, **dict.fromkeys(group, n)}) for n in tried}
    works = tuple(n for n in tried if said[n] is None)
    errors = [f"size {n}: {e}" for n, e in said.items() if e is not None]
    if works == (now,):
        return DimFinding(group, works, fixed=now, why=errors[0] if errors else None)
    return DimFinding(group, works, why="; ".join(errors[:2]) or None)
