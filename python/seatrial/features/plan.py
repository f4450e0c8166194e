"""Plans: a package's features.yaml and signature.yaml compiled by the native code, and what they make of data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.contract import Package, fail, read_document, resolve_features
from seatrial.errors import ContractError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from seatrial._native import FeaturePlan

__all__ = ["FieldCounts", "Plan", "load", "transform"]

Arrays = dict[str, "np.ndarray[Any, Any]"]

# Protocol name -> NumPy name, for the element types that features make.
DTYPES = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8",
    "INT8": "i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip


@dataclass(frozen=True)
class FieldCounts:
    """How often a field had no value, or one that its vocabulary does not know."""

    field: str
    missing: int
    unknown: int


class Plan:
    """A compiled feature spec. Files are read once; calls may come from several threads."""

    def __init__(self, spec: Mapping[str, Any], folder: Path) -> None:
        from seatrial._native import FeaturePlan

        try:
            self._native: FeaturePlan = FeaturePlan(json.dumps(spec), folder)
        except ValueError as error:
            raise ContractError(f"features.yaml: {error}", file="features.yaml") from error

    def transform(self, data: Any) -> Arrays:
        """The model's inputs for rows as a list of dicts, or columns as a dict of arrays, data frame or Arrow table.

        Rows of tokens are filled up to the longest with the spec's `pad_id`, and 0 in the mask.
        """
        from seatrial.features.columns import as_columns
        from seatrial.features.rows import as_body

        try:
            if isinstance(data, list | tuple):
                made = self._native.instances(as_body(data))
            else:
                made = self._native.columns(*as_columns(data))
        except ValueError as error:
            raise UsageError(
                str(error), hint="the fields and their types are those of features.yaml"
            ) from error
        return {name: _array(datatype, shape, content) for name, datatype, shape, content in made}

    @property
    def fields(self) -> list[str]:
        """The raw fields that a row may hold."""
        return self._native.fields()

    def counts(self) -> list[FieldCounts]:
        """What was missing or unknown since the plan was loaded, field by field."""
        return [FieldCounts(*counts) for counts in self._native.counts()]

    def cache_counts(self) -> tuple[int, int] | None:
        """Texts whose tokens were kept and texts that were tokenized; None without a tokenizer."""
        return self._native.cache_counts()


def load(source: Package | Path | str) -> Plan:
    """The plan of a package, or of a folder that has only features.yaml, signature.yaml and the files they name."""
    if isinstance(source, Package):
        spec, signature, root = source.features, source.signature, source.root
    else:
        root = Path(source).absolute()
        if not root.is_dir():
            raise ContractError(f"`{source}` is no folder", hint="name the folder that holds features.yaml")
        spec, signature = (_document(root, file) for file in ("features.yaml", "signature.yaml"))
    if spec is None:
        raise ContractError(
            f"`{root.name}` has no features.yaml", hint="write one, or send tensors", file="features.yaml"
        )
    return Plan(resolve_features(spec, signature), root)


def transform(source: Package | Path | str, data: Any) -> Arrays:
    """The model's inputs for `data`: `load(source).transform(data)`."""
    return load(source).transform(data)


def _document(root: Path, file: str) -> Any:
    checked = read_document(root, file)
    if checked.problems:
        raise fail(checked.problems)
    return checked.value


def _array(datatype: str, shape: list[int], content: bytearray) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.frombuffer(content, dtype=DTYPES[datatype]).reshape(shape)
