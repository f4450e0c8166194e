"""Starts, watches and stops the native server. Knows packages and processes, nothing of loads or verdicts.

The names are loaded when they are asked for: the server's own process imports this room and needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.engine.config import EngineOptions, resolve, resolve_model
    from seatrial.engine.cpu import CpuLimit, cpu_limit
    from seatrial.engine.repository import NoPackageError, Repository
    from seatrial.engine.runtime import Runtime, find_runtime
    from seatrial.engine.server import Ready, Server, start

__all__ = [
    "CpuLimit",
    "EngineOptions",
    "NoPackageError",
    "Ready",
    "Repository",
    "Runtime",
    "Server",
    "cpu_limit",
    "find_runtime",
    "resolve",
    "resolve_model",
    "start",
]

_HOME = {
    "CpuLimit": "cpu",
    "EngineOptions": "config",
    "NoPackageError": "repository",
    "Ready": "server",
    "Repository": "repository",
    "Runtime": "runtime",
    "Server": "server",
    "cpu_limit": "cpu",
    "find_runtime": "runtime",
    "resolve": "config",
    "resolve_model": "config",
    "start": "server",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module `{__name__}` has no `{name}`")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
