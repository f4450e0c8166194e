"""The card: front matter with lines, sections without their generated blocks, questions with their owner."""

from __future__ import annotations

import pytest

from seatrial.contract import find_questions, parse_card

CARD = """---
license: apache-2.0
tags: [a]
model-index: [{name: m}]
x-team: ranking
---
# m

## Purpose

Ours.
<!-- seatrial:begin sizes -->
generated
<!-- seatrial:end sizes -->

## Known risks
"""


def test_a_card_is_front_matter_and_sections() -> None:
    card = parse_card(CARD).value
    assert card is not None
    assert card.front.license == "apache-2.0"
    assert card.front.extensions == {"x-team": "ranking"}
    assert [(s.title, s.line, s.text) for s in card.sections] == [
        ("Purpose", 9, "Ours."),
        ("Known risks", 16, ""),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("# no front matter", 1),
        ("---\nnever: closed\n", 1),
        (CARD.replace("license:", "licence:"), 2),
        (CARD.replace("[a]", "a"), 3),
        (CARD.replace("tags:", "license:"), 3),
    ],
)
def test_a_broken_card_names_its_line(text: str, line: int) -> None:
    checked = parse_card(text)
    assert checked.value is None
    assert checked.problems[0].line == line


def test_questions_know_their_owner_and_line() -> None:
    text = 'a: 1\nb: null  # QUESTION(infra): how many?\nc: "QUESTION(both): which?"\n<!-- QUESTION(algorithm): why? -->\n'
    assert [(q.line, q.owner, q.text) for q in find_questions(text)] == [
        (2, "infra", "how many?"),
        (3, "both", "which?"),
        (4, "algorithm", "why?"),
    ]
    assert find_questions("QUESTION(nobody): x, TODO(#7): y") == []
