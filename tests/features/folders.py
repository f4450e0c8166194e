"""Folders with a features.yaml and a signature.yaml, written on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = ["MURMUR", "make_folder"]

MURMUR = {
    "step": "hash", "algorithm": "murmur3_32", "seed": 0, "encoding": "utf-8", "sign": "unsigned", "modulo": "floor",
}  # fmt: skip


def make_folder(
    folder: Path, tensors: dict[str, tuple[str, list[Any]]], features: list[dict[str, Any]]
) -> Path:
    """A folder whose model takes these tensors: name -> (datatype, sizes behind the batch axis)."""
    folder.mkdir(parents=True, exist_ok=True)
    batch = {"name": "batch", "max": None}
    inputs = [{"name": n, "datatype": d, "shape": [batch, *inner]} for n, (d, inner) in tensors.items()]
    outputs = [{"name": "score", "datatype": "FP32", "shape": [batch, 1]}]
    head = {"apiVersion": "seatrial/v1"}
    signature = {**head, "kind": "Signature", "inputs": inputs, "outputs": outputs}
    spec = {**head, "kind": "Features", "missing_texts": [""], "features": features}
    (folder / "signature.yaml").write_text(yaml.safe_dump(signature))
    (folder / "features.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True))
    return folder
