"""The published JSON Schemas: fresh, valid as 2020-12, and of one mind with the models."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from seatrial.contract import json_schemas

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


def test_the_committed_schemas_are_fresh() -> None:
    committed = {
        p.name.removesuffix(".schema.json"): json.loads(p.read_text("utf-8"))
        for p in SCHEMAS.glob("*.schema.json")
    }
    assert committed == json_schemas(), "run `make docs`; the models have changed"


@pytest.mark.parametrize("name", list(json_schemas()))
def test_a_schema_is_valid_2020_12(name: str) -> None:
    schema = json_schemas()[name]
    assert schema["$schema"].endswith("2020-12/schema")
    jsonschema.Draft202012Validator.check_schema(schema)


def test_a_schema_refuses_what_the_model_refuses() -> None:
    validator = jsonschema.Draft202012Validator(json_schemas()["slo"])
    good = {"apiVersion": "seatrial/v1", "kind": "Slo", "latency": {"total": {"p99": "100ms"}}, "x-note": 1}
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "note": 1})
    assert not validator.is_valid({**good, "latency": {"total": {"p99": "100"}}})
