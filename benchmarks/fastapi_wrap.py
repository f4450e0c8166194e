"""The peer: a plain FastAPI wrap around onnxruntime, as a tutorial would write it. Takes the same JSON bodies.

usage: python fastapi_wrap.py MODEL PORT
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnxruntime as ort
import uvicorn
from fastapi import FastAPI

TYPES = {"FP32": np.float32, "INT64": np.int64, "INT32": np.int32}


def application(model: str) -> FastAPI:
    """One route that parses, runs and answers. The handler is not async, so that runs share the thread pool."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    app = FastAPI()

    @app.post("/infer")
    def infer(request: dict[str, Any]) -> dict[str, Any]:
        feeds = {
            t["name"]: np.array(t["data"], dtype=TYPES[t["datatype"]]).reshape(t["shape"])
            for t in request["inputs"]
        }
        outputs = session.run(None, feeds)
        return {
            "outputs": [
                {"name": n, "datatype": "FP32", "shape": list(o.shape), "data": o.ravel().tolist()}
                for n, o in zip(names, outputs, strict=True)
            ]
        }

    return app


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
