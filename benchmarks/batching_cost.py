"""What a sequence costs by how batches are formed: none, first-come filled up to 16, and by measured cost.

One server a policy with one executor and one runtime thread; a closed loop keeps a window of requests waiting.
Policies take turns; of each the round with the least CPU time a sequence counts, since noise only adds. Prints a
Markdown table and, with --check, fails when the goals are missed.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import statistics
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beside_peers import cpu_seconds, pinned

from seatrial.bench import Body, ClosedLoop, LoadPlan, Target, binary_bodies, run_load, summarise
from seatrial.contract import Package, load_package
from seatrial.engine import EngineOptions, Server, resolve, start

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "03-text-embedding"
N_LENGTHS = 96
# Log-normal with mean 31 and 99th percentile 134: texts are mostly short, and some are long.
MU, SIGMA = 3.152, 0.7506
EQUAL = 32
FIFO_ROWS = 16
FIFO = f"first come, {FIFO_ROWS} padded to the longest"
NONE, COST = "no batching", "by measured cost"
TOLD = re.compile(r'^(seatrial_batching_\w+)\{[^}]*?(?:kind="(\w+)")?\} (\S+)$', re.M)


@dataclass(frozen=True)
class Found:
    """Figures of one policy in one round."""

    cpu_ms: float
    per_s: float
    p99_ms: float
    mean_rows: float
    padding: float


def long_tailed(seed: int) -> list[int]:
    """Evenly spaced quantiles in random order, so that every part of the cycle has nearly the same mean."""
    normal = statistics.NormalDist(MU, SIGMA)
    lengths = [round(math.exp(normal.inv_cdf((i + 0.5) / N_LENGTHS))) for i in range(N_LENGTHS)]
    random.Random(seed).shuffle(lengths)
    return [min(max(n, 2), 256) for n in lengths]


def bodies(lengths: list[int], seed: int) -> tuple[Body, ...]:
    """One request of one row for each length."""
    chance = random.Random(seed)

    def tensor(name: str, data: list[int]) -> dict[str, Any]:
        return {"name": name, "datatype": "INT64", "shape": [1, len(data)], "data": data}

    requests = []
    for n in lengths:
        ids = [101, *(chance.randrange(1000, 30522) for _ in range(n - 2)), 102]
        requests.append({"inputs": [tensor("input_ids", ids), tensor("attention_mask", [1] * n)]})
    return binary_bodies(requests)


def serve(package: Package, policy: str) -> Server:
    """A server of one policy on one thread."""
    config = resolve([package], EngineOptions(executors=1, threads=1))
    model = config["models"][0]
    model |= {"timeout_ms": 60_000, "queue_rows": 1024}
    if policy == NONE:
        model["batching"] = {"mode": "none", "max_rows": 1, "why": "turned off for comparison"}
    elif policy == FIFO:
        model["batching"] |= {
            "max_rows": FIFO_ROWS,
            "preferred": {"rows": [FIFO_ROWS], "max_delay_ms": 1000},
        }
    return start(config, timeout=120)


def counted(server: Server) -> dict[str, float]:
    """What the server has counted of its batches."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as page:
        text = page.read().decode()
    return {f"{name} {kind}".strip(): float(value) for name, kind, value in TOLD.findall(text)}


def measure(server: Server, package: Package, sent: tuple[Body, ...], window: int, seconds: float) -> Found:
    """A closed loop with `window` requests in flight."""
    target = Target("127.0.0.1", server.port, f"/v2/models/{package.identity.name}/infer")
    with tempfile.TemporaryDirectory() as folder:
        plan = LoadPlan(target, ClosedLoop(window, seconds), sent, stages=False)
        before, cpu = counted(server), cpu_seconds(server.pid)
        run_load(plan, output=Path(folder))
        cpu = cpu_seconds(server.pid) - cpu
        load = summarise(Path(folder))
    if load.ok != load.intended:
        raise SystemExit(f"{load.intended - load.ok} of {load.intended} requests failed: {load.errors}")
    moved = {name: value - before.get(name, 0.0) for name, value in counted(server).items()}
    useful, padding = (
        moved.get(f"seatrial_batching_positions_total {k}", 0.0) for k in ("useful", "padding")
    )
    rows, runs = (moved[f"seatrial_batching_batch_rows_{k}"] for k in ("sum", "count"))
    return Found(
        cpu_ms=cpu / load.completed * 1e3,
        per_s=load.achieved_per_s,
        p99_ms=load.response_ms.p99.value or 0.0,
        mean_rows=rows / runs,
        padding=padding / (useful + padding) if useful else 0.0,
    )


