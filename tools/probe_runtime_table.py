"""Measures which opset and IR version the installed onnxruntime wheel loads, and holds it against the table.

Prints one JSON object. Exit 0 when the table says the same, 1 when it differs; with `--write` the row of this
version is put into the table. Versions that are not installed cannot be measured here and stay as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import onnxruntime as ort
from onnx import TensorProto, helper

from seatrial.check.runtime import runtime_row

TABLE = (
    Path(__file__).resolve().parent.parent / "python" / "seatrial" / "check" / "data" / "runtime_table.json"
)
HIGHEST_TRIED = 64


def loads(ir: int, imports: list[tuple[str, int]], op: str, domain: str = "", **attributes: object) -> bool:
    """Whether a model of one node loads."""
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], domain=domain, **attributes)],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid(d, v) for d, v in imports]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def measure() -> dict[str, object]:
    """The row of the installed version."""
    tried = range(1, HIGHEST_TRIED)
    scale = {"scale": [1.0], "offset": [0.0]}
    return {
        "from": ort.__version__,
        "to": ort.__version__,
        "opset": max(v for v in tried if v >= 7 and loads(8, [("", v)], "Identity")),
        "ir": max(v for v in tried if v >= 3 and loads(v, [("", 17)], "Identity")),
        "ai.onnx.ml": max(
            v
            for v in tried
            if loads(8, [("", 17), ("ai.onnx.ml", v)], "Scaler", domain="ai.onnx.ml", **scale)
        ),
    }


def main() -> int:
    """Measures, compares, and on request writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put a differing row into the table")
    write = parser.parse_args().write
    found = measure()
    row = runtime_row(ort.__version__)
    known = row is not None and row.first <= _version(ort.__version__) <= row.last
    same = (
        known
        and row is not None
        and (row.opset, row.ir, row.ml_opset) == (found["opset"], found["ir"], found["ai.onnx.ml"])
    )
    sys.stdout.write(json.dumps({**found, "table_agrees": same}) + "\n")
    if write and not same:
        table = json.loads(TABLE.read_text("utf-8"))
        rows = [r for r in table["rows"] if (r["from"], r["to"]) != (ort.__version__, ort.__version__)]
        table["rows"] = sorted([*rows, found], key=lambda r: _version(r["from"]))
        head = json.dumps({k: v for k, v in table.items() if k != "rows"}, indent=1)[:-2]
        lines = ",\n  ".join(json.dumps(r) for r in table["rows"])
        TABLE.write_text(f'{head},\n "rows": [\n  {lines}\n ]\n}}\n', "utf-8")
        return 0
    return 0 if same else 1


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3])


if __name__ == "__main__":
    sys.exit(main())
