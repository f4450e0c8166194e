"""A synthetic record for tests: seven phases of load with their columns, system samples, events, a verdict.

Nothing here was measured. It is used only to see how the report shows what a record says.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seatrial.records import (
    BatchingFinding,
    Event,
    FileRef,
    FindingRow,
    GeneratorHealth,
    GoldenResult,
    HostFingerprint,
    Knee,
    LoadSummary,
    NextStep,
    PackageRef,
    Percentiles,
    Phase,
    ProcessSummary,
    PromiseResult,
    Quantile,
    Record,
    SecondPoint,
    StageTime,
    SystemSample,
    SystemSummary,
    SystemWriter,
    TrialPayload,
    Verdict,
)

CAPACITY = 700.0
NEEDS = {"p50": 11, "p90": 64, "p95": 130, "p99": 662, "p999": 6636}
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
# name, kind, requests per second, seconds
PLAN = (
    ("smoke", "smoke", 50, 6),
    ("step-100", "step", 100, 8),
    ("step-200", "step", 200, 8),
    ("step-400", "step", 400, 8),
    ("hold-400", "hold", 400, 24),
    ("step-600", "step", 600, 8),
    ("step-800", "step", 800, 8),
)


def percentiles(values: np.ndarray) -> Percentiles:
    """Order statistics of a sample; the interval is a plain binomial one, good enough to look at."""
    ordered, n = np.sort(values), len(values)
    found = {}
    for name, share in SHARES.items():
        value = float(ordered[int(np.ceil(share * n)) - 1])
        half = 2.576 * np.sqrt(n * share * (1 - share))
        low, high = int(np.floor(share * n - half)), int(np.ceil(share * n + half))
        if n < NEEDS[name] or low < 0 or high >= n:
            found[name] = Quantile(n=n, value=value, needs=max(NEEDS[name], n + 1))
        else:
            found[name] = Quantile(n=n, value=value, lower=float(ordered[low]), upper=float(ordered[high]))
    return Percentiles(n=n, max=float(ordered[-1]), mean=float(ordered.mean()), **found)


def columns(rate: float, duration: float, seed: int) -> dict[str, np.ndarray]:
    """A queue in front of a server that answers up to `CAPACITY` a second and refuses after 200 ms of waiting.

    `RandomState` promises the same stream for good, so that the golden report stays the same.
    """
    chance = np.random.RandomState(seed)
    gaps = chance.exponential(1 / rate, int(rate * duration * 1.3))
    intended = np.cumsum(gaps)
    intended = intended[intended < duration]
    run = chance.lognormal(np.log(0.00105), 0.35, len(intended))
    late = chance.exponential(0.00002, len(intended))
    free, wait = 0.0, np.zeros(len(intended))
    refused = np.zeros(len(intended), dtype=bool)
    for i, start in enumerate(intended):
        wait[i] = max(free - start, 0.0)
        refused[i] = wait[i] > 0.2
        if not refused[i]:
            free = max(free, start) + run[i] * (1000 / CAPACITY) * 0.88
    wait = np.where(refused, 0.0, wait)
    end = intended + late + wait + np.where(refused, 0.0004, run + 0.0006)
    return {
        "intended": intended,
        "sent": intended + late,
        "end": end,
        "wait": wait,
        "run": run,
        "refused": refused,
    }


def write_requests(file: Path, made: dict[str, np.ndarray], seed: int) -> None:
    """A `requests.arrow` as the generator writes it, in batches of one second."""
    ns = {name: (made[name] * 1e9).astype("int64") for name in ("intended", "sent", "end")}
    count = len(ns["intended"])
    metadata = {"seed": str(seed), "mode": "open", "origin_unix_ns": "0"}
    table = pa.table(
        {
            "intended_ns": pa.array(ns["intended"]),
            "sent_ns": pa.array(ns["sent"]),
            "first_byte_ns": pa.array(ns["end"] - 1000),
            "end_ns": pa.array(ns["end"]),
            "status": pa.array(np.where(made["refused"], 429, 200).astype("uint16")),
            "outcome": pa.array(made["refused"].astype("uint8")),
            "bytes_out": pa.array(np.full(count, 640, dtype="uint32")),
            "bytes_in": pa.array(np.full(count, 212, dtype="uint32")),
            "body": pa.array(np.zeros(count, dtype="uint32")),
        }
    ).replace_schema_metadata(metadata)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=max(count // 20, 1))


def summary(made: dict[str, np.ndarray], rate: float, duration: float, seed: int) -> LoadSummary:
    good = ~made["refused"]
    response = (made["end"] - made["intended"])[good] * 1000
    count, ok = len(good), int(good.sum())
    stages = {
        "accept": np.full(ok, 0.02), "parse": made["run"][good] * 60, "queue": made["wait"][good] * 1000,
        "form": np.full(ok, 0.01), "copy_in": made["run"][good] * 30, "run": made["run"][good] * 850,
        "copy_out": made["run"][good] * 20, "encode": made["run"][good] * 40,
    }  # fmt: skip
    return LoadSummary(
        mode="open",
        arrivals="poisson",
        rate_per_s=rate,
        duration_s=duration,
        seed=seed,
        intended=count,
        sent=count,
        completed=count,
        ok=ok,
        errors={"http_error": count - ok} if count > ok else {},
        not_sent=0,
        offered_per_s=count / duration,
        achieved_per_s=ok / duration,
        goodput_per_s=int((response <= 25).sum()) / duration,
        response_ms=percentiles(response),
        service_ms=percentiles((made["end"] - made["sent"])[good] * 1000),
        late_ms=percentiles((made["sent"] - made["intended"]) * 1000),
        stages_ms={
            name: StageTime(
                mean=float(v.mean()), p50=float(np.median(v)), p99=float(np.quantile(v, 0.99)), n=ok
            )
            for name, v in stages.items()
        },
        generator=GeneratorHealth(cpu_share=min(rate / 4000, 1.0), run_queue_share=0.001, late_p99_ms=0.09),
        series=series(made, duration),
        bytes_in=212 * count,
        bytes_out=640 * count,
    )


def series(made: dict[str, np.ndarray], duration: float) -> list[SecondPoint]:
    points = []
    for t in range(int(duration)):
        due = (made["intended"] >= t) & (made["intended"] < t + 1)
        ended = (made["end"] >= t) & (made["end"] < t + 1)
        answered = due & ~made["refused"]
        values = np.sort((made["end"] - made["intended"])[answered] * 1000)
        points.append(
            SecondPoint(
                t=t,
                offered=int(due.sum()),
                achieved=int((ended & ~made["refused"]).sum()),
                ok=len(values),
                errors=int((due & made["refused"]).sum()),
                p50_ms=float(values[len(values) // 2]) if len(values) else None,
                p99_ms=float(values[int(np.ceil(0.99 * len(values))) - 1]) if len(values) else None,
                n=len(values),
                in_flight=int(((made["sent"] < t + 1) & (made["end"] >= t + 1)).sum()),
            )
        )
    return points


def sample_phases(folder: Path | None, stop_after: int = len(PLAN)) -> list[Phase]:
    phases = [Phase(name="idle", kind="idle", started_s=0, ended_s=3)]
    now = 4.0
    for number, (name, kind, rate, duration) in enumerate(PLAN[:stop_after]):
        made = columns(rate, duration, seed=number + 1)
        if folder is not None:
            (folder / name).mkdir()
            write_requests(folder / name / "requests.arrow", made, number + 1)
        phases.append(
            Phase(
                name=name,
                kind=kind,  # type: ignore[arg-type]
                started_s=now,
                ended_s=now + duration,
                rate_per_s=rate,
                load=summary(made, rate, duration, number + 1),
                folder=name if folder is not None else None,
            )
        )
        now += duration + 1
    return phases


def sample_system(folder: Path | None, phases: list[Phase]) -> None:
    """One row a process and half second; the generator starts anew in every phase."""
    if folder is None:
        return
    chance, cpu, generator = np.random.RandomState(7), 0.4, 0.0
    with SystemWriter(folder / "system.arrow") as writer:
        for tick in range(int(phases[-1].ended_s * 2)):
            t_s = tick / 2
            phase = next((p for p in phases if p.started_s <= t_s < p.ended_s), None)
            rate = phase.rate_per_s or 0.0 if phase else 0.0
            cpu += 0.5 * min(0.01 + rate / CAPACITY * 0.9, 0.98) * float(chance.uniform(0.95, 1.05))
            rss = int((142 + 18 * (1 - np.exp(-t_s / 20))) * 2**20)
            rows = [SystemSample(t_s, "server", cpu_s=cpu, rss_bytes=rss, threads=9, fds=24)]
            generator = generator + 0.5 * rate / 4000 if rate else 0.0
            if rate:
                rows.append(
                    SystemSample(t_s, "generator", cpu_s=generator, rss_bytes=31 * 2**20, threads=3, fds=70)
                )
            rows.append(SystemSample(t_s, "host", psi_cpu_some=1.2, psi_io_some=0.1, psi_memory_some=0.0))
            writer.append(rows)


def sample_verdict(phases: list[Phase]) -> Verdict:
    hold = next((p.load for p in phases if p.kind == "hold"), None)
    if hold is None or hold.response_ms.p99.value is None:
        return Verdict(
            outcome="invalid", line="No verdict: the hold phase was not reached.", reasons=["cut short"]
        )
    p99 = hold.response_ms.p99
    return Verdict(
        outcome="pass",
        line=f"Yes: at 400/s the p99 response is {p99} against 25 ms promised; it keeps its promises up to 600/s.",
        draft=True,
        next_steps=[
            NextStep(owner="both", text="answer the three open questions of the card and sign the promises"),
            NextStep(owner="infra", text="give the instance 192 MiB: 160 MiB were resident at the peak"),
        ],
        promises=[
            PromiseResult(
                promise="response p99", limit=25, limit_text="25.0 ms", measured=p99.value, measured_text=str(p99),
                n=p99.n, met=True, owner="infra",
            ),
            PromiseResult(
                promise="requests missed", limit=0.001, limit_text="0.100%", measured=0.0,
                measured_text=f"0 of {hold.intended:,} (0.000%)", n=hold.intended, met=True, owner="infra",
            ),
            PromiseResult(
                promise="memory of one instance", limit=2**28, limit_text="256 MiB", measured=160 * 2**20,
                measured_text="160 MiB resident at the peak", met=True, owner="infra",
            ),
            PromiseResult(
                promise="cold start", limit=10, limit_text="10.0 s", measured=None, measured_text="not measured",
                met=None, owner="infra",
            ),
        ],
    )  # fmt: skip


def sample_payload(folder: Path | None, stop_after: int) -> TrialPayload:
    phases = sample_phases(folder, stop_after)
    sample_system(folder, phases)
    whole = stop_after == len(PLAN)
    knee = Knee(type="found", lower=600, upper=800, why="at 800/s: p99 192 ms, n=5,600 is over 25 ms")
    return TrialPayload(
        profile="quick",
        plan={"step_s": 8, "hold_s": 24, "rates_per_s": [rate for _, _, rate, _ in PLAN]},
        phases=phases,
        events=[
            Event(t_s=0.2, kind="ready", text="the server answers, model loaded in 0.18 s"),
            Event(t_s=39.0, kind="hold", text="hold begins at the promised peak"),
            Event(t_s=76.5, kind="refused", text="first 429: the queue is full"),
        ][: 3 if whole else 1],
        findings=[
            FindingRow(
                code="CARD-003", severity="warning", text="the card leaves 3 questions open", file="card.md", line=12,
                owner="algorithm", hint="answer them and run seatrial check again",
            ),
            FindingRow(code="SIZE-001", severity="note", text="12,902 parameters", file="model.onnx", owner="both"),
        ],
        golden=GoldenResult(
            rows=64, agreed=64, max_abs_error=2.4e-7, tolerance="rtol 1e-5, atol 1e-6", worst="row 41, output y"
        ),
        knee=knee if whole else None,
        verdict=sample_verdict(phases),
        system=SystemSummary(
            samples=300,
            server=ProcessSummary(peak_rss_bytes=160 * 2**20, cpu_s=41.2, mean_cpus=0.46, peak_threads=9, peak_fds=24),
            generator=ProcessSummary(peak_rss_bytes=31 * 2**20, cpu_s=5.5, mean_cpus=0.08, peak_threads=3, peak_fds=70),
            psi_cpu_some=1.2,
            psi_io_some=0.1,
            psi_memory_some=0.0,
        ) if folder is not None else None,
        batching=BatchingFinding(
            mode="full", axis="0", max_rows=64, mean_rows=2.13,
            why="rows are independent of their batch mates (probed with 1, 2 and 3 rows)",
        ),
        environment={"runtime": "onnxruntime 1.31.1, CPU", "executors": 1, "intra_op_threads": 1},
        not_measured={"GPU": "no GPU signal is read by this version"},
    )  # fmt: skip


def sample_host() -> HostFingerprint:
    return HostFingerprint(
        cpu_model="Example CPU 3000", logical_cpus=4, affinity_cpus=2, cpu_limit=2.0, cpu_flags=["avx2", "fma"],
        memory_bytes=16 * 2**30, memory_limit_bytes=None, kernel="6.1.0", os="Example Linux 12", python="3.12.4",
        versions={"onnxruntime": "1.31.1", "numpy": "2.4.6"}, like="00112233aabbccdd",
    )  # fmt: skip


def sample_record(folder: Path | None = None, *, stop_after: int = len(PLAN), **changes: Any) -> Record:
    """The record; with a folder also the columns in it. `stop_after` ends it after so many phases of load."""
    fields: dict[str, Any] = {
        "kind": "trial",
        "id": "5ea7a110",
        "created": datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC),
        "package": PackageRef(name="movie-ctr", version="1.0.0", digest="ab" * 32),
        "tool_version": "0.1.0",
        "host": sample_host(),
        "seed": 1,
        "command": "seatrial trial examples/01-movie-ctr --profile quick --seed 1",
        "status": "complete",
        "files": [FileRef(path="journal.jsonl", bytes=5120, sha256="cd" * 32)],
        "payload": changes.pop("payload", None) or sample_payload(folder, stop_after),
    }
    return Record(**{**fields, **changes})
