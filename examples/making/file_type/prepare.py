"""Set-up of 02-file-type: the model from the magika wheel, requests from the files of the pinned wheels."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from making.file_type.features import Preprocessing, example_files, load_preprocessing, model_path, tokens
from making.wire import golden, request, write_lines

__all__ = ["GOLDEN_STEP", "example_tokens", "prepare"]

GOLDEN_STEP = 14
# Joined with others a row may differ by 8e-4 on one machine already: the runtime chooses other kernels.
TOLERANCE = 2e-3
MOST_BYTES_READ = 1 << 20


def prepare(folder: Path) -> None:
    """Writes the model and the samples into the package."""
    how = load_preprocessing()
    (folder / "model").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(model_path(), folder / "model" / "model.onnx")
    rows = list(example_tokens(how).values())
    scores = np.loadtxt(folder / "evaluation" / "golden_scores.csv", delimiter=",", dtype=np.float32, ndmin=2)
    samples = folder / "samples"
    write_lines(samples / "requests.jsonl", (request({"bytes": row}) for row in rows))
    write_lines(
        samples / "golden.jsonl",
        (
            golden({"bytes": row}, {"target_label": score[None]}, TOLERANCE)
            for row, score in zip(rows[::GOLDEN_STEP], scores, strict=True)
        ),
    )


def example_tokens(how: Preprocessing) -> dict[str, np.ndarray]:
    """The model's input for every example file that is long enough, by name."""
    found = {name: tokens(_ends(path, how), how) for name, path in example_files().items()}
    return {name: row for name, row in found.items() if row is not None}


def _ends(path: Path, how: Preprocessing) -> bytes:
    """The content, or of a large file its first and last block."""
    if path.stat().st_size <= MOST_BYTES_READ:
        return path.read_bytes()
    with path.open("rb") as stream:
        first = stream.read(how.block)
        stream.seek(-how.block, 2)
        return first + stream.read(how.block)
