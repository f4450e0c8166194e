"""`init_package`: from an ONNX file to a DRAFT package. Written beside its place and moved there when it is whole."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial import __version__
from seatrial.check.carry import copy_external, external_sources
from seatrial.check.draft import Draft, draft_files
from seatrial.check.facts import ModelFacts, collect_facts
from seatrial.check.findings import Finding
from seatrial.check.inspect import refuse, work_of
from seatrial.check.model_rules import DYNAMIC_QUANTIZATION, model_findings
from seatrial.check.probe import Job, ProbeResult, run_probe
from seatrial.check.reading import read_model
from seatrial.check.runtime import installed_runtime, is_supported
from seatrial.check.sample_files import take_samples
from seatrial.check.signature_draft import draft_signature, probe_inputs
from seatrial.check.zipmap import drop_zipmap
from seatrial.contract import (
    API_VERSION,
    BATCHING,
    GOLDEN,
    MODEL,
    REQUESTS,
    file_sha256,
    model_digest,
    read_manifest,
    write_manifest,
)
from seatrial.errors import ContractError, MissingError

__all__ = ["init_package"]

PROBE_ROWS = 64


@dataclass(frozen=True)
class Carried:
    """The model as it lies in the package now."""

    facts: ModelFacts
    labels: dict[str, list[str]]
    changes: list[tuple[str, str]]


def init_package(
    model: Path | str,
    out: Path | str | None = None,
    sample: Path | str | None = None,
    name: str | None = None,
) -> Path:
    """Writes a DRAFT package of an ONNX file and returns its folder.

    `out` must not exist or be empty; without it the package lies in the working directory and is called like the model.
    `name` is what the server calls the model; without it that is the name of the folder.
    Raises `ContractError` when the model cannot be served, with the reason and the cure.
    """
    source = Path(model)
    if not source.is_file():
        raise ContractError(f"there is no model file `{model}`", hint="give the path of an .onnx file")
    called = _name(name, Path(source.name.removesuffix(".onnx") if out is None else out).absolute().name)
    target = Path(out if out is not None else called).absolute()
    _must_be_free(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        _fill(stage, source, None if sample is None else Path(sample), called)
        stage.chmod(0o755)
        if target.exists():
            target.rmdir()
        stage.rename(target)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    return target


def _name(name: str | None, otherwise: str) -> str:
    if name is not None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", name):
            raise ContractError(f"`{name}` is no package name", hint="use letters, digits, `.`, `_` and `-`")
        return name
    cleaned = re.sub(r"^[^A-Za-z0-9]+", "", re.sub(r"[^A-Za-z0-9._-]+", "-", otherwise))
    return cleaned[:100] or "model"


def _must_be_free(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ContractError(f"`{target}` exists already", hint="give another folder with --out, or remove it")


def _fill(root: Path, source: Path, sample: Path | None, name: str) -> None:
    runtime = installed_runtime()
    if not is_supported(runtime):
        raise MissingError(
            f"onnxruntime {runtime} is installed, supported are 1.24 to 1.32",
            hint="install onnxruntime==1.31.1",
        )
    carried = _carry(root, source, runtime)
    (root / "samples").mkdir()
    taken = root / "samples" / "taken.jsonl"
    if sample is not None:
        take_samples(sample, carried.facts.inputs, taken)
    probe = _probe(root, carried.facts, taken if sample is not None else None)
    taken.unlink(missing_ok=True)
    golden = root / GOLDEN
    if probe.n_golden == 0:
        golden.unlink(missing_ok=True)
    inputs, outputs = draft_signature(carried.facts, probe, carried.labels, _output_shapes(golden))
    batching = _batching(probe, carried.facts)
    draft = Draft(
        name=name,
        facts=replace(carried.facts, work=work_of(root / MODEL, carried.facts, probe.first_sizes)),
        inputs=inputs,
        outputs=outputs,
        runtime=runtime,
        synthetic=sample is None,
        batching=batching,
        changes=carried.changes,
    )
    for file, text in draft_files(draft).items():
        (root / file).write_text(text, "utf-8")
    _write_evidence(root, write_manifest(root), batching)


def _carry(root: Path, source: Path, runtime: str) -> Carried:
    """Copies the model and its external data, after every rule on them has been held."""
    parsed = read_model(source, source.name)
    if isinstance(parsed, Finding):
        raise refuse([parsed])
    original = file_sha256(source)
    labels = drop_zipmap(parsed.proto)
    facts = collect_facts(parsed)
    errors = [f for f in model_findings(parsed, facts, runtime, source.name) if f.severity == "error"]
    # A model in training mode is packed, so that `check` can name the node in its place; it is never served.
    stops = [f for f in errors if f.code != "MOD011"]
    sources = external_sources(source, parsed.proto)
    if stops or isinstance(sources, list):
        raise refuse(stops + (sources if isinstance(sources, list) else []))
    (root / "model").mkdir()
    if labels:
        (root / MODEL).write_bytes(parsed.proto.SerializeToString())
        text = ", ".join(
            f"ZipMap of output `{n}` replaced by a tensor of {len(v)} columns" for n, v in labels.items()
        )
        changes = [(text, original)]
    else:
        shutil.copyfile(source, root / MODEL)
        changes = []
    if "model.onnx" in sources:
        raise ContractError(
            "the external data would overwrite the model file", hint="rename the data file at export"
        )
    copy_external(sources, root / "model")
    return Carried(facts, labels, changes)


def _probe(root: Path, facts: ModelFacts, samples: Path | None) -> ProbeResult:
    probe = run_probe(
        Job(
            model=root / MODEL,
            inputs=probe_inputs(facts),
            outputs=[{"name": t.name, "datatype": t.datatype} for t in facts.outputs],
            requests=root / REQUESTS,
            golden=root / GOLDEN,
            samples=samples,
            longest_sum=facts.longest_sum,
            model_bytes=facts.parameter_bytes + facts.file_bytes,
        )
    )
    # Without golden rows the model has not answered one request, and there is nothing to put into a package.
    if probe.error is not None and probe.step != "join rows":
        hint = "run the model in onnxruntime by hand; give real requests with --sample"
        raise ContractError(f"the model could not be run ({probe.step}): {probe.error}", hint=hint)
    return probe


def _batching(probe: ProbeResult, facts: ModelFacts) -> dict[str, Any]:
    found = probe.batching
    dynamic = sorted(DYNAMIC_QUANTIZATION & {name.rsplit(".", 1)[-1] for name in facts.operators})
    if dynamic and found is not None and found["axis"] == 0:
        # The probe may miss it: few values differ by a step of the scale.
        why = f"{', '.join(dynamic)} takes its scale from the whole batch, so an answer depends on its batch mates"
        found = {"mode": "none", "axis": None, "why": why, "tried": found["tried"], "padding": None}
    if found is None:
        found = {"mode": "none", "axis": None, "why": f"the probe did not end: {probe.error}", "tried": []}
    return {**found, "max_rows": None}


def _output_shapes(golden: Path) -> dict[str, list[int]]:
    if not golden.exists():
        return {}
    with golden.open("rb") as stream:
        first = stream.readline()
    return {t["name"]: t["shape"] for t in json.loads(first)["outputs"]} if first else {}


def _write_evidence(root: Path, digest: str, batching: dict[str, Any]) -> None:
    manifest = read_manifest(root).value
    if manifest is None:
        raise ContractError("the manifest just written cannot be read", hint="report this as a defect")
    record = {
        "apiVersion": API_VERSION,
        "kind": "batching",
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "tool": {"name": "seatrial", "version": __version__},
        "digest": digest,
        "model_digest": model_digest(manifest),
        "command": "seatrial init",
        "payload": batching,
    }
    (root / BATCHING).parent.mkdir(exist_ok=True)
    (root / BATCHING).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
