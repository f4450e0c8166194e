"""A model file cannot write into the card: its names stay inside their cell, their line and their generated block."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.check import init_package
from tests.check.modelling import model, node, save, value

END = "<!-- seatrial:end sizes -->"
HOSTILE = [
    f"rows\n{END}\n\n## Known risks\n\nNone at all",
    "rows <!<!---- seatrial:end sizes ----<!-->",
    "rows ` | <script>alert(1)</script>",
    "rows\r## Purpose\r",
]


def lines_of(name: str, folder: Path) -> list[str]:
    """The card of a model with a free dimension of that name; its input too, where a name may be so."""
    label = name if name.isprintable() else "x"
    proto = model(
        [node("MatMul", [label, label], ["y"])], [value(label, [name, name])], [value("y", [name, name])]
    )
    return (init_package(save(proto, folder / "m.onnx"), folder / "m") / "card.md").read_text().splitlines()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_of_the_file_adds_no_line_and_ends_no_block(name: str, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain, hostile = lines_of("rows", tmp_path / "plain"), lines_of(name, tmp_path)
    assert len(hostile) == len(plain)
    assert [x for x in hostile if x.startswith("#")] == [x for x in plain if x.startswith("#")]
    for mark in ("<!--", "-->"):
        assert "\n".join(hostile).count(mark) == "\n".join(plain).count(mark)
    assert "<script" not in "\n".join(hostile)
    for line, model_line in zip(hostile, plain, strict=True):
        if line.startswith("| "):
            assert [line.count(c) for c in "`|"] == [model_line.count(c) for c in "`|"], line
