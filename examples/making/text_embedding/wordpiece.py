"""Text to token numbers after the model's own vocabulary: BERT's uncased WordPiece, for ASCII texts."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["WordPiece"]

PIECES = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")
LONGEST_WORD = 100


class WordPiece:
    """A vocabulary file with one token a line."""

    def __init__(self, vocabulary: Path) -> None:
        tokens = vocabulary.read_text(encoding="utf-8").splitlines()
        self.ids = {token: i for i, token in enumerate(tokens)}

    def encode(self, text: str, limit: int) -> list[int]:
        """`[CLS]`, the tokens of an ASCII text, `[SEP]`; at most `limit` in all."""
        inner = [i for word in PIECES.findall(text.lower()) for i in self._word(word)]
        return [self.ids["[CLS]"], *inner[: limit - 2], self.ids["[SEP]"]]

    def _word(self, word: str) -> list[int]:
        """The longest known beginning, then the longest known continuation, and so on."""
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self.ids.get(word[start:end] if start == 0 else f"##{word[start:end]}")
                if piece is not None:
                    break
            if piece is None or len(word) > LONGEST_WORD:
                return [self.ids["[UNK]"]]
            found.append(piece)
            start = end
        return found
