"""How many CPUs this process may use: the cgroup quota (v1 and v2), the cpuset and the affinity, never the host's count.

A container with a quota of 2 on a 64-core host runs 64 threads into the quota if it asks the host.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CpuLimit", "cpu_limit"]


@dataclass(frozen=True)
class CpuLimit:
    """The number of CPUs to plan with, at least 1, and what set it."""

    cpus: int
    quota: float | None
    why: str


def cpu_limit(
    root: Path | str = "/sys/fs/cgroup",
    membership: Path | str = "/proc/self/cgroup",
    affinity: int | None = None,
) -> CpuLimit:
    """The least of quota (rounded up), cpuset and affinity. The arguments are for tests on a made-up tree."""
    groups = list(_groups(Path(root), Path(membership)))
    quotas = [q for q in map(_quota, groups) if q is not None]
    sets = [n for n in map(_cpuset, groups) if n is not None]
    found = [(len(os.sched_getaffinity(0)) if affinity is None else affinity, "affinity of the process")]
    if sets:
        found.append((min(sets), "cpuset of the cgroup"))
    if quotas:
        found.append((math.ceil(min(quotas)), f"cgroup quota of {min(quotas):g} CPUs"))
    cpus, why = min(found, key=lambda pair: pair[0])
    return CpuLimit(max(cpus, 1), min(quotas, default=None), why)


def _groups(root: Path, membership: Path) -> Iterator[Path]:
    """The folders of this process's cgroup and all above it: a limit often stands in the parent only.

    Inside a container the path may be the host's and not be there below `root`; then `root` itself is the group.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        lines = ["0::/"]
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for base in _bases(root, controllers):
            inside = base / path.lstrip("/")
            for folder in (inside, *inside.parents):
                if folder.is_dir() and folder.is_relative_to(base):
                    yield folder


def _bases(root: Path, controllers: str) -> list[Path]:
    """Where a hierarchy may be mounted: v2 at the root or under `unified`, v1 under its controllers' names."""
    if not controllers:
        return [root, root / "unified"]
    if not {"cpu", "cpuset"} & set(controllers.split(",")):
        return []
    return [root / controllers, *(root / name for name in controllers.split(",") if name != controllers)]


def _quota(group: Path) -> float | None:
    limit = _words(group / "cpu.max")  # v2: `max 100000` or `150000 100000`
    if not limit:
        limit = _words(group / "cpu.cfs_quota_us") + _words(group / "cpu.cfs_period_us")  # v1: -1 means none
    try:
        quota, period = float(limit[0]), float(limit[1])
    except (IndexError, ValueError):
        return None
    return quota / period if quota > 0 and period > 0 else None


def _cpuset(group: Path) -> int | None:
    for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
        words = _words(group / name)
        if words:
            return _listed(words[0])
    return None


def _listed(text: str) -> int | None:
    """The size of a list such as `0-3,8`."""
    total = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            total += int(last or first) - int(first) + 1
        except ValueError:
            return None
    return total if total > 0 else None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
