"""Level L: every rule that needs no runtime, over one reading of the package. A broken file never stops the others."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.check.document_rules import document_findings
from seatrial.check.external import external_findings
from seatrial.check.facts import ModelFacts, collect_facts
from seatrial.check.findings import CheckReport, Finding, finding
from seatrial.check.hidden_code import hidden_code_findings
from seatrial.check.model_rules import model_findings
from seatrial.check.reading import read_model
from seatrial.check.runtime import installed_runtime
from seatrial.check.sample_rules import sample_findings
from seatrial.check.signature_rules import signature_findings
from seatrial.check.view import View
from seatrial.contract import (
    BATCHING,
    FILES,
    MANIFEST,
    MODEL,
    OPTIONAL,
    Manifest,
    Problem,
    file_problems,
    find_questions,
    package_files,
    parse_card,
    path_problem,
    read_batching,
    read_manifest,
    read_text,
    read_yaml,
    validate,
    verify_manifest,
)
from seatrial.errors import MissingError, UsageError

__all__ = ["check_package"]

_CODES = {
    "missing": "PKG001",
    "link": "PKG002",
    "unreadable": "PKG004",
    "too-large": "PKG004",
    "syntax": "SCH001",
    "encoding": "SCH001",
    "duplicate": "SCH002",
    "unknown-key": "SCH003",
    "missing-key": "SCH004",
    "schema": "SCH005",
    "tag": "SCH005",
    "api-version": "SCH006",
    "bounds": "SCH007",
    "front-matter": "CRD003",
}
# Said again by a marked question on the same line, and then not repeated.
_ASKED_ALREADY = {"IDN001", "IDN002", "IDN003", "IDN004", "IDN005", "ENV002", "SLO003", "SIG008"}
_WEIGHT = {"error": 0, "warning": 1, "note": 2}


@dataclass
class Reading:
    """What was read and what was wrong with it."""

    view: View
    findings: list[Finding] = field(default_factory=list)


def check_package(path: Path | str, level: str = "L") -> CheckReport:
    """Holds a package against the rules of a level. Raises `UsageError` for a level or folder that is not there."""
    if level != "L":
        text = "level B is not available yet" if level == "B" else f"there is no level `{level}`"
        raise UsageError(text, hint="use `--level L`")
    root = Path(path).absolute()
    if not root.is_dir():
        raise MissingError(
            f"there is no package folder `{path}`", hint="`seatrial init MODEL.onnx` writes one"
        )
    if not any((root / file).exists() for file in (*FILES, MANIFEST)):
        raise MissingError(
            f"`{path}` is no package: it has none of a package's files",
            hint="`seatrial init MODEL.onnx` writes one; its folder holds `seatrial.yaml`",
        )
    reading = _read(root)
    view, found = reading.view, reading.findings
    found += hidden_code_findings(root)
    if view.may_open(MODEL):
        _judge_model(reading)
    found += sample_findings(view)
    view.batching = read_batching(root, view.manifest) if view.manifest and view.may_open(BATCHING) else None
    found += document_findings(view)
    found += _manifest_findings(root, view.manifest)
    found += _evidence_findings(view)
    return CheckReport(tuple(_in_order(found)), view.batching, level, is_draft=not _has_records(root))


def _read(root: Path) -> Reading:
    """Reads every file that people own. Links are found first; a file behind one is not opened."""
    reading = Reading(View(root))
    links = file_problems(root)
    reading.findings += [_of_problem(p) for p in links]
    linked = frozenset(p.file for p in links)
    reading.view.linked = linked
    for file in FILES:
        if file in linked or (file in OPTIONAL and not (root / file).exists()):
            continue
        _read_document(reading, file)
    if "card.md" not in linked:
        _read_card(reading)
    if MANIFEST not in linked:
        manifest = read_manifest(root)
        reading.view.manifest = manifest.value
        reading.findings += [_of_problem(p) for p in manifest.problems]
    if "CODEOWNERS" not in linked and (root / "CODEOWNERS").is_file():
        _add_questions(reading, "CODEOWNERS", read_text(root, "CODEOWNERS"))
    return reading


def _read_document(reading: Reading, file: str) -> None:
    root = reading.view.root
    source = read_yaml(root, file)
    if isinstance(source, Problem):
        reading.findings.append(_of_problem(source))
        return
    checked: Any = validate(FILES[file], source)
    reading.findings += [_of_problem(p) for p in checked.problems]
    reading.view.sources[file] = source
    if checked.value is not None:
        reading.view.documents[file] = checked.value
    _add_questions(reading, file, read_text(root, file))


def _read_card(reading: Reading) -> None:
    text = read_text(reading.view.root, "card.md")
    if isinstance(text, Problem):
        reading.findings.append(_of_problem(text))
        return
    card = parse_card(text)
    reading.view.card = card.value
    reading.findings += [_of_problem(p) for p in card.problems]
    _add_questions(reading, "card.md", text)


def _add_questions(reading: Reading, file: str, text: str | Problem) -> None:
    if isinstance(text, Problem):
        return
    for question in find_questions(text):
        found = finding("QST001", file, question.text, line=question.line)
        reading.findings.append(dataclasses.replace(found, owner=question.owner))


def _of_problem(problem: Problem) -> Finding:
    code = _CODES[problem.kind]
    return finding(code, problem.file, problem.text, line=problem.line, hint=problem.hint)


def _judge_model(reading: Reading) -> None:
    view, found = reading.view, reading.findings
    fault = path_problem(view.root, MODEL)
    if fault is not None:
        found.append(finding("PKG001", MODEL, fault, hint=f"put the model at `{MODEL}`"))
        return
    parsed = read_model(view.root / MODEL)
    if isinstance(parsed, Finding):
        found.append(parsed)
        return
    facts: ModelFacts = collect_facts(parsed)
    view.facts = facts
    found += external_findings(parsed.proto, view.root / "model")
    environment = view.documents.get("environment.yaml")
    runtime = environment.runtime.version if environment is not None else installed_runtime()
    found += model_findings(parsed, facts, runtime)
    found += signature_findings(view)


def _manifest_findings(root: Path, manifest: Manifest | None) -> list[Finding]:
    if manifest is None:
        return []
    cure = "`seatrial check PACKAGE --write-manifest` names the files as they are now; the digest changes"
    return [finding("MAN001", MANIFEST, d, hint=cure) for d in verify_manifest(root, manifest)]


def _evidence_findings(view: View) -> list[Finding]:
    found = []
    if view.batching is None and (view.root / BATCHING).exists():
        found.append(
            finding("EVI001", BATCHING, "the batching evidence was found for other model files, or is broken")
        )
    if not _has_records(view.root):
        found.append(
            finding("EVI002", "seatrial.yaml", "the package is a DRAFT: no trial has written evidence")
        )
    return found


def _has_records(root: Path) -> bool:
    return any(p.startswith("evidence/") and p != BATCHING for p in package_files(root))


def _in_order(findings: list[Finding]) -> list[Finding]:
    """Worst first, then by place; what a marked question asks already is left out."""
    asked = {(f.file, f.line) for f in findings if f.code == "QST001"}
    left = {f for f in findings if not (f.code in _ASKED_ALREADY and (f.file, f.line) in asked)}
    return sorted(left, key=lambda f: (_WEIGHT[f.severity], f.file, f.line or 0, f.code, f.text))
