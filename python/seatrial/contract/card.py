"""card.md: the model card. Hugging Face front matter, six sections, questions marked for who can answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from seatrial.contract.source import Problem, parse_yaml
from seatrial.contract.strict import Strict, Text
from seatrial.contract.validation import Checked, validate

__all__ = ["CARD_SECTIONS", "Card", "FrontMatter", "Question", "Section", "find_questions", "parse_card"]

CARD_SECTIONS: tuple[str, ...] = (
    "Purpose",
    "Inputs and outputs",
    "Feature dependencies",
    "Offline evaluation",
    "Resource needs",
    "Known risks",
)

_QUESTION = re.compile(r"QUESTION\((algorithm|infra|both)\):\s*([^\n]*)")
_GENERATED = re.compile(r"<!-- seatrial:begin ([a-z-]+) -->.*?<!-- seatrial:end \1 -->", re.DOTALL)


class FrontMatter(Strict):
    """The front matter of a Hugging Face model card; keys that their Hub knows, and `x-` keys."""

    license: Text | None = None
    license_name: Text | None = None
    license_link: Text | None = None
    language: Text | list[Text] | None = None
    library_name: Text | None = None
    tags: list[Text] = Field(default_factory=list)
    pipeline_tag: Text | None = None
    datasets: list[Text] | None = None
    metrics: list[Text] | None = None
    base_model: Text | list[Text] | None = None
    base_model_relation: Text | None = None
    model_name: Text | None = None
    model_index: list[dict[str, Any]] | None = Field(None, alias="model-index")
    thumbnail: Text | None = None
    inference: bool | dict[str, Any] | None = None
    widget: list[Any] | None = None
    co2_eq_emissions: Any | None = None
    new_version: Text | None = None


@dataclass(frozen=True)
class Section:
    """One `##` section: its title, the line it stands on and its text without generated blocks."""

    title: str
    line: int
    text: str


@dataclass(frozen=True)
class Card:
    """A parsed card."""

    front: FrontMatter
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Question:
    """A marked question, `QUESTION(algorithm): ...`, and the line it stands on."""

    line: int
    owner: Literal["algorithm", "infra", "both"]
    text: str


def find_questions(text: str) -> list[Question]:
    """Every marked question of a text.

    >>> find_questions("seeds: {}  # QUESTION(algorithm): which seeds?")[0].owner
    'algorithm'
    """
    questions = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in _QUESTION.finditer(line):
            owner: Any = match[1]
            questions.append(
                Question(number, owner, match[2].strip().strip("\"'").removesuffix("-->").strip())
            )
    return questions


def parse_card(text: str, file: str = "card.md") -> Checked[Card]:
    """The card of a text, or what is wrong with it."""
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if not lines or lines[0].strip() != "---" or end is None:
        problem = Problem(
            "front-matter", file, 1, "the front matter is missing", "begin the card with `---` lines"
        )
        return Checked(None, [problem])
    source = parse_yaml("\n".join(lines[1:end]), file, first_line=2)
    if isinstance(source, Problem):
        return Checked(None, [source])
    front = validate(FrontMatter, source)
    if front.value is None:
        return Checked(None, front.problems)
    return Checked(Card(front.value, tuple(_sections(lines, end + 1))), [])


def _sections(lines: list[str], start: int) -> list[Section]:
    heads = [(i, line[3:].strip()) for i, line in enumerate(lines) if i >= start and line.startswith("## ")]
    ends = [i for i, _ in heads[1:]] + [len(lines)]
    sections = []
    for (head, title), end in zip(heads, ends, strict=True):
        body = _GENERATED.sub("", "\n".join(lines[head + 1 : end])).strip()
        sections.append(Section(title, head + 1, body))
    return sections
