"""Starts the probe's process and reads what it left behind, also after a crash, a time-out or a lack of memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Job", "ProbeResult", "run_child", "run_probe"]

TIMEOUT_S = 120.0
LEAST_MEMORY_BYTES = 4 << 30


@dataclass(frozen=True)
class Job:
    """What to probe. `inputs` and `outputs` are plain dictionaries, since they cross a process border."""

    model: Path
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    requests: Path
    golden: Path
    samples: Path | None = None
    timeout_s: float = TIMEOUT_S
    model_bytes: int = 0
    longest_sum: int = 1


@dataclass(frozen=True)
class ProbeResult:
    """What the child found. `error` is set when it could not finish, `step` then says where it stood."""

    step: str
    error: str | None = None
    groups: list[dict[str, Any]] = field(default_factory=list)
    batching: dict[str, Any] | None = None
    not_repeatable: str | None = None
    first_sizes: dict[str, int] = field(default_factory=dict)
    n_requests: int = 0
    n_golden: int = 0
    batch_symbols: list[str] = field(default_factory=list)


def run_probe(job: Job) -> ProbeResult:
    """Runs the probe; never raises for what the model does."""
    with tempfile.TemporaryDirectory(prefix="seatrial-probe-") as folder:
        result_file = Path(folder) / "result.json"
        document = {
            "model": str(job.model),
            "inputs": job.inputs,
            "outputs": job.outputs,
            "requests": str(job.requests),
            "golden": str(job.golden),
            "samples": str(job.samples) if job.samples else None,
            "result": str(result_file),
            "longest_sum": job.longest_sum,
            "memory_bytes": LEAST_MEMORY_BYTES + 4 * job.model_bytes,
        }
        ended = run_child("seatrial.check.probe.child", document, Path(folder), job.timeout_s)
        left = json.loads(result_file.read_text("utf-8")) if result_file.exists() else {"step": "start"}
    if ended is not None and left.get("step") != "done":
        left.setdefault("error", ended)
    return ProbeResult(**left)


def run_child(module: str, document: dict[str, Any], folder: Path, timeout_s: float) -> str | None:
    """Runs a module on a job file in a process group of its own; how it ended, or None when it ended well."""
    job_file = folder / "job.json"
    job_file.write_text(json.dumps(document), "utf-8")
    # The package may be run from its source folder, so the child looks where this process looks.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-m", module, str(job_file)]
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(child)
        return f"it took longer than {timeout_s:g} s"
    except BaseException:
        _kill(child)
        raise
    if child.returncode < 0:
        return f"the runtime died of {signal.Signals(-child.returncode).name}"
    if child.returncode:
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return f"the probe failed: {lines[-1][:300] if lines else f'exit code {child.returncode}'}"
    return None


def _kill(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()
