"""The texts of a draft package. Typed values where the program knows, marked questions where only people can answer."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import dataclass
from typing import Any, get_args

from seatrial.check.facts import ModelFacts
from seatrial.check.signature_draft import DraftDim, DraftTensor
from seatrial.contract import API_VERSION, Task

__all__ = ["Draft", "draft_files"]

# What would be markup in the card, and what stands for it there.
_MARKUP = str.maketrans({"|": "/", "<": "\u2039", ">": "\u203a"})


@dataclass(frozen=True)
class Draft:
    """Everything the texts are made from."""

    name: str
    facts: ModelFacts
    inputs: list[DraftTensor]
    outputs: list[DraftTensor]
    runtime: str
    synthetic: bool
    batching: dict[str, Any]
    changes: list[tuple[str, str]]


def draft_files(draft: Draft) -> dict[str, str]:
    """Relative path -> text of every file that people own."""
    return {
        "seatrial.yaml": _identity(draft),
        "signature.yaml": _signature(draft),
        "slo.yaml": _SLO,
        "serving.yaml": _serving(draft),
        "resources.yaml": _RESOURCES,
        "environment.yaml": _environment(draft),
        "card.md": _card(draft),
        "CODEOWNERS": _CODEOWNERS,
    }


def quoted(text: str) -> str:
    """A text as a YAML double-quoted scalar on one line."""
    plain = json.dumps(text, ensure_ascii=False)
    return re.sub(
        r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]", lambda m: f"\\u{ord(m[0]):04x}", plain
    )


def _head(kind: str) -> str:
    return f"apiVersion: {API_VERSION}\nkind: {kind}\n"


def _identity(draft: Draft) -> str:
    origin = "x-origin: synthetic  # samples/ was made up by the program\n" if draft.synthetic else ""
    return (
        _head("Package")
        + f"name: {quoted(draft.name)}\n"
        + 'version: "0.1.0"\n'
        + 'purpose: "QUESTION(algorithm): which decision is made with the answer?"\n'
        + f"task: null  # QUESTION(algorithm): which task: {', '.join(get_args(Task))}?\n"
        + "intended_use: []  # QUESTION(algorithm): what may it be used for?\n"
        + "out_of_scope: []  # QUESTION(algorithm): what must it not be used for?\n"
        + "owners:\n"
        + "  algorithm:\n"
        + "    role: model owner\n"
        + '    contact: "QUESTION(algorithm): which mail list or channel reaches the model owners?"\n'
        + "  infra:\n"
        + "    role: serving owner\n"
        + '    contact: "QUESTION(infra): which mail list or channel reaches the serving owners?"\n'
        + "licence: null  # QUESTION(algorithm): what is the SPDX name of the licence?\n"
        + "rollback_class: null  # QUESTION(both): how is it rolled back: instant, redeploy or migration?\n"
        + "seeds: {}  # QUESTION(algorithm): which seeds did training, split and export use?\n"
        + origin
    )


def _signature(draft: Draft) -> str:
    asked: set[str] = set()
    text = _head("Signature") + "inputs:" + ("\n" if draft.inputs else " []\n")
    for tensor in draft.inputs:
        text += _tensor(tensor, asked)
    text += "outputs:\n"
    for tensor in draft.outputs:
        text += _tensor(tensor, None)
    return text + "error_codes: []\n"


def _tensor(tensor: DraftTensor, asked: set[str] | None) -> str:
    """One tensor. Inputs ask once for the maximum of each free dimension; outputs follow from them."""
    text = f"  - name: {quoted(tensor.name)}\n    datatype: {tensor.datatype}\n    shape:"
    text += " []\n" if not tensor.dims else "\n"
    for dim in tensor.dims:
        question = ""
        if asked is not None and dim.name is not None and dim.name not in asked:
            asked.add(dim.name)
            question = f"  # QUESTION(both): how large may {dim.name} be at most?"
        text += f"      - {_dim(dim)}{question}\n"
    if tensor.range is not None:
        text += f"    range: [{tensor.range[0]}, {tensor.range[1]}]  # rows of the table that it is looked up in\n"
    if tensor.labels is not None:
        text += f"    labels: [{', '.join(quoted(label) for label in tensor.labels)}]\n"
    return text


def _dim(dim: DraftDim) -> str:
    if dim.name is None:
        return str(dim.size) if dim.why is None else f"{{size: {dim.size}, why: {quoted(dim.why)}}}"
    least = f", min: {dim.min}" if dim.min else ""
    return f"{{name: {quoted(dim.name)}{least}, max: null}}"


_SLO = (
    _head("Slo")
    + """latency:
  total:
    p50: null  # QUESTION(both): what may the median response take, such as 10ms?
    p95: null  # QUESTION(both): what may 19 of 20 responses take, such as 40ms?
    p99: null  # QUESTION(both): what may 99 of 100 responses take, such as 100ms?
  stages: {}
