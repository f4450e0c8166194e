"""What a model file is, by reading alone: inputs, outputs, operators, versions, sizes. No runtime is opened."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from typing import Any

from seatrial.check.external import ExternalTensor, external_tensors
from seatrial.check.reading import DTYPES, ParsedModel, graphs_of, node_label, nodes_of
from seatrial.check.tables import longest_sum, lookup_tables

__all__ = ["GraphTensor", "ModelFacts", "Work", "collect_facts"]

# Bits of one element by ONNX type; types that are not listed count as one byte.
_BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128, 16: 16,
         21: 4, 22: 4, 23: 4}  # fmt: skip


@dataclass(frozen=True)
class GraphTensor:
    """An input or output as the file declares it. A dimension is a size, a symbol, or None where nothing is said."""

    name: str
    datatype: str | None
    dims: tuple[int | str | None, ...] | None
    kind: str = "tensor"


@dataclass(frozen=True)
class Work:
    """Floating-point operations and activation memory of one row, with what could not be counted."""

    flops: int
    activation_bytes: int
    at: dict[str, int]
    by_op: dict[str, int]
    not_counted: dict[str, int]


@dataclass(frozen=True)
class ModelFacts:
    """What a model file is. `work` is None where it was not asked for or the graph defied counting."""

    inputs: tuple[GraphTensor, ...]
    outputs: tuple[GraphTensor, ...]
    opsets: tuple[tuple[str, int], ...]
    ir: int
    operators: dict[str, int]
    domains: dict[str, list[str]]
    n_parameters: int
    parameter_bytes: int
    file_bytes: int
    external: tuple[ExternalTensor, ...]
    producer: str
    metadata: dict[str, str]
    # Integer input -> rows of the smallest table it is looked up in, for inputs that are looked up and nothing else.
    tables: dict[str, int] = field(default_factory=dict)
    # Terms of the longest sum of products over stored weights: rounding errors grow with its root.
    longest_sum: int = 1
    work: Work | None = None

    @property
    def opset(self) -> int:
        """The version of the default operator set; 0 when it is not imported."""
        return max((v for d, v in self.opsets if d == ""), default=0)

    @property
    def memory_bytes(self) -> int | None:
        """Parameters plus the activations of one row; None when the activations were not counted."""
        return None if self.work is None else self.parameter_bytes + self.work.activation_bytes


def collect_facts(model: ParsedModel) -> ModelFacts:
    """The facts of a parsed model."""
    proto = model.proto
    graph = proto.graph
    stored = {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
    n_parameters, parameter_bytes = _parameters(graph)
    external = external_tensors(proto)
    return ModelFacts(
        inputs=tuple(_tensor(v) for v in graph.input if v.name not in stored),
        outputs=tuple(_tensor(v) for v in graph.output),
        opsets=tuple((_domain(o.domain), o.version) for o in proto.opset_import),
        ir=proto.ir_version,
        operators=dict(Counter(_operator(n) for n in nodes_of(graph)).most_common()),
        domains=_domains(proto),
        n_parameters=n_parameters,
        parameter_bytes=parameter_bytes,
        file_bytes=model.size_bytes,
        external=() if isinstance(external, str) else tuple(external),
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        metadata={p.key: p.value[:500] for p in proto.metadata_props[:100]},
        tables=lookup_tables(graph),
        longest_sum=longest_sum(graph),
    )


def _domain(text: str) -> str:
    return "" if text == "ai.onnx" else text


def _operator(node: Any) -> str:
    domain = _domain(node.domain)
    return f"{domain}.{node.op_type}" if domain else str(node.op_type)


def _domains(proto: Any) -> dict[str, list[str]]:
    """Domain -> labels of its nodes, without the default one and without functions that the file brings along."""
    own = {(f.domain, f.name) for f in proto.functions}
    found: dict[str, list[str]] = {}
    bodies = [n for f in proto.functions for n in f.node]
    for node in (*nodes_of(proto.graph), *bodies):
        domain = _domain(node.domain)
        if domain and (node.domain, node.op_type) not in own:
            found.setdefault(domain, []).append(node_label(node))
    return found


def _parameters(graph: Any) -> tuple[int, int]:
    """Number and bytes of stored floating or large tensors; shape constants and the like are counted as well."""
    count = size = 0
    for inner in graphs_of(graph):
        for tensor in inner.initializer:
            n = prod(max(d, 0) for d in tensor.dims)
            count += n
            size += (n * _BITS.get(tensor.data_type, 8) + 7) // 8
    return count, size


def _tensor(value: Any) -> GraphTensor:
    kind = value.type.WhichOneof("value") or "nothing"
    if kind != "tensor_type":
        return GraphTensor(value.name, None, None, kind.removesuffix("_type"))
    declared = value.type.tensor_type
    datatype = DTYPES.get(declared.elem_type)
    if not declared.HasField("shape"):
        return GraphTensor(value.name, datatype, None)
    return GraphTensor(value.name, datatype, tuple(_dim(d) for d in declared.shape.dim))


def _dim(dim: Any) -> int | str | None:
    """A size, a symbol, or None: some exporters write `?`, `None`, -1 or 0 for a dimension that is free."""
    if dim.dim_param and re.search(r"[A-Za-z]", dim.dim_param) and dim.dim_param != "None":
        return str(dim.dim_param)
    if dim.HasField("dim_value") and dim.dim_value > 0:
        return int(dim.dim_value)
    return None
