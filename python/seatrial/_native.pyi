"""The native module. Checked against the built one by tests/engine/test_native.py."""

from os import PathLike

__version__: str

def run_server(path: str | PathLike[str]) -> int:
    """Runs a server until it ends and returns its exit code. The interpreter is free meanwhile."""

def run_load(path: str | PathLike[str]) -> int:
    """Runs a load generator until it ends and returns its exit code. The interpreter is free meanwhile."""