def rounds(package: Package, options: argparse.Namespace) -> dict[tuple[str, str], list[Found]]:
    """Every policy once a round, on both kinds of traffic."""
    cpus = sorted(os.sched_getaffinity(0))
    traffic = {"long-tailed": long_tailed(options.seed), "equal": [EQUAL] * N_LENGTHS}
    found: dict[tuple[str, str], list[Found]] = {}
    with ExitStack() as stack:
        with pinned(cpus[0]):
            servers = {p: stack.enter_context(serve(package, p)) for p in (NONE, FIFO, COST)}
        stack.enter_context(pinned(cpus[-1]))
        for number in range(1, options.rounds + 1):
            for kind, lengths in traffic.items():
                sent = bodies(lengths, options.seed)
                for policy, server in servers.items():
                    one = measure(server, package, sent, options.window, options.seconds)
                    found.setdefault((kind, policy), []).append(one)
            sys.stderr.write(f"round {number} of {options.rounds} done\n")
    return found


def best(found: dict[tuple[str, str], list[Found]], kind: str, policy: str) -> Found:
    """The round with the least CPU time a sequence."""
    return min(found[kind, policy], key=lambda one: one.cpu_ms)


def table(found: dict[tuple[str, str], list[Found]]) -> str:
    """Markdown: the best round of each, with all rounds in brackets."""
    head = "| lengths | batches | CPU-ms a sequence | of no batching | sequences/s | p99 ms | mean rows | padding |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for (kind, policy), all_rounds in found.items():
        one, alone = best(found, kind, policy), best(found, kind, NONE)
        spread = ", ".join(f"{r.cpu_ms:.2f}" for r in all_rounds)
        lines.append(
            f"| {kind} | {policy} | {one.cpu_ms:.2f} [{spread}] | {one.cpu_ms / alone.cpu_ms:.2f} | "
            f"{one.per_s:.0f} | {one.p99_ms:.0f} | {one.mean_rows:.1f} | {one.padding:.0%} |"
        )
    return "\n".join(lines)


def missed(found: dict[tuple[str, str], list[Found]]) -> list[str]:
    """The goals that these figures do not reach."""
    tailed = {p: best(found, "long-tailed", p).cpu_ms for p in (NONE, FIFO, COST)}
    equal = {p: best(found, "equal", p).cpu_ms for p in (NONE, COST)}
    goals = (
        ("3 times fewer CPU-ms than first come on long-tailed lengths", tailed[FIFO] / tailed[COST], 3.0),
        ("no more than without batching on long-tailed lengths", tailed[NONE] / tailed[COST], 1.0),
        ("1.4 times fewer than without batching on equal lengths", equal[NONE] / equal[COST], 1.4),
    )
    return [f"{goal}: {ratio:.2f}, wanted {wanted:g}" for goal, ratio, wanted in goals if ratio < wanted]


def main() -> int:
    """Runs the rounds and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=EXAMPLE)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each measurement")
    parser.add_argument("--window", type=int, default=32, help="requests in flight")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="fail when a goal is missed")
    options = parser.parse_args()
    lengths = long_tailed(options.seed)
    found = rounds(load_package(options.package), options)
    print(f"mean length {statistics.fmean(lengths):.1f}, longest {max(lengths)}, window {options.window}\n")
    print(table(found))
    goals = missed(found)
    for goal in goals:
        print(f"missed: {goal}", file=sys.stderr)
    return 1 if options.check and goals else 0


if __name__ == "__main__":
    sys.exit(main())
