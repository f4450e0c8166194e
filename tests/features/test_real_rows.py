"""All rows of two public click tables: equal, bit for bit, to a reference in plain Python, by rows and by columns."""

from __future__ import annotations

import csv
import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seatrial.features import Plan, load
from tests.features.folders import MURMUR, make_folder
from tests.features.reference import floats, longs, murmur3_32, scaled_log

pytestmark = pytest.mark.shared

NUMBERS = [f"I{i}" for i in range(1, 14)]
CATEGORIES = [f"C{i}" for i in range(1, 27)]
BUCKETS = 10_000
MEAN, STD = 2.5, 1.75
LEAST = -0.5  # negative counts, which the table has, are drawn up to here before the logarithm


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def criteo(shared: Path) -> list[dict[str, str]]:
    rows = read(shared / "data" / "criteo_sample.csv")
    assert len(rows) == 200
    return [{field: row[field] for field in (*NUMBERS, *CATEGORIES)} for row in rows]


@pytest.fixture
def criteo_plan(tmp_path: Path) -> Plan:
    steps = [
        {"step": "clip", "min": LEAST},
        {"step": "log1p"},
        {"step": "standardise", "mean": MEAN, "std": STD},
    ]
    numbers = [
        {"field": f, "type": "string", "tensor": "dense", "column": i, "steps": [{"step": "to_number"}, *steps],
         "missing": {"rule": "indicator", "value": 0, "column": 13 + i}}
        for i, f in enumerate(NUMBERS)
    ]  # fmt: skip
    categories = [
        {"field": f, "type": "string", "tensor": "sparse", "column": i, "missing": {"rule": "value", "value": 0},
         "steps": [{**MURMUR, "buckets": BUCKETS, "offset": 1 + i * (BUCKETS + 1)}]}
        for i, f in enumerate(CATEGORIES)
    ]  # fmt: skip
    tensors = {"dense": ("FP32", [26]), "sparse": ("INT64", [26])}
    return load(make_folder(tmp_path, tensors, numbers + categories))


def criteo_reference(rows: list[dict[str, str]]) -> dict[str, bytes]:
    dense: list[float] = []
    sparse: list[int] = []
    for row in rows:
        dense += [scaled_log(float(row[f]), LEAST, MEAN, STD) if row[f] else 0.0 for f in NUMBERS]
        dense += [float(not row[f]) for f in NUMBERS]
        sparse += [
            murmur3_32(row[f].encode()) % BUCKETS + 1 + i * (BUCKETS + 1) if row[f] else 0
            for i, f in enumerate(CATEGORIES)
        ]
    return {"dense": floats(dense), "sparse": longs(sparse)}


