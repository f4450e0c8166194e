"""The limit: onnxruntime in the same process, no server. Prints rows per second one by one and in batches as JSON.

usage: python in_process.py MODEL REQUESTS.jsonl SECONDS BATCH
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

TYPES = {"FP32": np.float32, "INT64": np.int64, "INT32": np.int32}


def feeds(lines: list[str]) -> dict[str, Any]:
    """Several one-row requests joined on axis 0."""
    requests = [json.loads(line)["inputs"] for line in lines]
    return {
        tensors[0]["name"]: np.concatenate(
            [np.array(t["data"], dtype=TYPES[t["datatype"]]).reshape(t["shape"]) for t in tensors]
        )
        for tensors in zip(*requests, strict=True)
    }


def rate(session: Any, batches: list[dict[str, Any]], rows: int, seconds: float) -> dict[str, float]:
    """Rows per second of wall clock and CPU microseconds per row."""
    for batch in batches:
        session.run(None, batch)
    count, cpu, start = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        session.run(None, batches[count % len(batches)])
        count += 1
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {"rows_per_s": count * rows / wall, "cpu_us_per_row": cpu / (count * rows) * 1e6}


def main() -> None:
    """Measures both and prints one line."""
    model, requests, seconds, size = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    lines = requests.read_text().splitlines()
    single = [feeds([line]) for line in lines[:64]]
    joined = [feeds(lines[i : i + size]) for i in range(0, len(lines) - size + 1, size)]
    found = {"single": rate(session, single, 1, seconds), "joined": rate(session, joined, size, seconds)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
