"""JSON Schema 2020-12 of every file, generated from the models. `schemas/` holds them; a test keeps them fresh."""

from __future__ import annotations

from typing import Any

from seatrial.contract.card import FrontMatter
from seatrial.contract.manifest import Manifest
from seatrial.contract.package import FILES
from seatrial.contract.samples import Golden, WireRequest
from seatrial.contract.strict import Strict

__all__ = ["json_schemas"]


def json_schemas() -> dict[str, dict[str, Any]]:
    """Name -> schema, for every file of a package; `schemas/NAME.schema.json` holds it."""
    models: dict[str, type[Strict]] = {
        **{file.removesuffix(".yaml"): model for file, model in FILES.items()},
        "card": FrontMatter,
        "manifest": Manifest,
        "request": WireRequest,
        "golden": Golden,
    }
    return {name: _schema(name, model) for name, model in models.items()}


def _schema(name: str, model: type[Strict]) -> dict[str, Any]:
    schema = model.model_json_schema(mode="validation", by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"seatrial/v1/{name}", **schema}
