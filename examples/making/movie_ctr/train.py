"""Trains the click model, exports it to ONNX and writes its evaluation.

    PYTHONPATH=examples python -m making.movie_ctr.train

Needs the packages of environment.lock in the package; set-up and trial need none of them.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from making.movie_ctr.baselines import baseline_scores
from making.movie_ctr.evaluate import write_evaluation
from making.movie_ctr.features import FIELDS, GENRES, HISTORY, N_TEST, N_TRAIN, N_VALID, Rows, build
from making.movie_ctr.measures import auc, log_loss
from making.movie_ctr.model import DeepFm

PACKAGE = Path(__file__).resolve().parents[2] / "01-movie-ctr"
SEED = 42
EPOCHS, PATIENCE = 20, 4
BATCH = 512
AVERAGING = 0.998  # weight of the past in the running average of the weights, which is what is kept
# Share of training users and films read as unknown, so that the model learns to do without: users are mostly new.
UNKNOWN_SHARES = (0.8, 0.2)
OPSET = 18


def main() -> None:
    """From the wheel's rows to the package's model and evaluation."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    rows, vocabularies = build()
    train = rows.part(0, N_TRAIN)
    valid = rows.part(N_TRAIN, N_TRAIN + N_VALID)
    test = rows.part(N_TRAIN + N_VALID, N_TRAIN + N_VALID + N_TEST)
    model = fit(DeepFm(vocabularies.sizes(), len(GENRES), len(HISTORY)), train, valid)
    scores = predict(model, test)
    path = PACKAGE / "model" / "model.onnx"
    export(model, test, path)
    compare(path, test, scores)
    write_evaluation(PACKAGE / "evaluation", test, {"deepfm": scores, **baseline_scores(train, valid, test)})


def fit(model: DeepFm, train: Rows, valid: Rows) -> DeepFm:
    """Adam until the validation part has not improved for some epochs; the best epoch's weights are kept."""
    tables = [model.factors.weight, model.bias.weight, model.genre_factors.weight]
    rest = [*model.linear.parameters(), *model.tower.parameters()]
    optimiser = torch.optim.Adam(
        [{"params": tables, "weight_decay": 3e-4}, {"params": rest, "weight_decay": 1e-6}], lr=1e-3
    )
    generator = torch.Generator().manual_seed(SEED)
    kept = copy.deepcopy(model)
    best, best_loss, waited = kept, np.inf, 0
    for epoch in range(EPOCHS):
        _epoch(model, kept, optimiser, train, generator)
        score = predict(kept, valid)
        loss = log_loss(valid.label, score)
        print(f"epoch {epoch + 1}: validation log loss {loss:.5f}, AUC {auc(valid.label, score):.5f}")
        if loss < best_loss:
            best, best_loss, waited = copy.deepcopy(kept), loss, 0
        elif (waited := waited + 1) == PATIENCE:
            break
    return best.eval()


def _epoch(
    model: DeepFm, kept: DeepFm, optimiser: torch.optim.Optimizer, train: Rows, generator: torch.Generator
) -> None:
    model.train()
    tensors = [torch.from_numpy(a) for a in (*inputs(train).values(), train.label)]
    loss_of = torch.nn.BCEWithLogitsLoss()
    for picked in torch.randperm(len(train.label), generator=generator).split(BATCH):
        ids, genres, history, label = (t[picked] for t in tensors)
        hidden = torch.rand(len(ids), 2, generator=generator) < torch.tensor(UNKNOWN_SHARES)
        ids = torch.cat([ids[:, :2].masked_fill(hidden, 0), ids[:, 2:]], 1)
        optimiser.zero_grad()
        loss_of(model.logit(ids, genres, history).squeeze(1), label).backward()
        optimiser.step()
        with torch.no_grad():
            for mean, weight in zip(kept.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 1 - AVERAGING)


def predict(model: DeepFm, rows: Rows) -> np.ndarray:
    """The scores of rows, one by one in float32."""
    model.eval()
    with torch.no_grad():
        return model(*(torch.from_numpy(a) for a in inputs(rows).values())).squeeze(1).numpy()


def inputs(rows: Rows) -> dict[str, np.ndarray]:
    """The model's inputs in the order of its graph."""
    return {"ids": rows.ids, "genres": rows.genres, "history": rows.history}


def export(model: DeepFm, rows: Rows, path: Path) -> None:
    """Writes the ONNX file with a free batch axis."""
    path.parent.mkdir(parents=True, exist_ok=True)
    example = tuple(torch.from_numpy(a[:4]) for a in inputs(rows).values())
    batch = torch.export.Dim("batch")
    torch.onnx.export(
        model, example, path, input_names=list(inputs(rows)), output_names=["score"], opset_version=OPSET,
        dynamo=True, external_data=False, dynamic_shapes=tuple({0: batch} for _ in example),
    )  # fmt: skip
    file = onnx.load(path)
    for node in file.graph.node:
        del node.metadata_props[:]
    for value in file.graph.value_info:
        del value.metadata_props[:]
    onnx.checker.check_model(file, full_check=True)
    onnx.save(file, path)


def compare(path: Path, rows: Rows, scores: np.ndarray) -> None:
    """Stops unless the runtime gives PyTorch's scores, in one batch and row by row."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    whole = session.run(None, inputs(rows))[0][:, 0]
    single = np.array(
        [session.run(None, inputs(rows.part(i, i + 1)))[0][0, 0] for i in range(0, len(scores), 10)]
    )
    print(
        f"largest difference to PyTorch: {abs(whole - scores).max():.1e} over {len(scores)} rows in one batch"
    )
    np.testing.assert_allclose(whole, scores, atol=2e-6)
    np.testing.assert_allclose(single, scores[::10], atol=2e-6)
    sizes = {name: int(v) for name, v in zip(FIELDS, rows.ids.max(0) + 1, strict=True)}
    print(f"{path.stat().st_size:,} bytes, ids up to {sizes}")


if __name__ == "__main__":
    main()
