"""Our server beside in-process onnxruntime and a plain FastAPI wrap, interleaved in one run; prints the ratios.

Servers are pinned to one core, the generator and this script to another where there are two. Ratios are taken within
a round and their median is shown with the smallest and largest: machines are shared, absolute figures move.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.bench import Body, ClosedLoop, LoadPlan, Target, binary_bodies, json_bodies, run_load, summarise
from seatrial.contract import Package, load_package, read_requests
from seatrial.engine import EngineOptions, resolve, start
from seatrial.records import LoadSummary

HERE = Path(__file__).resolve().parent
TICK = os.sysconf("SC_CLK_TCK")
BATCH = 64


@dataclass(frozen=True)
class Contender:
    """A way to ask a running server: its process, where and what to send."""

    name: str
    pid: int
    target: Target
    bodies: tuple[Body, ...]


@contextmanager
def pinned(cpu: int) -> Iterator[None]:
    """What is started inside inherits one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_seconds(pid: int) -> float:
    """User and system time of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def measure(contender: Contender, connections: int, seconds: float) -> dict[str, float]:
    """A closed loop: answers per second, CPU microseconds per answer, p50 and p99 in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        plan = LoadPlan(contender.target, ClosedLoop(connections, seconds), contender.bodies, stages=False)
        before = cpu_seconds(contender.pid)
        run_load(plan, output=Path(folder))
        cpu = cpu_seconds(contender.pid) - before
        load = summarise(Path(folder))
    require_right(contender, load)
    return {
        "per_s": load.achieved_per_s,
        "cpu_us": cpu / load.completed * 1e6,
        "p50_ms": load.response_ms.p50.value or 0,
        "p99_ms": load.response_ms.p99.value or 0,
        "n": load.completed,
    }


def require_right(contender: Contender, load: LoadSummary) -> None:
    """A contender that answers with errors has no figure."""
    if load.ok != load.intended:
        raise SystemExit(
            f"{contender.name}: {load.intended - load.ok} of {load.intended} requests failed: {load.errors}"
        )


def in_process(package: Package, seconds: float) -> dict[str, Any]:
    """The limit without a server, in a process of its own."""
    arguments = [str(package.model_file), str(package.requests_file), str(seconds), str(BATCH)]
    run = subprocess.run(
        [sys.executable, HERE / "in_process.py", *arguments], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@contextmanager
def fastapi_wrap(package: Package, port: int) -> Iterator[int]:
    """The peer, ready to answer; its process id."""
    command = [sys.executable, str(HERE / "fastapi_wrap.py"), str(package.model_file), str(port)]
    with subprocess.Popen(command) as process:
        try:
            wait_for(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/docs", timeout=1))
            yield process.pid
        finally:
            process.terminate()


def wait_for(attempt: Callable[[], object], seconds: float = 30) -> None:
    """Tries until it works."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            attempt()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def free_port() -> int:
    """A port that was free a moment ago."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def rounds(package: Package, n_rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Every contender once a round, peer and ours alternating."""
    requests = list(read_requests(package.root))
    as_json, as_binary = json_bodies(requests), binary_bodies(requests)
    cpus = sorted(os.sched_getaffinity(0))
    config_port = free_port()
    with pinned(cpus[0]):
        server = start(resolve([package], EngineOptions(executors=1, threads=1)))
        with server, fastapi_wrap(package, config_port) as wrap:
            path = f"/v2/models/{package.identity.name}/infer"
            ours = Target("127.0.0.1", server.port, path)
            contenders = [
                Contender("fastapi json", wrap, Target("127.0.0.1", config_port, "/infer"), as_json),
                Contender("seatrial json", server.pid, ours, as_json),
                Contender("seatrial binary", server.pid, ours, as_binary),
            ]
            found = []
            for number in range(1, n_rounds + 1):
                one: dict[str, Any] = {"in process": in_process(package, seconds / 2)}
                with pinned(cpus[-1]):
                    for connections in (64, 1):
                        for contender in contenders:
                            one[f"{contender.name} x{connections}"] = measure(contender, connections, seconds)
                found.append(one)
                sys.stderr.write(f"round {number} of {n_rounds} done\n")
    return found


def spread(values: list[float], digits: int = 2) -> str:
    """Median with smallest and largest."""
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def table(found: list[dict[str, Any]]) -> str:
    """Markdown: absolute figures beside the two ratios."""
    lines = [
        "| contender | answers/s | CPU µs an answer | p50 ms | p99 ms | times FastAPI | share of in-process |",
        "|---|---|---|---|---|---|---|",
    ]
    for label, key in (("in process, one by one", "single"), (f"in process, batches of {BATCH}", "joined")):
        rates = [r["in process"][key]["rows_per_s"] for r in found]
        cpu = [r["in process"][key]["cpu_us_per_row"] for r in found]
        lines.append(f"| {label} | {spread(rates, 0)} | {spread(cpu, 1)} | | | | |")
    for name in [k for k in found[0] if k != "in process"]:
        connections = name.rsplit("x", 1)[1]
        limit = "joined" if connections == "64" else "single"
        peer = [r[f"fastapi json x{connections}"]["per_s"] for r in found]
        rates = [r[name]["per_s"] for r in found]
        columns = [
            spread(rates, 0),
            spread([r[name]["cpu_us"] for r in found], 1),
            spread([r[name]["p50_ms"] for r in found], 3),
            spread([r[name]["p99_ms"] for r in found], 3),
            spread([a / b for a, b in zip(rates, peer, strict=True)]),
            spread([a / r["in process"][limit]["rows_per_s"] for a, r in zip(rates, found, strict=True)]),
        ]
        lines.append(
            f"| {name.replace(' x', ', ')} connection{'s' * (connections != '1')} | "
            + " | ".join(columns)
            + " |"
        )
    return "\n".join(lines)


def main() -> None:
    """Runs the rounds and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=HERE.parent / "examples" / "01-movie-ctr")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each measurement")
    arguments = parser.parse_args()
    found = rounds(load_package(arguments.package), arguments.rounds, arguments.seconds)
    print(f"median [smallest, largest] of {len(found)} interleaved rounds of {arguments.seconds:g} s\n")
    print(table(found))


if __name__ == "__main__":
    main()
