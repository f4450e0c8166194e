"""Evaluation of the text encoder: our graph against PyTorch's, and retrieval on real texts.

    PYTHONPATH=examples python -m making.text_embedding.evaluate

Needs the packages of environment.lock in the package; set-up and trial need none of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import yaml
from sklearn.feature_extraction.text import TfidfVectorizer
from tokenizers import Tokenizer
from transformers import BertModel

from making.text_embedding.graph import encoder_graph
from making.text_embedding.prepare import GOLDEN_STEP, MOST_TOKENS, inputs
from making.text_embedding.texts import docstring_pairs, sample_texts
from making.text_embedding.weights import load_weights, model_folder
from making.text_embedding.wordpiece import WordPiece

EVALUATION = Path(__file__).resolve().parents[2] / "03-text-embedding" / "evaluation"
SEED = 7


def main() -> None:
    """Compares, measures and writes the evaluation."""
    torch.set_num_threads(2)
    texts, pairs = sample_texts(), docstring_pairs()
    tokenizer = WordPiece(model_folder() / "vocab.txt")
    compare_tokens(tokenizer, [*texts, *(t for pair in pairs for t in pair)])
    file = encoder_graph(load_weights())
    onnx.checker.check_model(onnx.load_from_string(file), full_check=True)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    rows = [inputs([tokenizer.encode(t, MOST_TOKENS)]) for t in texts]
    ours = np.concatenate([session.run(None, row)[0] for row in rows])
    theirs = reference(rows)
    EVALUATION.mkdir(parents=True, exist_ok=True)
    lines = [",".join(f"{v:.9g}" for v in row) for row in theirs[::GOLDEN_STEP]]
    (EVALUATION / "golden_embeddings.csv").write_text("".join(f"{line}\n" for line in lines))
    ranks = retrieval(session, tokenizer, pairs)
    (EVALUATION / "ranks.csv").write_text("rank\n" + "".join(f"{r}\n" for r in ranks))
    write_metrics(parity(ours, theirs), ranks, tfidf_ranks(pairs), [r["input_ids"].shape[1] for r in rows])


def compare_tokens(ours: WordPiece, texts: list[str]) -> None:
    """Stops unless our tokens equal those of the tokenizers library."""
    theirs = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    theirs.no_padding()
    theirs.enable_truncation(MOST_TOKENS)
    for text in texts:
        assert ours.encode(text, MOST_TOKENS) == theirs.encode(text).ids, text
    print(f"{len(texts)} texts: tokens as the tokenizers library has them")


def reference(rows: list[dict[str, np.ndarray]]) -> np.ndarray:
    """Embeddings by PyTorch with transformers, row by row."""
    model = BertModel.from_pretrained(model_folder(), attn_implementation="eager").eval()
    found = []
    for row in rows:
        mask = torch.from_numpy(row["attention_mask"])
        with torch.no_grad():
            hidden = model(torch.from_numpy(row["input_ids"]), attention_mask=mask).last_hidden_state
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        found.append(torch.nn.functional.normalize(mean, dim=1).numpy())
    return np.concatenate(found)


def parity(ours: np.ndarray, theirs: np.ndarray) -> dict[str, object]:
    """How far our graph is from PyTorch; stops where it is another model."""
    cosine = float((ours.astype(float) * theirs).sum(1).min())
    difference = float(abs(ours - theirs).max())
    np.testing.assert_allclose(ours, theirs, atol=5e-6)
    return {
        "n_texts": len(ours),
        "max_abs_difference": float(f"{difference:.1e}"),
        "min_cosine": round(cosine, 6),
    }


def retrieval(
    session: onnxruntime.InferenceSession, tokenizer: WordPiece, pairs: list[tuple[str, str]]
) -> np.ndarray:
    """For each first paragraph the rank, from 1, of its own rest among all rests."""
    sides = [
        np.concatenate([session.run(None, inputs([tokenizer.encode(t, MOST_TOKENS)]))[0] for t in side])
        for side in zip(*pairs, strict=True)
    ]
    return ranks_of(sides[0] @ sides[1].T)


def tfidf_ranks(pairs: list[tuple[str, str]]) -> np.ndarray:
    """The same by shared words alone."""
    firsts, rests = zip(*pairs, strict=True)
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit([*firsts, *rests])
    return ranks_of((vectorizer.transform(firsts) @ vectorizer.transform(rests).T).toarray())


def ranks_of(likeness: np.ndarray) -> np.ndarray:
    """Rank of the diagonal in each row; of equals the worst."""
    return (likeness >= np.diagonal(likeness)[:, None]).sum(1)


def write_metrics(
    same: dict[str, object], ranks: np.ndarray, baseline: np.ndarray, lengths: list[int]
) -> None:
    """Writes metrics.yaml."""
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, len(ranks), (2000, len(ranks)))
    gaps = (ranks[drawn] == 1).mean(1) - (baseline[drawn] == 1).mean(1)
    edges = np.percentile(lengths, [50, 90, 99])
    document = {
        "part": "docstrings of the recbole wheel: find the rest by the first paragraph",
        "label": "the rest of the same docstring",
        "model": "all-MiniLM-L6-v2",
        "metrics": figures(ranks, drawn),
        "baselines": {"tfidf": figures(baseline, drawn)},
        "advantage": {
            "tfidf": {
                "recall_at_1": round(float((ranks == 1).mean() - (baseline == 1).mean()), 4),
                "recall_at_1_95": [round(float(v), 4) for v in np.quantile(gaps, [0.025, 0.975])],
            }
        },
        "parity_with_pytorch": same,
        "sample_tokens": {
            "n": len(lengths), "p50": int(edges[0]), "p90": int(edges[1]), "p99": int(edges[2]), "max": max(lengths),
        },
    }  # fmt: skip
    text = yaml.safe_dump(document, sort_keys=False, width=100)
    (EVALUATION / "metrics.yaml").write_text(text)
    print(text)


def figures(ranks: np.ndarray, drawn: np.ndarray) -> dict[str, object]:
    """Recall and mean reciprocal rank with 95 % bootstrap intervals."""
    shares = {"recall_at_1": ranks == 1, "recall_at_10": ranks <= 10, "mean_reciprocal_rank": 1 / ranks}
    found: dict[str, object] = {"n_queries": len(ranks)}
    for name, values in shares.items():
        found[name] = round(float(values.mean()), 4)
        low, high = np.quantile(values[drawn].mean(1), [0.025, 0.975])
        found[f"{name}_95"] = [round(float(low), 4), round(float(high), 4)]
    return found


if __name__ == "__main__":
    main()
