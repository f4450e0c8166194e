"""Example 03 under concurrent requests of mixed lengths: joined and padded answers are those of each text alone."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.contract import load_package
from seatrial.engine import EngineOptions, resolve, start
from tests.engine.client import Connection, metric

SEED, N_CLIENTS, N_EACH = 5, 16, 8
ALLOWED = 1e-5


def request(ids: list[int]) -> dict[str, Any]:
    def tensor(name: str, data: list[int]) -> dict[str, Any]:
        return {"name": name, "datatype": "INT64", "shape": [1, len(ids)], "data": data}

    return {"inputs": [tensor("input_ids", ids), tensor("attention_mask", [1] * len(ids))]}


def texts() -> list[list[int]]:
    """Token numbers of lengths from 3 to 60, most of them short."""
    chance = random.Random(SEED)
    lengths = [min(60, 3 + int(chance.expovariate(0.08))) for _ in range(N_CLIENTS * N_EACH)]
    return [[101, *(chance.randrange(1000, 30_000) for _ in range(n - 2)), 102] for n in lengths]


@pytest.mark.timeout(180)
def test_answers_are_those_of_each_text_alone(prepared: Path) -> None:
    import onnxruntime as ort

    package = load_package(prepared / "03-text-embedding")
    batching = package.batching()
    assert batching is not None
    assert batching.padding is not None, batching.why
    sent = texts()
    config = resolve([package], EngineOptions(executors=1, threads=1))
    config["models"][0] |= {"timeout_ms": 60_000, "queue_rows": 1024}

    with start(config, timeout=120) as server:

        def client(n: int) -> list[list[float]]:
            with Connection(server.port, timeout=60) as connection:
                answers = []
                for ids in sent[n::N_CLIENTS]:
                    body = json.dumps(request(ids)).encode()
                    answer = connection.request("POST", "/v2/models/text-embedding/infer", body)
                    assert answer.status == 200, answer.body
                    answers.append(answer.json["outputs"][0]["data"])
                return answers

        with ThreadPoolExecutor(N_CLIENTS) as pool:
            served = list(pool.map(client, range(N_CLIENTS)))
        padding = metric(server.port, "seatrial_batching_positions_total", kind="padding")
        runs = metric(server.port, "seatrial_session_runs_total", outcome="ok")
        assert server.ready is not None
        costs = server.ready.models[0]["costs"]

    assert runs < len(sent), "nothing was joined"
    assert padding > 0, "only equal lengths were joined"
    assert {c["length"] for c in costs} >= {8, 16, 32}
    session = ort.InferenceSession(str(package.model_file), providers=["CPUExecutionProvider"])
    for n, answers in enumerate(served):
        for ids, answer in zip(sent[n::N_CLIENTS], answers, strict=True):
            feeds = {t["name"]: np.array([t["data"]], dtype=np.int64) for t in request(ids)["inputs"]}
            (alone,) = session.run(None, feeds)
            gap = float(np.abs(np.array(answer) - alone[0]).max())
            assert gap <= ALLOWED, f"{len(ids)} tokens: off by {gap:.2g}, allowed {ALLOWED:g}, seed {SEED}"