def as_table(rows: list[dict[str, str]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def same(plan: Plan, data: Any, expected: dict[str, bytes]) -> None:
    made = plan.transform(data)
    assert made.keys() == expected.keys()
    for name, content in expected.items():
        assert made[name].tobytes() == content, name


def test_criteo_rows(criteo: list[dict[str, str]], criteo_plan: Plan) -> None:
    expected = criteo_reference(criteo)
    same(criteo_plan, criteo, expected)
    same(criteo_plan, as_table(criteo), expected)
    same(criteo_plan, {f: [row[f] for row in criteo] for f in criteo[0]}, expected)


def test_missing_cells_are_counted_by_column(criteo: list[dict[str, str]], criteo_plan: Plan) -> None:
    criteo_plan.transform(criteo)
    counted = {c.field: c.missing for c in criteo_plan.counts()}
    empty = Counter(f for row in criteo for f, text in row.items() if not text)
    assert counted == {f: empty[f] for f in counted}
    assert sum(counted.values()) / (200 * 40) == pytest.approx(
        0.138, abs=0.0005
    )  # the label counts as a cell


def test_columns_with_gaps_come_as_fractions(criteo: list[dict[str, str]], tmp_path: Path) -> None:
    """A data frame holds whole numbers with gaps as 260.0 and NaN; they count as the numbers they are."""
    feature = {"field": "I3", "type": "integer", "tensor": "x", "missing": {"rule": "value", "value": -1}}
    plan = load(make_folder(tmp_path, {"x": ("INT64", [1])}, [feature]))
    column = [float(row["I3"]) if row["I3"] else float("nan") for row in criteo]
    expected = {"x": longs([int(v) if v == v else -1 for v in column])}
    same(plan, {"I3": column}, expected)
    same(plan, [{"I3": v} for v in column], expected)


SEQUENCE = 5
FUXI_IDS = ["userid", "adgroup_id", "pid", "cate_id", "brand"]


def fuxictr_features() -> list[dict[str, Any]]:
    ids = [
        {"field": f, "type": "string", "tensor": "ids", "column": i, "steps": [{**MURMUR, "buckets": 997, "sign": "signed"}],
         "missing": {"rule": "replace", "with": "none"}}
        for i, f in enumerate(FUXI_IDS)
    ]  # fmt: skip
    history = {
        "field": "click_sequence", "type": "string", "tensor": "history", "missing": {"rule": "value", "value": 0},
        "steps": [
            {"step": "split", "separator": "^"},
            {**MURMUR, "buckets": 997, "sign": "signed", "modulo": "abs", "offset": 1},
            {"step": "sequence", "length": SEQUENCE, "pad": 0, "pad_side": "left", "truncate_side": "left"},
        ],
    }  # fmt: skip
    clock = [
        {"field": "time_stamp", "type": "string", "tensor": "clock", "column": i,
         "steps": [{"step": "date_part", "part": part, "zone": "Asia/Shanghai", "input": "iso"}]}
        for i, part in enumerate(("year", "month", "day", "weekday", "hour", "minute"))
    ]  # fmt: skip
    level = {
        "field": "pvalue_level",
        "type": "string",
        "tensor": "level",
        "missing": {"rule": "value", "value": 0},
        "steps": [
            {"step": "vocabulary", "words": ["1", "2", "3"], "offset": 1, "unknown": {"rule": "error"}}
        ],
    }
    price = {
        "field": "price", "type": "string", "tensor": "price", "column": 0,
        "steps": [{"step": "to_number"}, {"step": "min_max", "min": 0.5, "max": 1000}],
    }  # fmt: skip
    step = {"step": "bucketise", "edges": [1, 10, 168, 189, 1000], "side": "right"}
    place = {**price, "column": 1, "steps": [{"step": "to_number"}, step]}
    return [*ids, history, *clock, level, price, place]


def signed(text: str) -> int:
    value = murmur3_32(text.encode())
    return value - (1 << 32) if value >= 1 << 31 else value


def fuxictr_reference(rows: list[dict[str, str]]) -> dict[str, bytes]:
    ids: list[int] = []
    history: list[int] = []
    clock: list[int] = []
    level: list[int] = []
    price: list[float] = []
    for row in rows:
        ids += [signed(row[f] or "none") % 997 for f in FUXI_IDS]
        clicks = (
            [abs(signed(t)) % 997 + 1 for t in row["click_sequence"].split("^")]
            if row["click_sequence"]
            else []
        )
        clicks = clicks[-SEQUENCE:]
        history += [0] * (SEQUENCE - len(clicks)) + clicks
        moment = datetime.datetime.fromisoformat(row["time_stamp"])
        clock += [moment.year, moment.month, moment.day, moment.weekday(), moment.hour, moment.minute]
        level.append(int(row["pvalue_level"]) if row["pvalue_level"] else 0)
        value = float(row["price"])
        price += [(value - 0.5) / (1000 - 0.5), float(sum(value >= edge for edge in (1, 10, 168, 189, 1000)))]
    return {
        "ids": longs(ids), "history": longs(history), "clock": longs(clock), "level": longs(level), "price": floats(price),
    }  # fmt: skip


@pytest.mark.parametrize("part", ["train", "test"])
def test_fuxictr_rows(shared: Path, tmp_path: Path, part: str) -> None:
    features = fuxictr_features()
    fields = {f["field"] for f in features}
    rows = [{f: row[f] for f in fields} for row in read(shared / "data" / f"fuxictr_tiny_{part}.csv")]
    assert len(rows) >= 99
    tensors: dict[str, tuple[str, list[Any]]] = {
        "ids": ("INT64", [5]), "history": ("INT64", [SEQUENCE]), "clock": ("INT64", [6]), "level": ("INT64", []),
        "price": ("FP32", [2]),
    }  # fmt: skip
    plan = load(make_folder(tmp_path, tensors, features))
    expected = fuxictr_reference(rows)
    same(plan, rows, expected)
    same(plan, as_table(rows), expected)
