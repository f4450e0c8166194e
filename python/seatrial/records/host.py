"""Reads the host fingerprint: CPU, memory, limits of the cgroup (v1 or v2), versions. Nothing is guessed."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
from pathlib import Path

from seatrial.records.envelope import HostFingerprint

__all__ = ["host_fingerprint"]

# Flags that decide which kernels ONNX Runtime takes; two hosts that differ here are not alike.
FLAGS = (
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx_vnni",
    "amx_tile",
    "amx_int8",
)
PACKAGES = ("onnxruntime", "onnx", "numpy", "pyarrow", "pydantic")
# cgroup v1 writes "no limit" as the largest page-aligned number.
NO_LIMIT = 1 << 60


def host_fingerprint() -> HostFingerprint:
    """The machine of this process. `like` hashes the parts that decide speed, not kernel or versions."""
    cpuinfo = _key_values("/proc/cpuinfo", ":")
    flags = set((cpuinfo.get("flags") or cpuinfo.get("Features") or "").split())
    memory = _key_values("/proc/meminfo", ":").get("MemTotal")
    stable: dict[str, object] = {
        "cpu_model": cpuinfo.get("model name") or platform.processor() or None,
        "logical_cpus": os.cpu_count() or 1,
        "affinity_cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        "cpu_limit": _cpu_limit(),
        "cpu_flags": [flag for flag in FLAGS if flag in flags],
        "memory_bytes": int(memory.split()[0]) * 1024 if memory else None,
        "memory_limit_bytes": _memory_limit(),
    }
    return HostFingerprint.model_validate(
        {
            **stable,
            "kernel": platform.release(),
            "os": _os_name(),
            "python": platform.python_version(),
            "versions": _versions(),
            "like": _like(stable, platform.machine()),
        }
    )


def _like(stable: dict[str, object], machine: str) -> str:
    """Memory counts in whole GiB, because kernels reserve a little more or less of it."""
    memory = stable["memory_bytes"]
    rounded = {
        **stable,
        "machine": machine,
        "memory_bytes": round(memory / 2**30) if isinstance(memory, int) else None,
    }
    return hashlib.sha256(json.dumps(rounded, sort_keys=True).encode()).hexdigest()[:16]


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return f"{platform.system()} {platform.version()}"


def _read(path: str | Path) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _key_values(path: str, separator: str) -> dict[str, str]:
    """The first value of each key."""
    found: dict[str, str] = {}
    for line in (_read(path) or "").splitlines():
        key, _, value = line.partition(separator)
        found.setdefault(key.strip(), value.strip())
    return found


def _cgroup_folders(controller: str) -> list[Path]:
    """Folders of this process's cgroup from the innermost outwards, for v2 and for one v1 controller."""
    folders: list[Path] = []
    for line in (_read("/proc/self/cgroup") or "").splitlines():
        number, names, path = line.split(":", 2)
        if number == "0":
            root = Path("/sys/fs/cgroup")
        elif controller in names.split(","):
            root = Path("/sys/fs/cgroup") / controller
        else:
            continue
        inner = root / path.lstrip("/")
        folders += [inner, *(p for p in inner.parents if p == root or root in p.parents)]
    return folders


def _cpu_limit() -> float | None:
    """The smallest quota on the way to the root, in CPUs."""
    limits = []
    for folder in _cgroup_folders("cpu"):
        quota, _, period = (_read(folder / "cpu.max") or "").partition(" ")
        if not quota:
            quota, period = (
                _read(folder / "cpu.cfs_quota_us") or "",
                _read(folder / "cpu.cfs_period_us") or "",
            )
        if quota.isdigit() and period.isdigit() and int(period):
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def _memory_limit() -> int | None:
    """The smallest memory limit on the way to the root."""
    limits = []
    for folder in _cgroup_folders("memory"):
        text = _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes") or ""
        if text.isdigit() and int(text) < NO_LIMIT:
            limits.append(int(text))
    return min(limits, default=None)
