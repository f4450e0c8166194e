"""A report as SARIF 2.1.0, the form in which code review tools take findings."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from seatrial import __version__
from seatrial.check.findings import FINDINGS, CheckReport, Finding

__all__ = ["to_sarif"]


def to_sarif(report: CheckReport) -> dict[str, Any]:
    """The SARIF log of one check. Places are relative to the package."""
    codes = sorted({f.code for f in report.findings})
    driver = {
        "name": "seatrial",
        "version": __version__,
        "rules": [_rule(code) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, codes.index(f.code)) for f in report.findings],
        "properties": {"level": report.level, "batching": report.to_json()["batching"]},
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    kind = FINDINGS[code]
    return {
        "id": code,
        "shortDescription": {"text": kind.title},
        "help": {"text": kind.hint},
        "defaultConfiguration": {"level": kind.severity},
        "properties": {"owner": kind.owner},
    }


def _result(found: Finding, rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(found.file)}}
    if found.line is not None:
        place["region"] = {"startLine": found.line}
    return {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": found.severity,
        "message": {"text": f"{found.text}\nhint: {found.hint}"},
        "locations": [{"physicalLocation": place}],
        "properties": {"owner": found.owner},
    }
