"""A package as one frozen value: everything people promised, and what the program found about batching."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from seatrial.contract.card import Card, parse_card
from seatrial.contract.environment import Environment
from seatrial.contract.features import FeatureSpec
from seatrial.contract.files import file_problems, path_problem
from seatrial.contract.identity import Identity
from seatrial.contract.manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    Manifest,
    manifest_digest,
    model_digest,
    verify_manifest,
)
from seatrial.contract.resources import Resources
from seatrial.contract.serving import Serving
from seatrial.contract.signature import Signature
from seatrial.contract.slo import Slo
from seatrial.contract.source import Problem, Source, fail, read_text, read_yaml
from seatrial.contract.strict import Strict
from seatrial.contract.validation import Checked, validate
from seatrial.errors import ContractError

__all__ = [
    "BATCHING",
    "FILES",
    "GOLDEN",
    "MODEL",
    "REQUESTS",
    "Batching",
    "Package",
    "load_package",
    "read_document",
]

MODEL = "model/model.onnx"
REQUESTS = "samples/requests.jsonl"
GOLDEN = "samples/golden.jsonl"
BATCHING = "evidence/batching.json"
MAX_EVIDENCE_BYTES = 1 << 20

# File -> model of its content, for every YAML file of the package. `features.yaml` alone may be left out.
FILES: dict[str, type[Strict]] = {
    "seatrial.yaml": Identity,
    "signature.yaml": Signature,
    "features.yaml": FeatureSpec,
    "slo.yaml": Slo,
    "serving.yaml": Serving,
    "resources.yaml": Resources,
    "environment.yaml": Environment,
}
OPTIONAL = ("features.yaml",)

D = TypeVar("D", bound=Strict)


@dataclass(frozen=True)
class Padding:
    """What is appended to make rows equally long: axis and value of every input with the length, and the axis on
    which each output that follows it is cut back."""

    inputs: dict[str, tuple[int, int]]
    outputs: dict[str, int]

    def resolved(self) -> dict[str, Any]:
        """The form of the server's configuration."""
        inputs = {name: {"axis": axis, "value": value} for name, (axis, value) in self.inputs.items()}
        return {"inputs": inputs, "outputs": dict(self.outputs)}


@dataclass(frozen=True)
class Batching:
    """What was found about joining requests. `mode` is `full`, `equal-length` or `none`."""

    mode: str
    axis: int | None
    why: str
    max_rows: int | None = None
    padding: Padding | None = None
    """How rows of different lengths are joined; None where padding changes the answer or there is no length."""


@dataclass(frozen=True)
class Package:
    """A delivery package whose files hold to their schemas. Paths are absolute."""

    root: Path
    digest: str
    identity: Identity
    signature: Signature
    slo: Slo
    serving: Serving
    resources: Resources
    environment: Environment
    features: FeatureSpec | None
    card: Card
    manifest: Manifest
    model_file: Path
    requests_file: Path | None
    golden_file: Path | None
    is_draft: bool

    def batching(self) -> Batching | None:
        """What the program found about batching this very model file; None when not probed or changed."""
        return read_batching(self.root, self.manifest)


def load_package(path: Path | str) -> Package:
    """Reads and validates a package; the first thing wrong is a `ContractError` with file, line and cure."""
    root = Path(path).absolute()
    if not root.is_dir():
        raise ContractError(f"`{path}` is no package folder", hint="`seatrial init MODEL.onnx` writes one")
    _raise_for(file_problems(root))
    documents = {
        file: _need(read_document(root, file))
        for file in FILES
        if file not in OPTIONAL or (root / file).exists()
    }
    text = read_text(root, "card.md")
    card = _need(Checked(None, [text]) if isinstance(text, Problem) else parse_card(text))
    manifest = _need(read_manifest(root))
    differences = verify_manifest(root, manifest)
    if differences:
        cure = "`seatrial check PACKAGE --write-manifest` names the files as they are now; the digest changes"
        raise ContractError(f"{MANIFEST}: {differences[0]}", hint=cure, file=MANIFEST)
    problem = path_problem(root, MODEL)
    if problem is not None:
        raise ContractError(problem, hint=f"put the model at `{MODEL}`", file=MODEL)
    return Package(
        root=root,
        digest=manifest_digest(root),
        identity=documents["seatrial.yaml"],
        signature=documents["signature.yaml"],
        slo=documents["slo.yaml"],
        serving=documents["serving.yaml"],
        resources=documents["resources.yaml"],
        environment=documents["environment.yaml"],
        features=documents.get("features.yaml"),
        card=card,
        manifest=manifest,
        model_file=root / MODEL,
        requests_file=_existing(root / REQUESTS),
        golden_file=_existing(root / GOLDEN),
        is_draft=not _has_records(root),
    )


def read_document(root: Path, file: str) -> Checked[Any]:
    """One YAML file of the package as its model, or what is wrong with it."""
    source = read_yaml(root, file)
    return Checked(None, [source]) if isinstance(source, Problem) else validate(FILES[file], source)


def read_manifest(root: Path) -> Checked[Manifest]:
    """MANIFEST.json as its model, or what is wrong with it."""
    text = read_text(root, MANIFEST, MAX_MANIFEST_BYTES)
    if isinstance(text, Problem):
        return Checked(None, [text])
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = Problem(
            "syntax", MANIFEST, getattr(error, "lineno", 1), f"no valid JSON: {error}", "write it anew"
        )
        return Checked(None, [problem])
    return validate(Manifest, Source(MANIFEST, data, {(): 1}))


def read_batching(root: Path, manifest: Manifest) -> Batching | None:
    """The batching evidence, when there is one and it was found for the model files of this manifest."""
    text = read_text(root, BATCHING, MAX_EVIDENCE_BYTES)
    if isinstance(text, Problem):
        return None
    try:
        record = json.loads(text)
        payload = record["payload"]
        mode, why, axis = payload["mode"], payload["why"], payload["axis"]
        max_rows, model = payload.get("max_rows"), record["model_digest"]
        padding = _padding(payload.get("padding"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    legal = mode in ("full", "equal-length", "none") and isinstance(why, str) and axis in (0, None)
    if not legal or not (max_rows is None or isinstance(max_rows, int)) or model != model_digest(manifest):
        return None
    return Batching(mode, axis, why, max_rows, padding if mode == "full" else None)


def _padding(found: dict[str, Any] | None) -> Padding | None:
    """Raises what `read_batching` catches where the evidence is not of the documented form."""
    if found is None:
        return None
    inputs = {str(name): (pad["axis"], pad["value"]) for name, pad in found["inputs"].items()}
    outputs = {str(name): axis for name, axis in found["outputs"].items()}
    numbers = [n for pair in inputs.values() for n in pair] + list(outputs.values())
    if not inputs or any(type(n) is not int for n in numbers):
        raise TypeError("axes and values are whole numbers")
    return Padding(inputs, outputs)


def _need(checked: Checked[Any]) -> Any:
    _raise_for(checked.problems)
    return checked.value


def _raise_for(problems: list[Problem]) -> None:
    if problems:
        raise fail(problems)


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None


def _has_records(root: Path) -> bool:
    """Whether there is evidence beyond the probe that every draft carries."""
    folder = root / "evidence"
    return folder.is_dir() and any(p.name != Path(BATCHING).name for p in folder.iterdir())
