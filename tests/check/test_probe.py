"""The probe: what it finds about sizes and rows, and what becomes of a model that dies, hangs or eats memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from seatrial.check import check_package, init_package
from seatrial.check.probe import Job, run_probe
from seatrial.check.probe import parent as parent_module
from seatrial.check.probe.shapes import find_shapes
from seatrial.contract import load_package
from seatrial.errors import ContractError
from tests.check.modelling import I64, F, const, model, node, save, value


def packed(proto: onnx.ModelProto, folder: Path, **options: object):  # type: ignore[no-untyped-def]
    package = load_package(init_package(save(proto, folder / "m.onnx"), folder / "out", **options))  # type: ignore[arg-type]
    batching = package.batching()
    assert batching is not None
    return package, batching


def test_sizes_are_free_fixed_or_tied() -> None:
    """A runtime that wants a == b, takes any c, d only at 4, and e from 3 on."""

    def attempt(sizes: dict[str, int]) -> str | None:
        if sizes["a"] != sizes["b"]:
            return "a and b differ"
        if sizes["d"] != 4:
            return "Reshape node: d"
        return None if sizes["e"] >= 3 else "too small"

    found = find_shapes(["a", "b", "c", "d", "e"], {"a", "b"}, attempt)
    assert found.error is None
    groups = {g.symbols: g for g in found.groups}
    assert set(groups) == {("a", "b"), ("c",), ("d",), ("e",)}
    assert groups[("d",)].fixed == 4
    assert "Reshape node" in str(groups[("d",)].why)
    assert groups[("e",)].fixed is None
    assert min(groups[("e",)].works) == 3
    assert groups[("a", "b")].fixed is None


def test_no_size_that_works_is_an_error() -> None:
    assert find_shapes(["a"], {"a"}, lambda _: "never").error == "never"
    assert find_shapes([], set(), lambda _: None).error is None


def test_a_row_that_sees_only_some_mates_is_found(tmp_path: Path) -> None:
    """Rows are mixed only when there are more than two of them."""
    proto = model(
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "zero"], ["n"]),
            node("Greater", ["n", "two"], ["many"]),
            node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
            node("Sub", ["x", "mean"], ["mixed"]),
            node("Where", ["many", "mixed", "x"], ["y"]),
        ],
        [value("x", ["n", 2])],
        [value("y", ["n", 2])],
        [const("zero", 0, "int64"), const("two", 2, "int64")],
    )
    _, batching = packed(proto, tmp_path)
    assert batching.mode == "none"
    assert "3 rows" in batching.why


def test_dynamic_quantisation_is_found_to_mix_rows(tmp_path: Path) -> None:
    proto = model(
        [
            node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            node("DequantizeLinear", ["q", "s", "z"], ["y"]),
        ],
        [value("x", ["n", 8])],
        [value("y", ["n", 8])],
    )
    package, batching = packed(proto, tmp_path)
    assert batching.mode == "none"
    assert any(f.code == "MOD013" for f in check_package(package.root).findings)


def test_rounding_is_not_mixing(tmp_path: Path) -> None:
    """A sum of 2,048 products may round otherwise in a batch; that is no dependence on mates."""
    chance = np.random.default_rng(1)
    proto = model(
        [node("MatMul", ["x", "w"], ["h"]), node("Softmax", ["h"], ["y"], axis=-1)],
        [value("x", ["n", 2048])],
        [value("y", ["n", 64])],
        [const("w", chance.standard_normal((2048, 64)) / 45)],
    )
    _, batching = packed(proto, tmp_path)
    assert batching.mode == "full", batching.why


def test_free_inner_sizes_give_equal_length(tmp_path: Path) -> None:
    proto = model([node("Neg", ["x"], ["y"])], [value("x", ["n", "t"])], [value("y", ["n", "t"])])
    _, batching = packed(proto, tmp_path)
    assert (batching.mode, batching.axis) == ("equal-length", 0)


def test_an_input_without_rows_means_no_batching(tmp_path: Path) -> None:
    proto = model(
        [node("Add", ["x", "state"], ["y"])],
        [value("x", ["n", 2]), value("state", [1, 2])],
        [value("y", ["n", 2])],
    )
    _, batching = packed(proto, tmp_path)
    assert batching.mode == "none"
    assert "`state`" in batching.why


def test_dimensions_without_a_symbol_get_a_name(tmp_path: Path) -> None:
    proto = model(
        [node("Add", ["a", "b"], ["y"])], [value("a", [None, 2]), value("b", [None, 2])], [value("y", None)]
    )
    package, batching = packed(proto, tmp_path)
    assert batching.mode == "full"
    shapes = [t["shape"] for side in package.signature.resolved().values() for t in side]
    assert shapes[:2] == [[{"name": "batch", "max": None}, 2]] * 2
    assert len(shapes[2]) == 2, "the rank of an undeclared output comes from a real answer"


def test_a_model_with_a_range_through_a_cast_and_an_inner_graph(tmp_path: Path) -> None:
    """Through a Cast the range holds; an input that an inner graph reads as well has none."""
    table = const("table", np.arange(10).reshape(5, 2))
    cast = model(
        [node("Cast", ["ids"], ["wide"], to=I64), node("Gather", ["table", "wide"], ["y"])],
        [value("ids", ["n"], TensorProto.INT32)],
        [value("y", ["n", 2])],
        [table],
    )
    package, _ = packed(cast, tmp_path / "cast")
    assert package.signature.inputs[0].range == (0, 4)
    inner = helper.make_graph([node("Cast", ["ids"], ["f"], to=F)], "inner", [], [value("f", ["n"])])
    other = helper.make_graph([node("Cast", ["ids"], ["g"], to=F)], "other", [], [value("g", ["n"])])
    both = model(
        [
            node("Gather", ["table", "ids"], ["y"]),
            node("If", ["flag"], ["z"], then_branch=inner, else_branch=other),
        ],
        [value("ids", ["n"], I64), value("flag", [], TensorProto.BOOL)],
        [value("y", ["n", 2]), value("z", ["n"])],
        [table],
    )
    package, _ = packed(both, tmp_path / "both")
    assert package.signature.inputs[0].range is None


@pytest.mark.parametrize(
    "name",
    [
        'a"b',
        "a: b # c",
        "a | b --> c",
        "a\\u0041",
        "a\u2028b",
        "\ufeffa",
        "😀",
        "QUESTION(infra): why?",
        "{{x}}",
        "'",
        "- a",
        "%",
    ],
)
def test_any_printable_name_survives_the_files(tmp_path: Path, name: str) -> None:
    proto = model([node("Neg", [name], ["y"])], [value(name, [name, 2])], [value("y", [name, 2])])
    package, batching = packed(proto, tmp_path)
    assert [t.name for t in package.signature.inputs] == [name]
    assert batching.mode == "full"
    assert check_package(package.root).ok


def job(tmp_path: Path, proto: onnx.ModelProto, **options: object) -> Job:
    return Job(
        model=save(proto, tmp_path / "m.onnx"),
        inputs=[{"name": "x", "datatype": "FP32", "dims": ["n", 2], "range": None}],
        outputs=[{"name": "y", "datatype": "FP32"}],
        requests=tmp_path / "requests.jsonl",
        golden=tmp_path / "golden.jsonl",
        **options,  # type: ignore[arg-type]
    )


def endless(steps: int) -> onnx.ModelProto:
    body = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("Mul", ["v", "v"], ["v2"])],
        "body",
        [value("i", [], I64), value("c", [], TensorProto.BOOL), value("v", None)],
        [value("c2", [], TensorProto.BOOL), value("v2", None)],
    )
    return model(
        [node("Loop", ["steps", "", "x"], ["y"], body=body)],
        [value("x", ["n", 2])],
        [value("y", ["n", 2])],
        [const("steps", steps, "int64")],
    )


def test_a_model_that_never_ends_is_stopped(tmp_path: Path) -> None:
    result = run_probe(job(tmp_path, endless(1 << 60), timeout_s=4.0))
    assert result.error == "it took longer than 4 s"
    assert result.step == "find the free dimensions"


def test_a_model_that_wants_all_memory_is_refused(tmp_path: Path) -> None:
    proto = model(
        [
            node("ConstantOfShape", ["shape"], ["big"]),
            node("ReduceSum", ["big"], ["s"], keepdims=0),
            node("Add", ["x", "s"], ["y"]),
        ],
        [value("x", ["n", 2])],
        [value("y", ["n", 2])],
        [const("shape", [1 << 36], "int64")],
    )
    source = save(proto, tmp_path / "m.onnx")
    with pytest.raises(ContractError, match="could not be run") as caught:
        init_package(source, tmp_path / "out")
    assert caught.value.hint
    assert not (tmp_path / "out").exists()


def test_a_process_that_dies_is_named_by_its_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that crashes cannot be had to order, so the child is one that aborts."""
    (tmp_path / "dying_child.py").write_text("import os\nos.abort()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    said = parent_module.run_child("dying_child", {}, tmp_path, 20.0)
    assert said == "the runtime died of SIGABRT"
