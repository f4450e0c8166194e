"""Evaluation of the file type model: our input against Magika's own, and labels against file names.

    PYTHONPATH=examples python -m making.file_type.evaluate

Needs the packages of environment.lock in the package; set-up and trial read only the files of `magika`.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime
import yaml
from magika import Magika
from magika.types import Seekable

from making.file_type.features import Preprocessing, example_files, load_preprocessing, model_path
from making.file_type.prepare import GOLDEN_STEP, example_tokens

EVALUATION = Path(__file__).resolve().parents[2] / "02-file-type" / "evaluation"
Z95 = 1.959963984540054

# What a file name promises. Names whose format the model does not know (safetensors) promise nothing.
PROMISED = {
    ".py": "python", ".yaml": "yaml", ".json": "json", ".md": "markdown", ".onnx": "onnx", ".txt": "txt",
    ".inter": "tsv", ".item": "tsv", ".kg": "tsv", ".link": "tsv", ".user": "tsv",
}  # fmt: skip


def main() -> None:
    """Compares, predicts and writes the evaluation."""
    how = load_preprocessing()
    rows = example_tokens(how)
    compare_tokens(rows, how)
    session = onnxruntime.InferenceSession(model_path(), providers=["CPUExecutionProvider"])
    scores = {name: session.run(None, {"bytes": row})[0][0] for name, row in rows.items()}
    compare_labels(scores, how)
    EVALUATION.mkdir(parents=True, exist_ok=True)
    golden = [",".join(f"{v:.9g}" for v in s) for s in list(scores.values())[::GOLDEN_STEP]]
    (EVALUATION / "golden_scores.csv").write_text("".join(f"{line}\n" for line in golden))
    found = {name: (how.labels[int(s.argmax())], float(s.max())) for name, s in scores.items()}
    write_predictions(found)
    text = yaml.safe_dump(metrics(found), sort_keys=False, width=100)
    (EVALUATION / "metrics.yaml").write_text(text)
    print(text)


def compare_tokens(rows: dict[str, np.ndarray], how: Preprocessing) -> None:
    """Stops unless our input equals that of the magika package for every file."""
    for name, path in example_files().items():
        if name not in rows:
            continue
        theirs = Magika._extract_features_from_seekable(
            Seekable(path.open("rb")), how.n_first, 0, how.n_last, how.padding, how.block, False
        )
        np.testing.assert_array_equal(rows[name][0], [*theirs.beg, *theirs.end], err_msg=name)


def compare_labels(scores: dict[str, np.ndarray], how: Preprocessing) -> None:
    """Stops unless the best label and its score equal what the magika package says."""
    oracle = Magika()
    paths = example_files()
    for name, score in scores.items():
        theirs = oracle.identify_path(paths[name])
        assert str(theirs.dl.label) == how.labels[int(score.argmax())], name
        np.testing.assert_allclose(theirs.score, score.max(), atol=1e-5, err_msg=name)
    print(f"{len(scores)} of {len(paths)} files: input, label and score as the magika package has them")


def write_predictions(found: dict[str, tuple[str, float]]) -> None:
    """Stores file, promised label, found label and score."""
    with (EVALUATION / "predictions.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["file", "promised", "found", "score"])
        for name, (label, score) in found.items():
            writer.writerow([name, promised(name) or "", label, f"{score:.6f}"])


def promised(name: str) -> str | None:
    """The label that the file's name promises."""
    return PROMISED.get(Path(name).suffix)


def metrics(found: dict[str, tuple[str, float]]) -> dict[str, object]:
    """Agreement of found and promised labels, in all and by promised label."""
    pairs = [(promised(n), label) for n, (label, _) in found.items() if promised(n)]
    kinds = Counter(want for want, _ in pairs)
    return {
        "part": "the files of the pinned wheels that are long enough and whose name promises a known label",
        "label": "content type by file name",
        "model": "magika standard_v3_3, best label without the package's thresholds",
        "metrics": agreement([want == got for want, got in pairs]),
        "slices": {k: agreement([got == k for want, got in pairs if want == k]) for k in sorted(kinds)},
        "unlabelled": sorted(n for n in found if promised(n) is None),
    }


def agreement(right: list[bool]) -> dict[str, object]:
    """Share of right labels with its 95 % interval after Wilson."""
    n, p = len(right), sum(right) / len(right)
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n)) / (1 + Z95**2 / n)
    return {
        "n_files": n,
        "accuracy": round(p, 4),
        "accuracy_95": [round(centre - half, 4), round(min(centre + half, 1.0), 4)],
    }


if __name__ == "__main__":
    main()
