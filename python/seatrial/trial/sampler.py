"""Samples of the server's process, the generator's process and the host, on the clock of the record.

Unprivileged counters only: /proc, pressure stall information and cgroup throttling where they exist. What is
absent is a None in the sample and a named gap in the record, never a zero.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Literal

from seatrial.records import ProcessSummary, SystemSample, SystemSummary, SystemWriter

__all__ = ["Sampler", "absent_signals", "neighbours_cpus", "summarise_samples"]

TICK = os.sysconf("SC_CLK_TCK")
ProcessName = Literal["server", "generator"]


class Sampler:
    """A thread that appends samples to `system.arrow` until it is stopped. A context manager."""

    def __init__(self, path: Path, clock: Callable[[], float], period_s: float = 0.5) -> None:
        self._writer = SystemWriter(path)
        self._clock = clock
        self._period_s = period_s
        self._pids: dict[ProcessName, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="sampler", daemon=True)
        self.samples: list[SystemSample] = []
        self.failure: Exception | None = None

    def watch(self, process: ProcessName, pid: int | None) -> None:
        """Names the process to sample from now on; None ends it."""
        self._pids = {k: v for k, v in self._pids.items() if k != process} | ({process: pid} if pid else {})

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._writer.close()

    def _loop(self) -> None:
        while not self._stop.is_set():
            try:
                rows = sample(self._clock(), self._pids)
                self._writer.append(rows)
            except Exception as error:
                self.failure = error
                return
            self.samples += rows
            self._stop.wait(self._period_s)


def sample(t_s: float, pids: Mapping[ProcessName, int]) -> list[SystemSample]:
    """One reading of each named process that is alive, and of the host."""
    rows = [row for name, pid in pids.items() if (row := sample_process(t_s, name, pid)) is not None]
    return [*rows, sample_host(t_s)]


def sample_process(t_s: float, name: ProcessName, pid: int) -> SystemSample | None:
    """The counters of one process; None when it has gone."""
    folder = Path("/proc") / str(pid)
    try:
        stat = (folder / "stat").read_text().rpartition(")")[2].split()
        status = dict(
            line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line
        )
        fds = sum(1 for _ in (folder / "fd").iterdir())
    except OSError:
        return None
    if stat[0] == "Z":
        return None
    return SystemSample(
        t_s=t_s,
        process=name,
        cpu_s=(int(stat[11]) + int(stat[12])) / TICK,
        rss_bytes=_kib(status.get("VmRSS")),
        pss_bytes=_pss(folder),
        threads=int(stat[17]),
        fds=fds,
        voluntary_switches=_whole(status.get("voluntary_ctxt_switches")),
        involuntary_switches=_whole(status.get("nonvoluntary_ctxt_switches")),
        run_queue_wait_s=_run_queue_wait(folder),
    )


def sample_host(t_s: float) -> SystemSample:
    """Busy CPU seconds of the whole machine, pressure, throttling of our cgroup."""
    return SystemSample(
        t_s=t_s,
        process="host",
        cpu_s=_host_busy_s(),
        psi_cpu_some=_pressure("cpu"),
        psi_io_some=_pressure("io"),
        psi_memory_some=_pressure("memory"),
        throttled_s=_throttled_s(),
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _kib(text: str | None) -> int | None:
    return int(text.split()[0]) * 1024 if text else None


def _whole(text: str | None) -> int | None:
    return int(text) if text else None


def _pss(folder: Path) -> int | None:
    text = _read(folder / "smaps_rollup")
    line = next((line for line in (text or "").splitlines() if line.startswith("Pss:")), None)
    return _kib(line.split(":", 1)[1]) if line else None


def _run_queue_wait(folder: Path) -> float | None:
    """Seconds that the threads waited for a CPU, from schedstat (second figure, nanoseconds)."""
    try:
        threads = list((folder / "task").iterdir())
    except OSError:
        return None
    texts = [_read(thread / "schedstat") for thread in threads]
    waits = [int(text.split()[1]) for text in texts if text]
    return sum(waits) / 1e9 if waits else None


def _host_busy_s() -> float | None:
    """User, nice, system, irq, softirq and stolen time of all CPUs: stolen time is work of neighbours too."""
    text = _read(Path("/proc/stat"))
    if not text:
        return None
    figures = [int(x) for x in text.splitlines()[0].split()[1:]]
    return sum(figures[i] for i in (0, 1, 2, 5, 6, 7) if i < len(figures)) / TICK


def _pressure(resource: str) -> float | None:
    text = _read(Path("/proc/pressure") / resource)
    if not text:
        return None
    return float(text.split("avg10=", 1)[1].split()[0])


def _throttled_s() -> float | None:
    """Throttled seconds of the cgroup that this process is in, cgroup v2 or v1."""
    for path, key, unit in (
        ("/sys/fs/cgroup/cpu.stat", "throttled_usec", 1e6),
        ("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e9),
    ):
        for line in (_read(Path(path)) or "").splitlines():
            if line.startswith(key + " "):
                return int(line.split()[1]) / unit
    return None


def summarise_samples(samples: list[SystemSample]) -> SystemSummary:
    """Peaks, totals and means of all samples; None where nothing was measured."""
    host = [s for s in samples if s.process == "host"]
    return SystemSummary(
        samples=len(samples),
        server=_process_summary([s for s in samples if s.process == "server"]),
        generator=_process_summary([s for s in samples if s.process == "generator"]),
        psi_cpu_some=_mean([s.psi_cpu_some for s in host]),
        psi_io_some=_mean([s.psi_io_some for s in host]),
        psi_memory_some=_mean([s.psi_memory_some for s in host]),
        throttled_s=_growth([s.throttled_s for s in host]),
        run_queue_wait_s=_growth([s.run_queue_wait_s for s in samples if s.process == "server"]),
    )


def _process_summary(rows: list[SystemSample]) -> ProcessSummary | None:
    if not rows:
        return None
    cpu_s = _rises([s.cpu_s for s in rows])
    span = rows[-1].t_s - rows[0].t_s
    return ProcessSummary(
        peak_rss_bytes=max((s.rss_bytes for s in rows if s.rss_bytes is not None), default=None),
        cpu_s=cpu_s,
        mean_cpus=cpu_s / span if cpu_s is not None and span > 0 else None,
        peak_threads=max((s.threads for s in rows if s.threads is not None), default=None),
        peak_fds=max((s.fds for s in rows if s.fds is not None), default=None),
    )


def _known(values: list[float | None]) -> list[float]:
    return [v for v in values if v is not None]


def _mean(values: list[float | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if known else None


def _growth(values: list[float | None]) -> float | None:
    known = _known(values)
    return known[-1] - known[0] if len(known) > 1 else None


def _rises(values: list[float | None]) -> float | None:
    """Growth of a counter that starts anew when the generator of the next phase does."""
    known = _known(values)
    if len(known) < 2:
        return None
    return sum(max(b - a, 0) if b >= a else b for a, b in pairwise(known))


def absent_signals(samples: list[SystemSample]) -> dict[str, str]:
    """Every signal that this host did not give, with the reason, for the record's list of gaps."""
    signals: dict[str, tuple[str, str]] = {
        "psi_cpu_some": ("CPU pressure", "no /proc/pressure/cpu here"),
        "psi_io_some": ("IO pressure", "no /proc/pressure/io here"),
        "psi_memory_some": ("memory pressure", "no /proc/pressure/memory here"),
        "throttled_s": (
            "CPU throttling",
            "the cgroup has no cpu.stat with a throttling counter",
        ),
        "run_queue_wait_s": ("run-queue wait", "no schedstat for threads here"),
        "pss_bytes": ("proportional memory of the server", "no smaps_rollup here"),
    }
    absent = {
        label: why
        for column, (label, why) in signals.items()
        if all(getattr(s, column) is None for s in samples)
    }
    return absent | {"GPU": "no GPU signal is read by this version"}


def neighbours_cpus(samples: list[SystemSample], started_s: float, ended_s: float) -> float | None:
    """CPUs that others used during a stretch: the host's busy time less that of server and generator.

    None where the host's counters were not readable. Our own control plane counts as a neighbour.
    """
    inside = [s for s in samples if started_s <= s.t_s <= ended_s]
    host = _growth([s.cpu_s for s in inside if s.process == "host"])
    if host is None or ended_s <= started_s:
        return None
    ours = [_rises([s.cpu_s for s in inside if s.process == name]) or 0 for name in ("server", "generator")]
    return max(host - sum(ours), 0) / (ended_s - started_s)
