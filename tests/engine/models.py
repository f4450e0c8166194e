"""Packages of one model in several versions: rows of two numbers, multiplied."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper

from seatrial.check import init_package
from seatrial.contract import write_manifest


def scaling(folder: Path, factor: float, weights: int = 1) -> Path:
    """`y = factor * x`; `weights` floats make the file larger and change nothing."""
    ballast = numpy_helper.from_array(_zeros(weights), "ballast")
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "factor"], ["scaled"]),
            helper.make_node("ReduceSum", ["ballast"], ["nothing"], keepdims=0),
            helper.make_node("Add", ["scaled", "nothing"], ["y"]),
        ],
        "scaling",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [helper.make_tensor("factor", TensorProto.FLOAT, [], [factor]), ballast],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file = folder / "scaling.onnx"
    onnx.save(model, file)
    return file


def package(root: Path, factor: float, version: str = "1.0.0", **serving: Any) -> Path:
    """A package of the model `scaling`, made anew in place of what stood there."""
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    weights = serving.pop("weights", 1)
    init_package(scaling(root.parent, factor, weights), root)
    change(root, "seatrial.yaml", name="scaling", version=version)
    change(root, "serving.yaml", **serving)
    return root


def change(root: Path, file: str, **changes: Any) -> None:
    """Changes a file of a package and names its files anew."""
    content = yaml.safe_load((root / file).read_text())
    (root / file).write_text(yaml.safe_dump(content | changes))
    write_manifest(root)


def spoil_golden(root: Path) -> None:
    """Writes answers that the model does not give."""
    golden = root / "samples" / "golden.jsonl"
    rows = [json.loads(line) for line in golden.read_text().splitlines()]
    for row in rows:
        row["outputs"][0]["data"] = [12345.0] * len(row["outputs"][0]["data"])
    golden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_manifest(root)


def _zeros(n: int) -> Any:
    import numpy as np

    return np.zeros(n, np.float32)
