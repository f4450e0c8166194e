"""The Markdown report, compared as a whole with a file that a person has read."""

from __future__ import annotations

import os
from pathlib import Path

from tests.report.conftest import Rendered
from tests.report.reading import bare_percentiles

GOLDEN = Path(__file__).with_name("golden_report.md")


def test_the_markdown_is_the_golden_one(rendered: Rendered) -> None:
    text = rendered.text("md")
    if os.environ.get("SEATRIAL_UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), (
        "read the difference, then run with SEATRIAL_UPDATE_GOLDEN=1"
    )


def test_no_percentile_stands_without_its_sample_size(rendered: Rendered) -> None:
    assert bare_percentiles(rendered.text("md")) == []


def test_the_checker_sees_a_bare_percentile() -> None:
    assert bare_percentiles("p99 is 4 ms")
    assert bare_percentiles("| phase | p99 |\n| --- | --- |\n| hold | 4.00 ms |")
    assert bare_percentiles("| phase | p99 (ms) |\n| --- | --- |\n| hold | 4.00 |")
    assert not bare_percentiles("| phase | p99 |\n| --- | --- |\n| hold | 4.00 ms, n=9 |")
