"""Samples of a real process and of this host, and what is made of them."""

from __future__ import annotations

import os
from pathlib import Path

from seatrial.records import SystemSample, read_system
from seatrial.trial.sampler import Sampler, absent_signals, neighbours_cpus, sample, summarise_samples


def test_a_living_process_is_read_and_a_gone_one_is_left_out() -> None:
    rows = sample(1.5, {"server": os.getpid(), "generator": 2**22 + 1})
    assert [r.process for r in rows] == ["server", "host"]
    own = rows[0]
    assert own.t_s == 1.5
    assert own.rss_bytes is not None
    assert own.rss_bytes > 5 << 20
    assert own.threads is not None
    assert own.threads >= 1
    assert own.fds is not None
    assert own.cpu_s is not None


def test_samples_go_to_disk_while_it_runs(tmp_path: Path) -> None:
    ticks = iter(range(1000))
    with Sampler(tmp_path / "system.arrow", lambda: float(next(ticks)), period_s=0.01) as sampler:
        sampler.watch("server", os.getpid())
        while len(sampler.samples) < 6 and sampler.failure is None:
            pass
    assert sampler.failure is None
    assert read_system(tmp_path / "system.arrow") == sampler.samples


def rows(name: str, cpu: list[float]) -> list[SystemSample]:
    return [SystemSample(t_s=float(t), process=name, cpu_s=c) for t, c in enumerate(cpu)]  # type: ignore[arg-type]


def test_neighbours_are_the_host_less_our_own() -> None:
    samples = rows("host", [10, 11.5, 13]) + rows("server", [1, 1.5, 2]) + rows("generator", [0.5, 0.1, 0.3])
    # Host 3 s, server 1 s, generator 0.1 s of a new process + 0.2 s; over 2 s.
    assert neighbours_cpus(samples, 0, 2) == (3 - 1 - 0.3) / 2
    assert neighbours_cpus(rows("server", [1, 2]), 0, 1) is None


def test_summaries_and_gaps() -> None:
    samples = rows("host", [10, 11]) + rows("server", [1, 3])
    summary = summarise_samples(samples)
    assert summary.server is not None
    assert (summary.server.cpu_s, summary.server.mean_cpus) == (2, 2)
    assert summary.generator is None
    assert summary.psi_cpu_some is None
    assert "CPU pressure" in absent_signals(samples)
    assert "GPU" in absent_signals(samples)
