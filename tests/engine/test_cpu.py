"""CPUs from quota, cpuset and affinity on made-up trees, never from the host's count."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from seatrial.engine import cpu_limit

HOST = 64


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")
    return root


@pytest.mark.parametrize(
    ("membership", "files", "cpus", "quota"),
    [
        ("0::/", {}, 64, None),
        ("0::/", {"cpu.max": "150000 100000"}, 2, 1.5),
        ("0::/", {"cpu.max": "max 100000", "cpuset.cpus.effective": "0-3"}, 4, None),
        ("0::/", {"cpu.max": "50000 100000"}, 1, 0.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 100000"}, 2, 2.0),
        ("0::/a/b", {"a/b/cpu.max": "300000 100000", "a/cpu.max": "800000 100000"}, 3, 3.0),
        ("0::/", {"cpuset.cpus.effective": "0,2,8-9"}, 4, None),
        # v1, mounted under the controllers' names
        ("4:cpu,cpuacct:/", {"cpu,cpuacct/cpu.cfs_quota_us": "250000", "cpu,cpuacct/cpu.cfs_period_us": "100000"}, 3, 2.5),
        ("4:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 64, None),
        ("3:cpuset:/d", {"cpuset/d/cpuset.cpus": "4-5"}, 2, None),
        # the host's path, not visible inside the container
        ("4:cpu:/docker/x", {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1, 1.0),
        # both at once, and a broken file
        ("0::/\n4:cpu:/", {"cpu.max": "400000 100000", "cpu/cpu.cfs_quota_us": "x"}, 4, 4.0),
    ],
)  # fmt: skip
def test_the_least_limit_counts(
    tmp_path: Path, membership: str, files: dict[str, str], cpus: int, quota: float | None
) -> None:
    tree(tmp_path / "cgroup", files)
    member = tmp_path / "self"
    member.write_text(membership + "\n")
    limit = cpu_limit(tmp_path / "cgroup", member, HOST)
    assert (limit.cpus, limit.quota) == (cpus, quota)


def test_the_affinity_counts(tmp_path: Path) -> None:
    limit = cpu_limit(tree(tmp_path, {"cpu.max": "800000 100000"}), tmp_path / "none", 3)
    assert (limit.cpus, limit.why) == (3, "affinity of the process")


def test_this_machine_has_an_answer() -> None:
    assert 1 <= cpu_limit().cpus <= len(os.sched_getaffinity(0))


@pytest.mark.shared
def test_the_shared_rows(shared: Path, tmp_path: Path) -> None:
    rows = [r for r in json.loads((shared / "cases/plan/replicas.json").read_text()) if "threads" in r]
    assert rows
    for n, row in enumerate(rows):
        files = {"cpu.max": re.search(r"cpu\.max '([^']+)'", row["cgroup"])[1]}  # type: ignore[index]
        cpuset = re.search(r"cpuset ([\d,-]+)", row["cgroup"])
        if cpuset:
            files["cpuset.cpus.effective"] = cpuset[1]
        root = tree(tmp_path / str(n), files)
        assert cpu_limit(root, tmp_path / "none", HOST).cpus == row["threads"], row
