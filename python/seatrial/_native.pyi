"""The native module. Checked against the built one by tests/engine/test_native.py."""

from os import PathLike
from typing import Any

__version__: str

def run_server(path: str | PathLike[str]) -> int:
    """Runs a server until it ends and returns its exit code. The interpreter is free meanwhile."""

def run_load(path: str | PathLike[str]) -> int:
    """Runs a load generator until it ends and returns its exit code. The interpreter is free meanwhile."""

class FeaturePlan:
    """A compiled feature spec. Calls let the interpreter go meanwhile; what is wrong is a `ValueError`."""

    def __new__(cls, spec: str, folder: str | PathLike[str]) -> FeaturePlan:
        """Reads the spec and loads the files that it names, relative to the folder."""

    def instances(self, body: bytes) -> list[tuple[str, str, list[int], bytearray]]:
        """The tensors of a body `{"instances": [...]}`."""

    def columns(
        self, rows: int, columns: list[tuple[str, tuple[str, bytes | None, bytes | None, Any]]]
    ) -> list[tuple[str, str, list[int], bytearray]]:
        """The tensors of `rows` rows of columns: field -> (kind, validity, offsets, values or items)."""

    def fields(self) -> list[str]:
        """The raw fields in the order of the spec."""

    def counts(self) -> list[tuple[str, int, int]]:
        """Rows without a value and values outside the vocabulary so far: (field, missing, unknown)."""

    def cache_counts(self) -> tuple[int, int] | None:
        """Texts whose tokens were kept and texts that were tokenized so far; None without a tokenizer."""
