"""Resolves packages and options into the one JSON file that the server reads (ARCHITECTURE.md, "server.json")."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial import settings
from seatrial.contract import Golden, Package, SampleTensor, read_golden, resolve_features
from seatrial.engine.cpu import CpuLimit, cpu_limit
from seatrial.engine.runtime import find_runtime
from seatrial.errors import UsageError

__all__ = ["EngineOptions", "resolve", "resolve_model"]

# One thread that reads and writes sockets serves as many executor threads without being the narrow place.
CPUS_PER_IO_THREAD = 4

# Enough to prove that a version computes what it should, few enough to cost nothing at each load.
GOLDEN_ROWS = 4
GOLDEN_BYTES = 256 << 10

LATENCY_EDGES_MS = (
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0,
)  # fmt: skip


@dataclass(frozen=True)
class EngineOptions:
    """What the person who starts the server may choose. `None` leaves it to the package, the settings or the host."""

    host: str | None = None
    port: int = 0
    port_file: Path | None = None
    grpc_port: int | None = None
    grpc_port_file: Path | None = None
    executors: int | None = None
    threads: int | None = None
    runtime: str | None = None
    grace_ms: int = 0
    drain_timeout_ms: int = 30_000


def resolve(packages: Sequence[Package], options: EngineOptions) -> dict[str, Any]:
    """The resolved configuration of a server for these packages."""
    if not packages:
        raise UsageError("no package was named", hint="`seatrial serve PACKAGE` takes one or more")
    _require_distinct(packages)
    if options.grpc_port_file is not None and options.grpc_port is None:
        raise UsageError("`--grpc-port-file` needs `--grpc-port`", hint="`--grpc-port 0` takes a free port")
    return {
        "listen": {
            "host": settings.resolve("host", options.host),
            "port": options.port,
            "port_file": _absolute(options.port_file),
            "grpc_port": options.grpc_port,
            "grpc_port_file": _absolute(options.grpc_port_file),
        },
        "io_threads": max(1, cpu_limit().cpus // CPUS_PER_IO_THREAD),
        "runtime_library": str(find_runtime(options.runtime).library),
        "limits": {
            "max_body_bytes": max(p.serving.limits.max_body.bytes for p in packages),
            "max_header_bytes": 64 << 10,
            "max_headers": 100,
            "max_connections": 10_000,
            "header_timeout_ms": 10_000,
            "body_timeout_ms": 30_000,
            "idle_timeout_ms": 75_000,
        },
        "drain": {"grace_ms": options.grace_ms, "timeout_ms": options.drain_timeout_ms},
        "models": [resolve_model(package, options) for package in packages],
    }


def _absolute(path: Path | None) -> str | None:
    return str(path.absolute()) if path is not None else None


def _require_distinct(packages: Sequence[Package]) -> None:
    seen: dict[tuple[str, str], Package] = {}
    for package in packages:
        key = (package.identity.name, package.digest)
        if key in seen:
            raise UsageError(
                f"package `{package.root}` is the same version of `{key[0]}` as `{seen[key].root}`",
                hint="name each package once",
            )
        seen[key] = package


def resolve_model(package: Package, options: EngineOptions) -> dict[str, Any]:
    """The part of the configuration that names one package."""
    serving = package.serving
    executors, threads = _threads(package, options, cpu_limit())
    return {
        "name": package.identity.name,
        "version": str(package.identity.version),
        "digest": package.digest,
        "model_file": str(package.model_file),
        "signature": _signature(package),
        "batching": _batching(package),
        "executors": executors,
        "intra_op_threads": threads,
        "queue_rows": serving.queue.rows,
        "priority_levels": serving.queue.priority_levels,
        "measure_ms": 0 if serving.batching.measure == "off" else round(serving.batching.measure.ms),
        "timeout_ms": max(1, round(serving.timeout.ms)),
        "latency_buckets_ms": _edges(package),
        **_features(package),
        "keep": serving.versions.keep,
        "files_bytes": sum(
            file.stat().st_size for file in package.model_file.parent.rglob("*") if file.is_file()
        ),
        "golden": list(itertools.islice(_golden(package), GOLDEN_ROWS)),
    }


def _features(package: Package) -> dict[str, Any]:
    """How raw fields become inputs, where the package says so."""
    if package.features is None:
        return {}
    spec = resolve_features(package.features, package.signature)
    return {"features": {"folder": str(package.root), "spec": spec}}


def _golden(package: Package) -> Iterator[dict[str, Any]]:
    """The golden rows that are small and that JSON holds without an encoding of ours."""
    for golden in read_golden(package.root) if package.golden_file else ():
        row = {
            "request": {"inputs": [_tensor(t) for t in golden.request.inputs]},
            "outputs": [_tensor(t) for t in golden.outputs],
            "tolerance": golden.tolerance.model_dump(),
        }
        if len(json.dumps(row)) <= GOLDEN_BYTES and not _has_base64(golden):
            yield row


def _tensor(tensor: SampleTensor) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape, "data": tensor.data}


def _has_base64(golden: Golden) -> bool:
    tensors = (*golden.request.inputs, *golden.outputs)
    return any(t.datatype == "BYTES" and '{"base64"' in json.dumps(t.data) for t in tensors)


def _threads(package: Package, options: EngineOptions, limit: CpuLimit) -> tuple[int, int]:
    """Executors and the threads of each: one executor with all CPUs unless flag or package say otherwise."""
    serving = package.serving
    executors = options.executors or (None if serving.executors == "auto" else serving.executors)
    threads = options.threads or (None if serving.threads == "auto" else serving.threads)
    if executors is None:
        executors = 1 if threads is None else max(1, limit.cpus // threads)
    if threads is None:
        threads = max(1, limit.cpus // executors)
    return executors, threads


def _signature(package: Package) -> dict[str, Any]:
    """The signature, with the rows of one request bounded where serving.yaml bounds them."""
    resolved: dict[str, Any] = package.signature.resolved()
    rows = package.serving.limits.max_rows_per_request
    for tensor in resolved["inputs"] if rows is not None else ():
        first = tensor["shape"][0] if tensor["shape"] else None
        if isinstance(first, dict):
            first["max"] = rows if first["max"] is None else min(rows, first["max"])
    return resolved


def _batching(package: Package) -> dict[str, Any]:
    """What was found decides what may be joined; serving.yaml decides how much of it, or that nothing is."""
    policy, found = package.serving.batching, package.batching()
    alone = {"mode": "none", "max_rows": policy.max_rows}
    if found is None:
        return alone | {"why": "not probed: the package holds no batching evidence for this model file"}
    if policy.policy == "off":
        return alone | {"why": "turned off in serving.yaml"}
    if found.axis != 0:
        return alone | {"why": found.why}
    rows = policy.max_rows if found.max_rows is None else max(1, min(policy.max_rows, found.max_rows))
    preferred = {
        "rows": [n for n in policy.preferred_rows if n <= rows],
        "max_delay_ms": round(policy.max_delay.ms),
    }
    return {
        "mode": found.mode,
        "max_rows": rows,
        "why": found.why,
        "padding": None if found.padding is None else found.padding.resolved(),
        "preferred": preferred if policy.policy == "preferred" and preferred["rows"] else None,
    }


def _edges(package: Package) -> list[float]:
    """The usual edges and one at each objective, so that the share within the budget is exact."""
    total = package.slo.latency.total
    objectives = (d.ms for d in (total.p50, total.p95, total.p99) if d is not None and d.ms > 0)
    return sorted({*LATENCY_EDGES_MS, *objectives})
