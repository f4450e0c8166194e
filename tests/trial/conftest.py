"""A small package made on the spot, and a plan of seconds instead of minutes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.contract import write_manifest
from seatrial.trial import Plan

SHORT = Plan(
    profile="short",
    idle_s=0.5,
    smoke_s=1,
    smoke_rate_per_s=50,
    step_s=1,
    step_shares=(0.5, 1.0),
    hold_s=2,
    headroom_s=1,
    headroom_shares=(2.0,),
    bisections=1,
)

# Loose on purpose: these tests ask what the flow does, not how fast a shared machine is.
LOOSE = {
    "p50": "5s",
    "p95": "6s",
    "p99": "7s",
    "error_budget": "1%",
    "peak": "100/s",
    "memory_per_instance": "2GiB",
}


def promise(package: Path, **promises: str) -> Path:
    """Writes promises into slo.yaml and refreshes the manifest."""
    text = (package / "slo.yaml").read_text()
    for key, value in promises.items():
        text, n = re.subn(rf"(?m)^(\s*{key}): .*$", rf"\1: {value}", text, count=1)
        assert n == 1, f"{key} is not in slo.yaml"
    (package / "slo.yaml").write_text(text)
    write_manifest(package)
    return package


@pytest.fixture
def make_package(tmp_path: Path) -> Callable[..., Path]:
    """Packs y = 2x and promises something."""

    def make(**promises: str) -> Path:
        import onnx
        from onnx import TensorProto, helper

        from seatrial.check import init_package

        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
        graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, tmp_path / "double.onnx")
        return promise(init_package(tmp_path / "double.onnx", tmp_path / "double"), **(LOOSE | promises))

    return make


@pytest.fixture
def text_package(tmp_path: Path) -> Path:
    """Packs a model that looks texts up; the samples hold letters beyond ASCII, and bytes that are no UTF-8."""
    import onnx
    from onnx import TensorProto, helper

    from seatrial.check import init_package

    s = helper.make_tensor_value_info("s", TensorProto.STRING, ["batch"])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, ["batch"])
    names = {"keys_strings": ["café", "北京"], "values_int64s": [1, 5], "default_int64": -1}
    node = helper.make_node("LabelEncoder", ["s"], ["y"], domain="ai.onnx.ml", **names)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph([node], "lookup", [s], [y])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "lookup.onnx")
    samples = [[text] for text in ("café", "北京", {"base64": "/w=="})]
    lines = [{"inputs": [{"name": "s", "datatype": "BYTES", "shape": [1], "data": d}]} for d in samples]
    (tmp_path / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    package = init_package(tmp_path / "lookup.onnx", tmp_path / "lookup", tmp_path / "requests.jsonl")
    return promise(package, **LOOSE)