memory_per_instance: null  # QUESTION(infra): how much memory may an instance take, such as 2GiB?
error_budget: null  # QUESTION(both): which share of requests may fail or come late, such as 0.1%?
availability: null  # QUESTION(both): which availability is promised, such as 99.9%?
load:
  mean: null  # QUESTION(both): which load is usual, such as 500/s?
  peak: null  # QUESTION(both): which load is the highest of a normal day, such as 2000/s?
  growth: null  # QUESTION(both): how does the load grow, such as 5%/month?
window: 30d
"""
)

_RESOURCES = (
    _head("Resources")
    + """basis: estimate
cpu:
  cores: null  # QUESTION(infra): how many cores does an instance ask for, such as 2 cores?
  instruction_sets: []
memory: null  # QUESTION(infra): how much memory does an instance ask for, such as 1GiB?
gpu: null
disk: null
network: null
replicas:
  min: null  # QUESTION(infra): how many instances run at least?
  max: null  # QUESTION(infra): how many instances run at most?
scaling:
  signal: queue_rows
"""
)

_CODEOWNERS = """# Who approves a change of which file. Replace the two roles by the handles of your forge.
# QUESTION(both): which handles stand for the roles @algorithm and @infra?
/seatrial.yaml     @algorithm @infra
/card.md           @algorithm
/signature.yaml    @algorithm @infra
/features.yaml     @algorithm
/slo.yaml          @algorithm @infra
/serving.yaml      @infra
/resources.yaml    @algorithm @infra
/environment.yaml  @algorithm @infra
/model/            @algorithm
/samples/          @algorithm
/evaluation/       @algorithm
"""


def _serving(draft: Draft) -> str:
    policy = "off" if draft.batching["mode"] == "none" else "dynamic"
    return (
        _head("Serving")
        + f"batching:\n  policy: {policy}\n  max_rows: 64\n"
        + "executors: auto\nthreads: auto\nqueue:\n  rows: 1024\ntimeout: 1s\n"
        + "limits:\n  max_body: 64MiB\nprovider:\n  name: cpu\n"
    )


def _environment(draft: Draft) -> str:
    facts = draft.facts
    opsets = {d or "ai.onnx": v for d, v in facts.opsets}
    exporter = "null  # QUESTION(algorithm): which exporter, as {name: ..., version: ...}?"
    if facts.producer:
        name, _, version = facts.producer.partition(" ")
        exporter = f"{{name: {quoted(name)}, version: {quoted(version or 'not stated')}}}"
    changes = "changes: []\n"
    if draft.changes:
        changes = "changes:\n" + "".join(
            f"  - what: {quoted(what)}\n    by: seatrial init\n    original_sha256: {digest}\n"
            for what, digest in draft.changes
        )
    return (
        _head("Environment")
        + "training: null  # QUESTION(algorithm): which training framework, as {name: ..., version: ...}?\n"
        + f"exporter: {exporter}\n"
        + f'runtime: {{name: onnxruntime, version: "{draft.runtime}"}}\n'
        + "opset: {"
        + ", ".join(f"{quoted(d)}: {v}" for d, v in opsets.items())
        + "}\n"
        + f"ir: {facts.ir}\n"
        + "lock: null  # QUESTION(algorithm): which lock file made the model, as {file: ..., sha256: ...}?\n"
        + f"hardware: {quoted(f'{platform.machine()}, probe only')}\n"
        + changes
    )


def _card(draft: Draft) -> str:
    facts = draft.facts
    samples = (
        "made up by the program (`x-origin: synthetic`)" if draft.synthetic else "given to `seatrial init`"
    )
    changes = "".join(f"- Changed after export: {_inline(what)}.\n" for what, _ in draft.changes)
    return f"""---
