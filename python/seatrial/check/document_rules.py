"""Rules on what people wrote: owners, budget, card, serving, resources, environment. Each rule sees the whole view."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from seatrial.check.findings import Finding, finding
from seatrial.check.runtime import is_supported
from seatrial.check.view import View
from seatrial.contract import (
    CARD_SECTIONS,
    Environment,
    FeatureSpec,
    Identity,
    Percentiles,
    Resources,
    Serving,
    Slo,
    column_problems,
    file_sha256,
    path_problem,
)

__all__ = ["document_findings"]

_REACHABLE = re.compile(r"\S+@\S+|@\S+|#\S+|https?://\S+")
_TEMPLATE = re.compile(
    r"\[More Information Needed\]|\bTBD\b|\bTODO\b|lorem ipsum|to be filled|fill (?:this )?in", re.I
)
LEAST_SECTION_CHARS = 30


def document_findings(view: View) -> list[Finding]:
    """Everything the documents say that cannot be right."""
    rules: tuple[Callable[[View], list[Finding]], ...] = (
        _identity, _card, _slo, _serving, _resources, _environment, _features,
    )  # fmt: skip
    return [f for rule in rules for f in rule(view)]


def _identity(view: View) -> list[Finding]:
    file = "seatrial.yaml"
    identity: Identity | None = view.documents.get(file)
    if identity is None:
        return []
    found = []
    for side in ("algorithm", "infra"):
        contact = getattr(identity.owners, side).contact
        if not _REACHABLE.search(contact):
            line = view.line(file, "owners", side, "contact")
            found.append(finding("IDN001", file, f"the contact of {side} is `{contact:.60}`", line=line))
    for code, key in (
        ("IDN002", "licence"),
        ("IDN003", "seeds"),
        ("IDN004", "rollback_class"),
        ("IDN005", "task"),
    ):
        if not getattr(identity, key):
            found.append(finding(code, file, f"`{key}` is not stated", line=view.line(file, key)))
    if identity.extensions.get("x-origin") == "synthetic":
        found.append(
            finding(
                "SMP006", file, "the samples were made up by the program", line=view.line(file, "x-origin")
            )
        )
    return found


def _card(view: View) -> list[Finding]:
    if view.card is None:
        return []
    sections = {s.title.casefold(): s for s in view.card.sections}
    found = []
    for title in CARD_SECTIONS:
        section = sections.get(title.casefold())
        if section is None:
            found.append(finding("CRD001", "card.md", f"the section `## {title}` is missing"))
            continue
        template = _TEMPLATE.search(section.text)
        if "QUESTION(" in section.text:
            continue
        if template or len(section.text) < LEAST_SECTION_CHARS:
            what = f"holds `{template[0]}`" if template else "is empty or nearly so"
            found.append(finding("CRD002", "card.md", f"the section `## {title}` {what}", line=section.line))
    return found


def _slo(view: View) -> list[Finding]:
    file = "slo.yaml"
    slo: Slo | None = view.documents.get(file)
    if slo is None:
        return []
    found = []
    groups: list[tuple[tuple[str, ...], Percentiles]] = [(("total",), slo.latency.total)]
    groups += [(("stages", stage), bounds) for stage, bounds in slo.latency.stages.items()]
    for path, bounds in groups:
        fault = _rising_fault(bounds)
        if fault is not None:
            found.append(
                finding("SLO001", file, f"{path[-1]}: {fault}", line=view.line(file, "latency", *path))
            )
    found += _stage_findings(view, slo)
    if slo.latency.total.p99 is None:
        line = view.line(file, "latency", "total", "p99")
        found.append(finding("SLO003", file, "`latency.total.p99` is not stated", line=line))
    mean, peak = slo.load.mean, slo.load.peak
    if mean is not None and peak is not None and peak.per_second < mean.per_second:
        text = f"the peak of {peak} is below the mean of {mean}"
        found.append(finding("SLO004", file, text, line=view.line(file, "load", "peak")))
    return found


def _rising_fault(bounds: Percentiles) -> str | None:
    stated = [(n, getattr(bounds, n)) for n in ("p50", "p95", "p99") if getattr(bounds, n) is not None]
    for (low, a), (high, b) in pairwise(stated):
        if a.ms > b.ms:
            return f"{low} of {a} is above {high} of {b}"
    return None


def _stage_findings(view: View, slo: Slo) -> list[Finding]:
    """A stage above the total, and stages whose budgets together exceed the total."""
    found = []
    for name in ("p50", "p95", "p99"):
        total = getattr(slo.latency.total, name)
        stages = {s: getattr(p, name) for s, p in slo.latency.stages.items() if getattr(p, name) is not None}
        if total is None or not stages:
            continue
        over = [s for s, bound in stages.items() if bound.ms > total.ms]
        for stage in over:
            text = f"{name} of stage {stage} is {stages[stage]}, of the whole {total}"
            line = view.line("slo.yaml", "latency", "stages", stage, name)
            found.append(finding("SLO002", "slo.yaml", text, line=line))
        together = sum(bound.ms for bound in stages.values())
        if not over and together > total.ms:
            text = f"the {name} budgets of the stages make {together:g} ms together, the whole has {total}"
            found.append(finding("SLO002", "slo.yaml", text, line=view.line("slo.yaml", "latency", "stages")))
    return found


def _serving(view: View) -> list[Finding]:
    file = "serving.yaml"
    serving: Serving | None = view.documents.get(file)
    if serving is None:
        return []
    found = []
    if any(a >= b for a, b in pairwise(serving.buckets)):
        text = f"the buckets {serving.buckets} do not rise"
        found.append(finding("SRV002", file, text, line=view.line(file, "buckets")))
    if serving.queue.rows < serving.batching.max_rows:
        text = f"the queue takes {serving.queue.rows} rows, a batch {serving.batching.max_rows}"
        found.append(finding("SRV003", file, text, line=view.line(file, "queue", "rows")))
    batching = view.batching
    if batching is not None and batching.mode == "none" and serving.batching.policy != "off":
        text = f"batching is on, but {batching.why}"
        found.append(finding("SRV001", file, text, line=view.line(file, "batching", "policy")))
    return found


def _resources(view: View) -> list[Finding]:
    resources: Resources | None = view.documents.get("resources.yaml")
    if resources is None or resources.replicas.min is None or resources.replicas.max is None:
        return []
    if resources.replicas.max >= resources.replicas.min:
        return []
    text = f"at least {resources.replicas.min} replicas, but at most {resources.replicas.max}"
    return [finding("RES001", "resources.yaml", text, line=view.line("resources.yaml", "replicas", "max"))]


def _environment(view: View) -> list[Finding]:
    file = "environment.yaml"
    environment: Environment | None = view.documents.get(file)
    if environment is None:
        return []
    found = []
    runtime = environment.runtime
    if runtime.name not in ("onnxruntime", "onnxruntime-gpu") or not is_supported(runtime.version):
        text = f"the runtime is {runtime.name} {runtime.version}"
        found.append(finding("ENV004", file, text, line=view.line(file, "runtime")))
    if view.facts is not None:
        in_file = {d or "ai.onnx": v for d, v in sorted(view.facts.opsets)}
        if environment.opset != in_file:
            text = f"opset is {environment.opset}, in the model file {in_file}"
            found.append(finding("ENV001", file, text, line=view.line(file, "opset")))
        if environment.ir != view.facts.ir:
            text = f"ir is {environment.ir}, in the model file {view.facts.ir}"
            found.append(finding("ENV001", file, text, line=view.line(file, "ir")))
    return found + _lock_findings(view, environment)


def _lock_findings(view: View, environment: Environment) -> list[Finding]:
    file, line = "environment.yaml", view.line("environment.yaml", "lock")
    lock = environment.lock
    if lock is None:
        return [finding("ENV002", file, "`lock` is not stated", line=line)]
    fault = path_problem(view.root, lock.file)
    if fault is not None:
        return [finding("PKG001", file, fault, line=line, hint="bring the lock file into the package")]
    if file_sha256(view.root / lock.file) != lock.sha256:
        return [finding("ENV003", file, f"`{lock.file}` has another sha256 than stated", line=line)]
    loose = _loose_requirement(view.root / lock.file)
    return [] if loose is None else [finding("ENV005", lock.file, loose[1], line=loose[0])]


def _loose_requirement(path: Path) -> tuple[int, str] | None:
    """The first requirement of a pip-style lock that is not pinned and hashed; other lock formats pin by nature."""
    if path.name in ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "conda-lock.yml", "pylock.toml"):
        return None
    logical, start = "", 1
    for number, raw in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        text = raw.split(" #")[0].strip()
        if not logical:
            start = number
        logical += text.removesuffix("\\") + " "
        if text.endswith("\\"):
            continue
        requirement, logical = logical.strip(), ""
        if not requirement or requirement.startswith(("#", "-")):
            continue
        if "==" not in requirement or "--hash=" not in requirement:
            return start, f"`{requirement:.60}` is not pinned with `==` and a hash"
    return None


def _features(view: View) -> list[Finding]:
    spec: FeatureSpec | None = view.documents.get("features.yaml")
    signature = view.documents.get("signature.yaml")
    if spec is None or signature is None:
        return []
    names = {t.name for t in signature.inputs}
    uncovered = [finding("FEA002", "features.yaml", text) for text in column_problems(spec, signature)[:20]]
    return uncovered + [
        finding(
            "FEA001",
            "features.yaml",
            f"feature {i} (field `{f.field or 'none'!s:.60}`) feeds `{f.tensor:.60}`, which is no input",
            line=view.line("features.yaml", "features", i, "tensor"),
        )
        for i, f in enumerate(spec.features)
        if f.tensor not in names
    ]
