"""The sample record, rendered once for the tests that only read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from seatrial.records import Record
from seatrial.report import render
from tests.report.sample_record import sample_record


@dataclass(frozen=True)
class Rendered:
    record: Record
    folder: Path

    def text(self, suffix: str) -> str:
        return (self.folder / f"report.{suffix}").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    folder = tmp_path_factory.mktemp("record")
    record = sample_record(folder)
    (folder / "record.json").write_text(record.model_dump_json())
    render(record, folder)
    return Rendered(record, folder)