library_name: onnx
tags: [seatrial]
---
# {draft.name}

## Purpose

QUESTION(algorithm): which decision is made with the answer, by whom, and what happens when it is wrong?

## Inputs and outputs

<!-- seatrial:begin signature -->
{_tensor_table(draft)}

- Batching: {draft.batching["mode"]}; {_inline(draft.batching["why"])}.
- Samples: {samples}.
{changes}<!-- seatrial:end signature -->

QUESTION(algorithm): what does each input mean, in which unit, and what does a good answer look like?

## Feature dependencies

QUESTION(algorithm): which services and tables do the inputs come from, how old may they be, what stands for a missing value?

## Offline evaluation

QUESTION(algorithm): which metric on which data, with its interval, by slice, against which baseline?

## Resource needs

<!-- seatrial:begin sizes -->
{_sizes(facts)}
<!-- seatrial:end sizes -->

QUESTION(infra): how many cores, how much memory, how many instances, by which measurement?

## Known risks

QUESTION(algorithm): where does the model fail, who is harmed, what must not be concluded from its answer?
"""


def _tensor_table(draft: Draft) -> str:
    rows = ["| | name | datatype | shape | range |", "|---|---|---|---|---|"]
    for side, tensors in (("input", draft.inputs), ("output", draft.outputs)):
        for t in tensors:
            shape = ", ".join(str(d.size if d.name is None else d.name) for d in t.dims)
            legal = f"{t.range[0]} to {t.range[1]}" if t.range else ""
            rows.append(f"| {side} | `{_label(t.name)}` | {t.datatype} | [{shape}] | {legal} |")
    return "\n".join(rows)


def _inline(text: str) -> str:
    """A text of the file on one line that can neither end a table cell nor hold markup."""
    plain = "".join(c if c.isprintable() else " " for c in text).translate(_MARKUP)
    return " ".join(plain.split())[:300].rstrip(".")


def _label(text: str) -> str:
    """A name of the file, which cannot end a code span either."""
    return _inline(text.replace("`", "'"))


def _sizes(facts: ModelFacts) -> str:
    lines = [
        f"- Stored values: {facts.n_parameters:,} in {facts.parameter_bytes:,} bytes; file {facts.file_bytes:,} bytes"
        + (
            f" and {len({t.location for t in facts.external})} file(s) of external data"
            if facts.external
            else ""
        ),
        f"- Operators: {', '.join(f'{_label(op)} {n}' for op, n in list(facts.operators.items())[:12])}",
    ]
    work = facts.work
    if work is None:
        return "\n".join(
            [*lines, "- Floating-point operations: not countable, the graph's shapes cannot be inferred"]
        )
    at = (
        ", ".join(f"{_label(n)} = {v}" for n, v in work.at.items() if not n.startswith("~"))
        or "the sizes of the first sample"
    )
    missing = ", ".join(f"{_label(op)} {n}" for op, n in work.not_counted.items()) or "nothing"
    lines.append(
        f"- Floating-point operations of one request: {work.flops:,} at {at}; not counted: {missing}"
    )
    lines.append(
        f"- Memory estimate: {facts.memory_bytes:,} bytes (stored values and activations, without the runtime)"
    )
    return "\n".join(lines)
