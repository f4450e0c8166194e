"""Rows, arrays, Arrow tables and data frames give equal tensors; what does not fit is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seatrial.errors import ContractError, UsageError
from seatrial.features import FieldCounts, Plan, load, transform
from tests.features.folders import MURMUR, make_folder

TENSORS: dict[str, tuple[str, list[Any]]] = {"a": ("INT64", [4]), "b": ("FP32", [2]), "c": ("BOOL", [])}
FEATURES = [
    {"field": "user", "type": "string", "tensor": "a", "column": 0, "steps": [{**MURMUR, "buckets": 1000}],
     "missing": {"rule": "value", "value": -1}},
    {"field": "age", "type": "integer", "tensor": "a", "column": 1, "missing": {"rule": "value", "value": -1}},
    {"field": "tags", "type": "list", "items": "integer", "tensor": "a", "column": 2, "steps": [
        {"step": "sequence", "length": 2, "pad": 0, "pad_side": "right", "truncate_side": "right"}]},
    {"field": "price", "type": "number", "tensor": "b", "column": 0, "steps": [{"step": "log1p"}],
     "missing": {"rule": "indicator", "value": 0, "column": 1}},
    {"field": "new", "type": "boolean", "tensor": "c"},
]  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {"user": "foo", "age": 30, "tags": [1, 2, 3], "price": 9.5, "new": True},
    {"user": "北京", "age": None, "tags": [], "price": None, "new": False},
    {"user": None, "age": 7, "tags": [5], "price": 0.0, "new": True},
]
COLUMNS = {field: [row[field] for row in ROWS] for field in ROWS[0]}
EXPECTED = {
    "a": [[784, 30, 1, 2], [79, -1, 0, 0], [-1, 7, 5, 0]],
    "b": [[np.log1p(9.5), 0], [0, 1], [0, 0]],
    "c": [True, False, True],
}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return load(make_folder(tmp_path, TENSORS, FEATURES))


def check(plan: Plan, data: Any) -> None:
    made = plan.transform(data)
    assert {name: array.dtype.str for name, array in made.items()} == {"a": "<i8", "b": "<f4", "c": "|b1"}
    for name, expected in EXPECTED.items():
        np.testing.assert_array_equal(made[name], np.asarray(expected, dtype=made[name].dtype))


def test_rows(plan: Plan) -> None:
    check(plan, ROWS)
    check(plan, [{f: v for f, v in row.items() if v is not None} for row in ROWS])
    gaps = [{f: float("nan") if v is None and f == "price" else v for f, v in row.items()} for row in ROWS]
    check(plan, gaps)
    numpy_values = [{f: np.int32(v) if f == "age" and v else v for f, v in row.items()} for row in ROWS]
    check(plan, numpy_values)


def test_arrays(plan: Plan) -> None:
    tags = np.empty(3, dtype=object)
    tags[:] = COLUMNS["tags"]
    arrays = {
        "user": np.array(COLUMNS["user"], dtype=object),
        "age": np.array([30, np.nan, 7]),
        "tags": tags,
        "price": np.array([9.5, np.nan, 0.0]),
        "new": np.array([True, False, True]),
    }
    check(plan, arrays)
    check(plan, COLUMNS)


def test_tables_whole_sliced_chunked_and_with_codes(plan: Plan) -> None:
    table = pa.Table.from_pylist(ROWS)
    check(plan, table)
    check(plan, table.to_batches()[0])
    check(plan, pa.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1)]))
    longer = pa.concat_tables([table, table]).combine_chunks()
    check(plan, longer.slice(3, 3))
    codes = table.column("user").combine_chunks().dictionary_encode()
    check(plan, table.set_column(0, "user", codes))
    check(plan, table.set_column(1, "age", table.column("age").cast(pa.int8())))
    check(plan, table.set_column(0, "user", table.column("user").cast(pa.large_string())))


def test_data_frames(plan: Plan) -> None:
    pandas = pytest.importorskip("pandas", reason="SKIPPED: pandas is not installed")
    check(plan, pandas.DataFrame(COLUMNS))
    check(plan, pandas.DataFrame(COLUMNS).convert_dtypes().iloc[::-1].iloc[::-1])


def test_an_array_of_two_axes_is_a_column_of_lists(tmp_path: Path) -> None:
    plan = load(make_folder(tmp_path, {"a": ("INT64", [2])}, [{**FEATURES[2], "column": 0}]))
    made = plan.transform({"tags": np.arange(6).reshape(2, 3)})
    assert made["a"].tolist() == [[0, 1], [3, 4]]
    made["a"][0, 0] = 9  # the arrays are the caller's own


def test_no_rows(plan: Plan) -> None:
    for data in ([], {}, pa.Table.from_pylist(ROWS).slice(0, 0)):
        assert plan.transform(data)["a"].shape == (0, 4)


def test_counts_go_on_over_calls(tmp_path: Path, plan: Plan) -> None:
    plan.transform(ROWS)
    plan.transform(ROWS)
    assert plan.counts()[:2] == [FieldCounts("user", 2, 0), FieldCounts("age", 2, 0)]
    assert plan.fields == list(ROWS[0])
    assert plan.cache_counts() is None
    assert transform(tmp_path, ROWS)["a"].shape == (3, 4)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([{**ROWS[0], "age": "30"}], ["instance 0, field `age`", "the string `30`", "a whole number"]),
        ([ROWS[0], {**ROWS[1], "price": -1}], ["instance 1, field `price`", "`-1.0`", "above -1"]),
        ([{**ROWS[0], "cost": 1}], ["instance 0", "no field `cost`", "`user`"]),
        ({**COLUMNS, "cost": [1, 2, 3]}, ["no field `cost`"]),
        ({**COLUMNS, "age": [1, 2]}, ["different lengths", "`age` 2"]),
        ({**COLUMNS, "age": [1, "2", 3]}, ["field `age`", "no single type"]),
        ({**COLUMNS, "age": [1.5, 2.0, 3.0]}, ["instance 0, field `age`", "`1.5`"]),
        ({**COLUMNS, "price": np.array(["2020-01-01"] * 3, dtype="M8[s]")}, ["field `price`", "timestamp"]),
        ("rows", ["data of type `str`"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(plan: Plan, data: Any, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        plan.transform(data)
    assert [w for w in words if w not in str(caught.value)] == []
    assert caught.value.hint


def test_a_spec_that_cannot_work_is_named(tmp_path: Path) -> None:
    unfinished = [{"field": "a", "type": "string", "tensor": "x"}]
    with pytest.raises(ContractError, match=r"feature 0 \(field `a`\): a text must become a number"):
        load(make_folder(tmp_path, {"x": ("FP32", [1])}, unfinished))
    (tmp_path / "features.yaml").write_text(
        "apiVersion: seatrial/v1\nkind: Features\nfeatures: [{tensor: x, setps: []}]\n"
    )
    with pytest.raises(ContractError, match="setps"):
        load(tmp_path)
    with pytest.raises(ContractError, match="is no folder"):
        load(tmp_path / "none")


def test_it_works_where_pandas_is_not_installed_and_loads_no_runtime(tmp_path: Path) -> None:
    make_folder(tmp_path, TENSORS, FEATURES)
    code = f"""
import sys
class NoPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas())
from seatrial.features import transform
transform({str(tmp_path)!r}, {ROWS!r})
transform({str(tmp_path)!r}, {COLUMNS!r})
sys.exit("onnxruntime" in sys.modules or "onnx" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
