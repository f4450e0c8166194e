"""Progress of a long command on stderr: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from seatrial.records import Event

__all__ = ["Progress"]


class Progress:
    """Tells events as they come. `longest_s` is how long the loaded phases take at most."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._live = sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def tell(self, event: Event) -> None:
        """Shows an event; a tick only where it can be overwritten."""
        if event.kind == "tick":
            if self._live:
                self._clear()
                left = max(self._longest_s - event.t_s, 0)
                sys.stderr.write(f"{event.t_s:6.1f} s  {event.text}  (at most {left:.0f} s left)"[:118])
                sys.stderr.flush()
                self._shown = True
            return
        self._clear()
        sys.stderr.write(f"{event.t_s:6.1f} s  {event.text}\n")
        sys.stderr.flush()

    def _clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            self._shown = False
