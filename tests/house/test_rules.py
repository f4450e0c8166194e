"""The rules of the house: what every file, room and page must hold. See STYLE.md."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python" / "seatrial"
WORKSHOPS = {"check", "features", "engine", "bench", "report"}
VAGUE = {"utils", "common", "helpers", "helper", "core", "base", "misc", "manager"}
TEXT_SUFFIXES = {".py", ".rs", ".md", ".toml", ".yaml", ".json", ".txt", ".lock", ".in", ".pyi", ".sh", ""}


def tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


FILES = tracked()
SOURCES = [f for f in FILES if f.suffix in (".py", ".rs") and f.stat().st_size]


def relative(paths: list[Path]) -> list[str]:
    return sorted(str(p.relative_to(ROOT)) for p in paths)


def is_test(path: Path) -> bool:
    return bool({"tests", "examples", "benches"} & set(path.relative_to(ROOT).parts))


def opening(path: Path) -> list[str]:
    """The lines of a file's first paragraph of module comment; empty when there is none."""
    text = path.read_text()
    if path.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].splitlines()
    lines = [line for line in text.splitlines() if line.strip()]
    block = []
    for line in lines:
        if not line.startswith("//!"):
            break
        if line.strip() == "//!":
            break
        block.append(line)
    return block


def test_every_source_file_says_what_it_is_for() -> None:
    silent = [f for f in SOURCES if not 1 <= len(opening(f)) <= 6]
    assert relative(silent) == []


def test_files_stay_under_600_lines() -> None:
    long = [f for f in SOURCES if not is_test(f) and len(f.read_text().splitlines()) > 600]
    assert relative(long) == []


def test_python_functions_stay_under_60_lines() -> None:
    long = []
    for path in (f for f in SOURCES if f.suffix == ".py" and not is_test(f)):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > 60:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {length} lines")
    assert long == []


def test_no_vague_names() -> None:
    vague = [f for f in SOURCES if VAGUE & set(re.split(r"[_\W]", f.stem.lower()))]
    assert relative(vague) == []


def rooms() -> list[Path]:
    return sorted(p.parent for p in PYTHON.glob("*/__init__.py"))


@pytest.mark.parametrize("room", rooms(), ids=lambda p: p.name)
def test_a_room_has_a_face(room: Path) -> None:
    """Ruff keeps the names sorted; an empty face means that a room was opened before something worked in it."""
    lines = [line for line in (room / "__init__.py").read_text().splitlines() if line.startswith("__all__")]
    assert len(lines) == 1
    assert not lines[0].endswith("[]")


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def test_other_rooms_are_entered_by_their_face_only() -> None:
    inside = []
    for path in (f for f in SOURCES if f.suffix == ".py" and f.is_relative_to(PYTHON)):
        own = path.relative_to(PYTHON).parts[0]
        for module in imports(path):
            parts = module.split(".")
            if parts[0] == "seatrial" and len(parts) > 2 and parts[1] not in (own, "_native"):
                inside.append(f"{path.relative_to(ROOT)} imports {module}")
    assert inside == []


def test_only_engine_bench_and_features_touch_the_native_module() -> None:
    """A rule of its own: import-linter does not see compiled modules."""
    touching = {
        path.relative_to(PYTHON).parts[0]
        for path in SOURCES
        if path.suffix == ".py" and path.is_relative_to(PYTHON)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom) and "_native" in ast.unparse(node)
    }
    assert touching <= {"engine", "bench", "features"}


def test_workshops_print_nothing_and_know_no_flow() -> None:
    loud = []
    for path in (f for f in SOURCES if f.suffix == ".py" and f.is_relative_to(PYTHON)):
        if path.relative_to(PYTHON).parts[0] not in WORKSHOPS or path.name == "__main__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                loud.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert loud == []


def test_no_unfinished_marks() -> None:
    fixme, todo = "FIX" + "ME", "TO" + "DO"
    marks = []
    for path in SOURCES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(rf"\b{fixme}\b|\b{todo}\b(?!\(#\d+\))|\btodo!\(|unimplemented!\(", line):
                marks.append(f"{path.relative_to(ROOT)}:{number}")
    assert [m for m in marks if not m.startswith("tests/house/")] == []


def test_no_test_is_switched_off() -> None:
    off = [f for f in SOURCES if re.search(r"#\[ignore|mark\.skip\(|mark\.xfail", f.read_text())]
    assert [p for p in relative(off) if not p.startswith("tests/house/")] == []


def test_nothing_names_a_machine() -> None:
    """No path of a developer's machine and no package index address in anything committed."""
    pattern = re.compile(r"/(?:home|Users)/\w+/|/work/|/root/|artifactory|--index-url https?:")
    named = []
    for path in FILES:
        if (
            path.suffix not in TEXT_SUFFIXES
            or path.stat().st_size > 2_000_000
            or path.is_relative_to(ROOT / "tests" / "house")
        ):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        named += [f"{path.relative_to(ROOT)}: {m.group(0)}" for m in pattern.finditer(text)]
    assert named == []


def test_versions_agree() -> None:
    python = re.search(r'__version__ = "([^"]+)"', (PYTHON / "__init__.py").read_text())
    project = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    crates = re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.M)
    changelog = re.search(r"^## (\d\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    found = [m.group(1) if m else None for m in (python, project, crates, changelog)]
    assert len(set(found)) == 1, found


def test_every_crate_and_room_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    names = [p.name for p in (ROOT / "crates").iterdir() if p.is_dir()] + [r.name for r in rooms()]
    assert [n for n in names if n not in text] == []


ALLOWED_LICENCES = {
    "Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD", "BSL-1.0", "CC0-1.0",
    "Unicode-3.0", "Unlicense", "Apache-2.0 WITH LLVM-exception",
}  # fmt: skip


def test_licences_of_all_crates_allow_ours() -> None:
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"],
        cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "CARGO_TERM_COLOR": "never"},
    )  # fmt: skip
    refused = []
    for package in json.loads(metadata.stdout)["packages"]:
        licence = (package.get("license") or "").replace("/", " OR ")
        choices = [
            all(part.strip() in ALLOWED_LICENCES for part in choice.split(" AND "))
            for choice in re.sub(r"[()]", "", licence).split(" OR ")
        ]
        if not any(choices):
            refused.append(f"{package['name']} {package['version']}: {licence or 'no licence named'}")
    assert refused == []
