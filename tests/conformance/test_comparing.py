"""The comparison itself: it sees what differs, and the list of differences can neither hide nor outlive one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.comparing import Listed, differences, unexplained
from tests.conformance.pairs import GOLDEN, Answer, load_pairs, mask, save_pairs


def answer(document: Any = None, status: int = 200, binary: bytes = b"", **headers: str) -> Answer:
    return Answer(status, {k.replace("_", "-"): v for k, v in headers.items()}, document, binary)


def output(datatype: str, *data: Any) -> dict[str, Any]:
    return {"outputs": [{"name": "y", "datatype": datatype, "data": list(data)}]}


@pytest.mark.parametrize(
    ("theirs", "ours", "sentences"),
    [
        (answer({"a": 1}), answer({"a": 1}), []),
        (answer({"a": 1}), answer({"a": 2}), ["/a: 1 -> 2"]),
        (answer({"a": 1}), answer({"a": True}), ["/a: 1 -> true"]),
        (answer({"a": 1}), answer({"b": 1}), ["/a missing", "/b added"]),
        (answer([{"a": 1}, {"a": 1}]), answer([{"a": 2}, {"a": 2}]), ["/*/a: 1 -> 2"]),
        (answer([{"a": 1}]), answer([{"a": 1}] * 2), [': [{"a": 1}] -> [{"a": 1}, {"a": 1}]']),
        (answer({"extensions": ["x", "y"]}), answer({"extensions": ["y", "z"]}),
         ["/extensions `x` missing", "/extensions `z` added"]),
        (answer({"error": "no"}, 500), answer({"error": "never"}, 400), ["status 500 -> 400"]),
        (answer({"error": "no"}), answer({"error": ""}), ['/error: "<text>" -> ""']),
        (answer(), answer({}), ["body empty -> JSON"]),
        (answer({}), answer([]), [" object -> list"]),
        (answer({}, binary=b"\1"), answer({}, binary=b"\2"), ["binary part 01 -> 02"]),
        (answer({}, content_type="a"), answer({}), ["content-type a -> None"]),
        (answer(output("FP32", 0.10000000149011612)), answer(output("FP32", 0.1)), []),
        (answer(output("FP64", 0.10000000149011612)), answer(output("FP64", 0.1)),
         ["/outputs/*/data: [0.10000000149011612] -> [0.1]"]),
    ],
)  # fmt: skip
def test_differences_are_seen(theirs: Answer, ours: Answer, sentences: list[str]) -> None:
    assert differences(theirs, ours) == sentences


@pytest.mark.parametrize(
    ("pairs", "complaints"),
    [
        (("a/*",), []),
        (("a/1", "a/2"), []),
        (("a/1",), ["unlisted: `a/2`: x"]),
        (("a/*", "!a/2"), ["unlisted: `a/2`: x"]),
        (("a/*", "b/1"), ["listed: `b/1` no longer differs: x"]),
        (("a/*", "c/*"), ["listed: `c/*` is no pair (for a reason)"]),
    ],
)
def test_the_list_explains_what_is_found_and_no_more(pairs: tuple[str, ...], complaints: list[str]) -> None:
    found = {"a/1": ["x"], "a/2": ["x"], "b/1": []}
    assert unexplained(found, [Listed(("x",), pairs, "for a reason")]) == complaints


def test_volatile_parts_are_never_kept() -> None:
    stats = {"model_stats": [{"version": "1", "last_inference": 5, "name": "m"}]}
    masked = {"version": "<version of the model>", "last_inference": "<time>", "name": "m"}
    assert mask(stats) == {"model_stats": [masked]}


def test_golden_files_are_as_the_recorder_writes_them(tmp_path: Any) -> None:
    save_pairs(tmp_path, load_pairs(GOLDEN / "http"))
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert written == {file.name: file.read_text() for file in (GOLDEN / "http").iterdir()}
