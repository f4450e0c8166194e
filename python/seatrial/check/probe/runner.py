"""An onnxruntime session behind one call: arrays in, arrays out, errors as one plain sentence. Child process only."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from seatrial.check.tensors import numpy_type

__all__ = ["RunError", "Runner"]

_BFLOAT16 = 16


class RunError(Exception):
    """The runtime said no; the text names the node where it does."""


class Runner:
    """One session with one thread, as quiet as the runtime allows."""

    def __init__(self, model: Path, outputs: list[tuple[str, str]], longest_sum: int = 1) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.outputs = outputs
        self.longest_sum = longest_sum
        try:
            self.session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise RunError(sentence(error)) from error
        # Plain arrays cannot hold bfloat16, and the runtime's own values cannot be made from texts.
        given = [(v.name, v.type) for v in (*self.session.get_inputs(), *self.session.get_outputs())]
        self.has_bfloat16 = any("bfloat16" in t for _, t in given)

    def run(self, inputs: dict[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """The outputs in the order of the graph."""
        options = ort.RunOptions()
        options.log_severity_level = 4
        names = [n for n, _ in self.outputs]
        try:
            if not self.has_bfloat16:
                return [np.asarray(v) for v in self.session.run(names, inputs, options)]
            feeds = {name: _ort_value(array) for name, array in inputs.items()}
            values = self.session.run_with_ort_values(names, feeds, options)
            return [_array(v, t) for v, (_, t) in zip(values, self.outputs, strict=True)]
        except Exception as error:
            raise RunError(sentence(error)) from error


def sentence(error: Exception) -> str:
    """A runtime error without its C++ places: `Reshape node: the input tensor cannot be reshaped ...`."""
    text = " ".join(str(error).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    node = re.search(r"while running (\w+) node\. Name:'([^']*)' Status Message: (.*)", text)
    if node:
        what = re.sub(r"^/\S+:\d+ .*? (?:was false\.|\) )", "", node[3]).strip()
        label = f"{node[1]} node `{node[2]}`" if node[2] else f"{node[1]} node"
        return f"{label}: {what[:200]}"
    return re.sub(r"/\S+:\d+ [^ ]*\([^)]*\)(?: const)? ", "", text)[:300]


def _ort_value(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype == numpy_type("BF16"):
        raw = np.ascontiguousarray(array).view(np.uint16)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, _BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))


def _array(value: Any, datatype: str) -> np.ndarray[Any, Any]:
    if datatype != "BF16":
        return np.array(value.numpy())
    # The Python face has no NumPy type for bfloat16, so its bytes are copied from where the value lies.
    size = value.tensor_size_in_bytes()
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(raw, dtype=numpy_type("BF16")).reshape(value.shape()).copy()
