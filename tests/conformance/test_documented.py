"""The page about conformance says what is in the golden files and in the list of differences, no more and no less."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.conformance import grpc_pairs
from tests.conformance.comparing import read_listed
from tests.conformance.pairs import GOLDEN, load_pairs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "conformance.md"


def groups(names: list[str]) -> dict[str, int]:
    return dict(Counter(name.partition("/")[0] for name in names))


def test_the_page_counts_the_pairs() -> None:
    page = PAGE.read_text()
    http = [pair.name for pair in load_pairs(GOLDEN / "http")]
    grpc = [pair.call.name for pair in grpc_pairs.load_pairs()]
    assert f"{len(http)} golden pairs, byte for byte" in page
    assert f"HTTP | {len(http)} " in page
    assert f"gRPC | {len(grpc)} " in page
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|(?: `(\w+)` \| (\d+) \|)?", page, re.M)
    assert {name: int(n) for name, n, _, _ in rows} == groups(http)
    assert {name: int(n) for _, _, name, n in rows if name} == groups(grpc)


def test_the_page_gives_every_reason_of_the_list() -> None:
    listed = read_listed(Path(__file__).with_name("differences.yaml"))
    reasons = {entry.why.strip() for entries in listed.values() for entry in entries}
    section = PAGE.read_text().split("## Intended differences")[1].split("## The server's own")[0]
    assert set(re.findall(r"^- (.*)$", section, re.M)) == reasons
