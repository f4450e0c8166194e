"""The models of `models.py` for Triton's Python backend; run by Triton, which names the behaviour in the configuration."""

from __future__ import annotations

import json
import os
import sys

# The interpreter inside Triton's stub is an isolated one: it does not look at PYTHONPATH by itself.
sys.path.extend(os.environ["PYTHONPATH"].split(os.pathsep))

import numpy as np
import triton_python_backend_utils as triton

TABLE = np.arange(8, dtype=np.float32).reshape(4, 2) / 2


def lookup(ids):
    if ids.size and (ids.min() < -4 or ids.max() >= 4):
        raise IndexError("an id lies outside the table of 4 rows")
    return {"row": TABLE[ids]}


def inverse(x):
    with np.errstate(divide="ignore"):
        return {"y": (np.float32(1) / x).astype(np.float32)}


BEHAVIOURS = {
    "echo": lambda x: {"y": x},
    "sums": lambda a, b: {"sum": a + b, "difference": a - b},
    "inverse": inverse,
    "lookup": lookup,
}


class TritonPythonModel:
    """The name and the methods are Triton's."""

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.names = [tensor["name"] for tensor in config["input"]]
        self.behaviour = BEHAVIOURS[config["parameters"]["does"]["string_value"]]

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        given = {name: triton.get_input_tensor_by_name(request, name).as_numpy() for name in self.names}
        try:
            made = self.behaviour(**given)
        except IndexError as error:
            return triton.InferenceResponse([], triton.TritonError(str(error)))
        wanted = request.requested_output_names()
        return triton.InferenceResponse([triton.Tensor(n, v) for n, v in made.items() if n in wanted])
