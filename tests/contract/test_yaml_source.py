"""YAML of a package: lines, duplicates, the 1.2 core schema, and bounds against files made to hurt."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from seatrial.contract import Problem, Source, parse_yaml, read_yaml


def parsed(text: str) -> Source:
    source = parse_yaml(text, "f.yaml")
    assert isinstance(source, Source), source
    return source


def refused(text: str) -> Problem:
    problem = parse_yaml(text, "f.yaml")
    assert isinstance(problem, Problem), problem
    return problem


def test_every_key_and_item_knows_its_line() -> None:
    source = parsed("a: 1\nb:\n  - x\n  - c: 2\n")
    assert source.line(("b", 1, "c")) == 4
    assert source.line(("b", 0)) == 3
    assert source.line(("b", 1, "absent")) == 4, "a key that is not there points at its parent"


@pytest.mark.parametrize(
    ("text", "value"),
    [("no", "no"), ("1:30", "1:30"), ("2026-11-29", "2026-11-29"), ("true", True), ("0x10", "0x10"), ("~", None),
     ("1.0", 1.0), ("-7", -7), (".inf", ".inf"), ("1e3", 1000.0), ("100ms", "100ms"), ("On", "On")],
)  # fmt: skip
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert parsed(f"k: {text}").data == {"k": value}


def test_a_key_that_stands_twice_is_named_with_its_second_line() -> None:
    problem = refused("a: 1\nb: 2\na: 3\n")
    assert (problem.kind, problem.line) == ("duplicate", 3)
    assert "`a`" in problem.text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a: [1, 2", "syntax"),
        ("a: b: c", "syntax"),
        ("\tx: 1", "syntax"),
        ("a: \x07", "syntax"),
        ("a: 1\n---\nb: 2", "syntax"),
        ("? [a]\n: 1", "syntax"),
        ("a: !!python/object/apply:os.system ['true']", "tag"),
        ("a: !!python/name:os.system", "tag"),
        ("a: !!binary aGk=", "tag"),
        ("a: !!int x", "tag"),
        ("a: !!set {x}", "tag"),
        ("a: *nowhere", "syntax"),
        ("a: &a [*a]", "syntax"),
        ("a: " + "[" * 1000 + "]" * 1000, "bounds"),
        ("a: " + "{a: " * 1000, "bounds"),
        ("- " * 1000 + "x", "bounds"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(text: str, kind: str) -> None:
    assert refused(text).kind in (kind, "bounds")


def test_aliases_are_allowed_within_bounds() -> None:
    assert parsed("a: &x {p: 1ms}\nb: *x").data["b"] == {"p": "1ms"}


def test_an_alias_bomb_is_refused_quickly() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))
    started = time.process_time()
    assert refused(bomb).kind == "bounds"
    assert time.process_time() - started < 5.0


def test_a_large_file_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    with (tmp_path / "big.yaml").open("wb") as stream:
        stream.truncate(100 << 20)
    started = time.process_time()
    problem = read_yaml(tmp_path, "big.yaml")
    assert isinstance(problem, Problem)
    assert problem.kind == "too-large"
    assert time.process_time() - started < 0.5


def test_many_small_values_are_refused(tmp_path: Path) -> None:
    assert refused("".join(f"k{i}: 1\n" for i in range(60_000))).kind == "bounds"


def test_bytes_that_are_no_utf_8_are_named_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"a: 1\nb: \xff\n")
    problem = read_yaml(tmp_path, "f.yaml")
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.line) == ("encoding", 2)
