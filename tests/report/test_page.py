"""The HTML report: well formed, self-contained, escaped, readable without seeing the charts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seatrial.records import PackageRef
from seatrial.report import render
from seatrial.report.markup import el
from tests.report.conftest import Rendered
from tests.report.reading import PERCENTILE, Page
from tests.report.sample_record import sample_record

UNITS = {
    "steps": ["requests/s", "ms"],
    "spectrum": ["milliseconds", "share of requests"],
    "stages": ["milliseconds", "ms"],
    "seconds": ["requests per second", "ms", "seconds since"],
    "usage": ["cores", "MiB", "seconds since"],
}


@pytest.fixture(scope="module")
def page(rendered: Rendered) -> Page:
    return Page(rendered.text("html"))


def test_every_element_is_closed_and_ids_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert page.tags[0][0] == "html"


def test_nothing_is_fetched_and_nothing_runs(rendered: Rendered, page: Page) -> None:
    text = rendered.text("html")
    assert re.search(r"https?://|@import|url\(", text) is None
    assert {tag for tag, _ in page.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "image",
        "use",
    } == set()
    for _, attributes in page.tags:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]


def test_links_lead_to_sections(page: Page) -> None:
    ids = {attributes.get("id") for _, attributes in page.tags}
    links = [attributes["href"] or "" for tag, attributes in page.tags if tag == "a"]
    assert len(links) == 11
    assert [link for link in links if link[1:] not in ids] == []


@pytest.mark.parametrize("chart", UNITS)
def test_every_chart_has_units_words_and_a_table(rendered: Rendered, chart: str) -> None:
    figure = re.search(rf'<figure id="chart-{chart}">.*?</figure>', rendered.text("html"), re.S)
    assert figure is not None
    part = Page(figure.group(0))
    labels = " ".join(part.of("text"))
    assert [unit for unit in UNITS[chart] if unit not in labels + " ".join(part.of("h3"))] == []
    for svg in re.findall(r"<svg[^>]*role=\"img\".*?</svg>", figure.group(0), re.S):
        assert svg.count("<desc") == 1
        assert re.search(r"<title id=\"[^\"]+\">[^<]+</title>", svg)
    assert "<details>" in figure.group(0)
    assert len(part.of("td")) >= 4


def test_tooltips_with_a_percentile_name_their_sample_size(page: Page) -> None:
    tips = [text for text in page.of("title") if PERCENTILE.search(text) and " ms" in text]
    assert len(tips) > 50
    assert [tip for tip in tips if "n=" not in tip] == []


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "</style><b>", "a|b\n# c"]
)
def test_hostile_names_stay_text(tmp_path: Path, hostile: str) -> None:
    record = sample_record(
        None,
        stop_after=2,
        command=f"seatrial trial {hostile}",
        package=PackageRef(name=hostile, version="1", digest=None),
    )
    files = render(record, tmp_path)
    page = Page(files["html"].read_text())
    assert {tag for tag, _ in page.tags} & {"script", "img", "b"} <= {"b"}
    assert page.of("h1") == [f"{hostile} 1"]
    head = files["md"].read_text().splitlines()[0]
    assert "<" not in head
    assert head.startswith("# Trial report: ")


def test_the_same_record_gives_the_same_bytes(rendered: Rendered, tmp_path: Path) -> None:
    again = render(rendered.record, rendered.folder, out=tmp_path)
    for suffix, path in again.items():
        assert path.read_text(encoding="utf-8") == rendered.text(suffix)


def test_an_attribute_ends_where_it_should() -> None:
    assert el("p", "", title="\"'><script>") == '<p title="&quot;&#x27;&gt;&lt;script&gt;"></p>'
