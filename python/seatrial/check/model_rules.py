"""Rules on the graph of a model: versions, domains, operators, kinds of outputs, training mode. By reading alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from seatrial.check.facts import ModelFacts
from seatrial.check.findings import Finding, finding
from seatrial.check.reading import ParsedModel, node_label, nodes_of
from seatrial.check.runtime import LOWEST_PROMISED_OPSET, runtime_row
from seatrial.contract import MODEL

__all__ = ["DYNAMIC_QUANTIZATION", "model_findings", "version_findings"]

KNOWN_DOMAINS = {"", "ai.onnx", "ai.onnx.ml"}
RUNTIME_DOMAINS = {"com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc", "ai.onnx.contrib"}
_RANDOM = {
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
}
DYNAMIC_QUANTIZATION = {"DynamicQuantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul"}
MAX_NAMED = 3


def model_findings(model: ParsedModel, facts: ModelFacts, runtime: str, file: str = MODEL) -> list[Finding]:
    """Everything the graph alone says against serving it with this runtime version."""
    found = version_findings(facts, runtime, file)
    found += _domain_findings(facts, file)
    if any(f.severity == "error" for f in found):
        return found
    return (
        found
        + _kind_findings(facts, file)
        + _operator_findings(model.proto, file)
        + _node_findings(model.proto, file)
    )


def version_findings(facts: ModelFacts, runtime: str, file: str = MODEL) -> list[Finding]:
    """IR and opset against the row of the runtime."""
    row = runtime_row(runtime)
    if row is None:
        return []  # an unknown runtime is a finding about environment.yaml, not about the model
    found = []
    if facts.ir > row.ir:
        text = f"IR {facts.ir}, runtime {runtime} takes up to {row.ir}"
        cure = f"set `model.ir_version = {row.ir}` before saving, or use a newer runtime"
        found.append(finding("MOD004", file, text, hint=cure))
    if facts.opset > row.opset:
        text = f"opset {facts.opset}, runtime {runtime} takes up to {row.opset}"
        cure = f"export with opset {row.opset} or lower, or use a newer runtime"
        found.append(finding("MOD005", file, text, hint=cure))
    ml = max((v for d, v in facts.opsets if d == "ai.onnx.ml"), default=0)
    if row.ml_opset is not None and ml > row.ml_opset:
        text = f"opset {ml} of ai.onnx.ml, runtime {runtime} takes up to {row.ml_opset}"
        found.append(finding("MOD005", file, text))
    if 0 < facts.opset < LOWEST_PROMISED_OPSET:
        text = f"opset {facts.opset}, runtimes promise {LOWEST_PROMISED_OPSET} and up"
        found.append(finding("MOD006", file, text))
    twice = [d or "ai.onnx" for d, n in Counter(d for d, _ in facts.opsets).items() if n > 1]
    if twice:
        found.append(
            finding("MOD012", file, f"opset of {', '.join(f'`{d}`' for d in twice)} is imported twice")
        )
    return found


def _domain_findings(facts: ModelFacts, file: str) -> list[Finding]:
    found = []
    for domain, labels in facts.domains.items():
        if domain in KNOWN_DOMAINS:
            continue
        named = _named(labels)
        if domain in RUNTIME_DOMAINS:
            found.append(finding("MOD008", file, f"domain `{domain}` exists in onnxruntime only: {named}"))
            continue
        text = f"{named} needs domain `{domain}`, for which no library is declared"
        cure = f"replace the node by standard operators; a library for `{domain}` cannot be given yet"
        found.append(finding("MOD007", file, text, hint=cure))
    return found


def _kind_findings(facts: ModelFacts, file: str) -> list[Finding]:
    found = []
    for side, tensors in (("input", facts.inputs), ("output", facts.outputs)):
        for tensor in tensors:
            if tensor.kind != "tensor":
                text = f"{side} `{tensor.name}` is a {tensor.kind}, only tensors can be served"
                found.append(finding("MOD010", file, text))
            elif tensor.datatype is None:
                text = f"{side} `{tensor.name}` has an element type that the protocol does not know"
                found.append(
                    finding("MOD010", file, text, hint="cast it to one of the protocol's types in the graph")
                )
    return found


def _operator_findings(proto: Any, file: str) -> list[Finding]:
    """Operators that the imported opset does not have, as far as the installed onnx package knows the opset."""
    import onnx.defs

    versions = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in proto.opset_import}
    own = {(f.domain, f.name) for f in proto.functions}
    found: dict[tuple[str, str], str] = {}
    for node in nodes_of(proto.graph):
        domain = "" if node.domain == "ai.onnx" else node.domain
        if domain not in ("", "ai.onnx.ml") or (node.domain, node.op_type) in own:
            continue
        version = versions.get(domain, 0)
        try:
            known = version > 0 and onnx.defs.has(node.op_type, version, domain)
        except (ValueError, TypeError, OverflowError):
            known = False
        if not known:
            found.setdefault((domain, node.op_type), node_label(node))
    return [
        finding(
            "MOD009",
            file,
            f"node `{label}`: `{op}` is not in opset {versions.get(domain, 0)} of `{domain or 'ai.onnx'}`",
        )
        for (domain, op), label in found.items()
    ]


def _node_findings(proto: Any, file: str) -> list[Finding]:
    constants = {t.name: t for t in proto.graph.initializer}
    rules: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
        ("MOD011", lambda n: _in_training_mode(n, constants), "training mode"),
        (
            "MOD014",
            lambda n: n.op_type in _RANDOM and not any(a.name == "seed" for a in n.attribute),
            "random numbers without a seed",
        ),
        ("MOD013", lambda n: n.op_type in DYNAMIC_QUANTIZATION, "quantised over the whole batch"),
    )
    found = []
    for code, holds, what in rules:
        labels = [node_label(n) for n in nodes_of(proto.graph) if holds(n)]
        if labels:
            found.append(finding(code, file, f"{what}: {_named(labels)}"))
    return found


def _in_training_mode(node: Any, constants: dict[str, Any]) -> bool:
    if node.op_type == "BatchNormalization":
        return any(a.name == "training_mode" and a.i == 1 for a in node.attribute)
    if node.op_type != "Dropout" or len(node.input) < 3 or not node.input[2]:
        return False
    flag = constants.get(node.input[2])
    return flag is None or bool(flag.int32_data and flag.int32_data[0]) or flag.raw_data[:1] == b"\x01"


def _named(labels: list[str]) -> str:
    shown = ", ".join(f"`{label:.120}`" for label in labels[:MAX_NAMED])
    more = f" and {len(labels) - MAX_NAMED} more" if len(labels) > MAX_NAMED else ""
    return f"node {shown}{more}"
