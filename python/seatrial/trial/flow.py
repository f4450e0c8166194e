"""The trial itself: check, serve, golden rows, idle, smoke, steps, hold, headroom, verdict, record, report.

Whatever stops it (a person, a dead process, a full disk), the server and the generator end with it and what was
measured is kept.
"""

from __future__ import annotations

import http.client
import json
import signal
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seatrial import __version__
from seatrial.bench import Body, ClosedLoop, LoadPlan, OpenLoop, Target, run_load, summarise
from seatrial.check import check_package
from seatrial.contract import Package, load_package, read_golden, read_requests
from seatrial.engine import EngineOptions, Server, resolve, start
from seatrial.errors import EngineError, RecordError, SeatrialError, UsageError
from seatrial.records import (
    BatchingFinding,
    FindingRow,
    GoldenResult,
    LoadSummary,
    PackageRef,
    PhaseKind,
    Record,
    RecordStatus,
    RecordWriter,
    SystemSummary,
    TrialPayload,
    Verdict,
    host_fingerprint,
)
from seatrial.trial.bodies import sample_body
from seatrial.trial.golden import ask, compare_golden
from seatrial.trial.knee import Budget, StepResult, judge_step, knee_of
from seatrial.trial.log import TrialLog, Watcher
from seatrial.trial.plan import Plan, Step
from seatrial.trial.sampler import Sampler, absent_signals, neighbours_cpus, summarise_samples
from seatrial.trial.verdict import Evidence, judge

__all__ = ["TrialOptions", "TrialResult", "budget_of", "keep_evidence", "run_trial"]

# Without a promised peak the steps begin here and double.
FIRST_RATE_PER_S = 50.0
MAX_GOLDEN_ROWS = 1000


@dataclass(frozen=True)
class TrialOptions:
    """Where records go, the command that repeats the trial, who is told what happens, and engine flags."""

    records: Path
    command: str
    watcher: Watcher = lambda _: None
    engine: EngineOptions = field(default_factory=EngineOptions)


@dataclass(frozen=True)
class TrialResult:
    """A finished trial: its record and the folder that holds it."""

    record: Record
    folder: Path

    @property
    def verdict(self) -> Verdict:
        """The verdict of the record."""
        payload = self.record.payload
        if not isinstance(payload, TrialPayload):
            raise TypeError("the record of a trial holds a trial")
        return payload.verdict

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 4 invalid."""
        return {"pass": 0, "fail": 1, "invalid": 4, "error": 3}[self.verdict.outcome]


@dataclass
class Found:
    """What the phases of one trial have found. Each field is written once, by the phase that measures it."""

    findings: list[FindingRow] = field(default_factory=list)
    golden: GoldenResult | None = None
    steps: list[StepResult] = field(default_factory=list)
    hold: LoadSummary | None = None
    mean_rows: float | None = None
    neighbours_share: float | None = None
    system: SystemSummary | None = None
    not_measured: dict[str, str] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    status: RecordStatus = "complete"
    stopped: str = ""
    cure: str = ""


def run_trial(root: Path, plan: Plan, options: TrialOptions) -> TrialResult:
    """Runs the trial of a package. Raises only when there is nothing to measure or nowhere to keep it."""
    package = load_package(root)
    writer = RecordWriter.create(options.records, "trial", package.identity.name)
    log = TrialLog(writer, options.watcher)
    found = Found()
    draft = _record(package, plan, options, log, found)
    writer.start(draft)
    try:
        _check(package, log, found)
        if not any(f.severity == "error" for f in found.findings):
            _at_sea(package, plan, options, log, found)
    except KeyboardInterrupt:
        found.status, found.stopped = "cut_short", "it was interrupted"
    except RecordError:
        raise
    except SeatrialError as error:
        found.status, found.stopped = "cut_short", error.message.splitlines()[0]
        found.cure = error.hint or ""
    log.event("end", found.stopped or "all phases done")
    record = _record(package, plan, options, log, found)
    writer.finish(record)
    return TrialResult(record, writer.folder)


def keep_evidence(result: TrialResult, root: Path) -> Path:
    """Copies the record of a complete trial into the package's evidence/. That folder is outside the manifest."""
    if result.record.status != "complete" or result.verdict.outcome not in ("pass", "fail"):
        raise UsageError(
            f"a trial that ended `{result.verdict.outcome}` is no evidence",
            hint="repeat it; " + result.verdict.line,
        )
    folder = root.absolute() / "evidence"
    file = folder / f"trial-{result.record.id}.json"
    try:
        folder.mkdir(exist_ok=True)
        with file.open("xb") as target:
            target.write((result.folder / "record.json").read_bytes())
    except OSError as error:
        raise RecordError(f"`{file}` could not be written: {error.strerror or error}") from error
    return file


def _check(package: Package, log: TrialLog, found: Found) -> None:
    with log.phase("check", "check"):
        report = check_package(package.root, "L")
    found.findings = [
        FindingRow(
            code=f.code,
            severity=f.severity,
            text=f.text,
            file=f.file,
            line=f.line,
            owner=f.owner,
            hint=f.hint,
        )
        for f in report.findings
    ]
    counts = {s: sum(f.severity == s for f in found.findings) for s in ("error", "warning", "note")}
    log.event("check", ", ".join(f"{n} {s}{'' if n == 1 else 's'}" for s, n in counts.items()))


def _at_sea(package: Package, plan: Plan, options: TrialOptions, log: TrialLog, found: Found) -> None:
    """Everything that needs a running server."""
    config = resolve([package], options.engine)
    model = config["models"][0]
    # The trial compares every golden row itself; a server that refused to start for one would leave no record of it.
    model["golden"] = []
    found.environment = {
        "runtime": Path(config["runtime_library"]).name,
        "io_threads": config["io_threads"],
        "executors": model["executors"],
        "threads_per_executor": model["intra_op_threads"],
    }
    bodies = tuple(map(sample_body, read_requests(package.root)))
    if not bodies:
        raise UsageError(
            "the package has no sample requests", hint="write samples/requests.jsonl, one request a line"
        )
    with start(config, log.writer.folder) as server:
        log.event("ready", f"server ready, pid {server.pid}")
        if server.ready:
            found.environment["ready_s"] = round(server.ready.seconds, 3)
            found.environment["costs"] = [
                {**cost, "ms": round(cost["ms"], 4)} for cost in server.ready.models[0].get("costs", [])
            ]
        sampler = Sampler(log.writer.folder / "system.arrow", log.clock)
        try:
            with sampler:
                sampler.watch("server", server.pid)
                course = Course(package, plan, log, found, server, sampler, bodies)
                course.sail()
        finally:
            found.system = summarise_samples(sampler.samples)
            found.not_measured = absent_signals(sampler.samples)
        if sampler.failure:
            raise sampler.failure


@dataclass
class Course:
    """The phases against one running server, in order."""

    package: Package
    plan: Plan
    log: TrialLog
    found: Found
    server: Server
    sampler: Sampler
    bodies: tuple[Body, ...]

    def sail(self) -> None:
        """Golden rows, then load: gentle, to the target, held, beyond."""
        budget = budget_of(self.package)
        self._golden()
        self._idle()
        if budget.peak_per_s is None:
            self._search(budget)
            return
        self._step(self.plan.smoke(budget.peak_per_s), budget)
        for step in self.plan.steps(budget.peak_per_s):
            if not self._step(step, budget).good:
                break
        self._hold(budget.peak_per_s, budget)
        if self.found.steps[-1].good:
            self._headroom(self.plan.headroom(budget.peak_per_s), budget)

    def _search(self, budget: Budget) -> None:
        """No promised peak: double until a step is bad, then hold the last good rate."""
        rate = FIRST_RATE_PER_S
        self._step(self.plan.smoke(rate), budget)
        for _ in range(len(self.plan.headroom_shares) + len(self.plan.step_shares)):
            if not self._step(Step(f"step-{rate:g}", "step", rate, self.plan.step_s), budget).good:
                break
            rate *= 2
        self._headroom([], budget)
        self._hold(knee_of(self.found.steps).lower or FIRST_RATE_PER_S, budget)

    def _headroom(self, steps: list[Step], budget: Budget) -> None:
        """Beyond the target until a step is bad; then the bracket around the knee is halved."""
        for step in steps:
            if not self._step_again(step, budget).good:
                break
        for _ in range(self.plan.bisections):
            knee = knee_of(self.found.steps)
            if knee.type != "found" or knee.lower is None or knee.upper is None:
                return
            self._step_again(self.plan.between(knee.lower, knee.upper), budget)

    def _step_again(self, step: Step, budget: Budget) -> StepResult:
        """A step; once more when it was bad while the generator was held up: that says nothing of the server."""
        result = self._step(step, budget)
        if result.good or not result.generator_limited:
            return result
        self.found.steps.remove(result)
        return self._step(replace(step, name=f"{step.name}-again"), budget)

    def _golden(self) -> None:
        if self.package.golden_file is None:
            self.found.not_measured["golden rows"] = "the package has no samples/golden.jsonl"
            return
        rows = [row for _, row in zip(range(MAX_GOLDEN_ROWS), read_golden(self.package.root), strict=False)]
        with self.log.phase("golden", "golden") as phase:
            answers = list(ask(self.server.port, self.package.identity.name, rows))
            self.found.golden = compare_golden(rows, answers)
            phase.note = f"{self.found.golden.agreed} of {self.found.golden.rows} rows agree"
        self.log.event("golden", phase.note)

    def _idle(self) -> None:
        """One request at a time: the floor of latency on this host."""
        self._load("idle", "idle", ClosedLoop(1, self.plan.idle_s))

    def _step(self, step: Step, budget: Budget) -> StepResult:
        load = self._load(step.name, step.kind, self._schedule(step))
        result = judge_step(load, budget)
        if step.kind == "step":
            self.found.steps.append(result)
        good = f"good: p50 {load.response_ms.text('p50')}; p99 {load.response_ms.text('p99')}"
        self.log.event("step", good if result.good else f"bad: {result.why}")
        return result

    def _schedule(self, step: Step) -> OpenLoop:
        return OpenLoop(step.rate_per_s, step.duration_s, seed=self.plan.seed)

    def _hold(self, rate_per_s: float, budget: Budget) -> None:
        """The phase that promises are judged on; its batches and its neighbours are counted."""
        before, started_s = self._batches(), self.log.clock()
        step = self.plan.hold(rate_per_s)
        self.found.hold = self._load(step.name, step.kind, self._schedule(step))
        self.found.steps.append(judge_step(self.found.hold, budget))
        rows, runs = (b - a for a, b in zip(before, self._batches(), strict=True))
        self.found.mean_rows = rows / runs if runs else None
        others = neighbours_cpus(self.sampler.samples, started_s, self.log.clock())
        cpus = host_fingerprint().affinity_cpus
        self.found.neighbours_share = None if others is None else others / cpus
        self.log.event("hold", f"p99 {self.found.hold.response_ms.text('p99')}")

    def _load(self, name: str, kind: PhaseKind, schedule: OpenLoop | ClosedLoop) -> LoadSummary:
        rate = schedule.rate_per_s if isinstance(schedule, OpenLoop) else None
        target = Target("127.0.0.1", self.server.port, f"/v2/models/{self.package.identity.name}/infer")
        stop = threading.Event()
        with self.log.phase(name, kind, rate) as phase:
            folder = self.log.writer.phase_folder(name)
            phase.folder = folder.name
            result = run_load(
                LoadPlan(target, schedule, self.bodies),
                output=folder,
                on_start=lambda pid: self.sampler.watch("generator", pid),
                on_second=lambda second: self._second(name, second, stop),
                stop=stop,
            )
            self.sampler.watch("generator", None)
            phase.note = result.died or ""
            phase.load = summarise(folder, budget_ms=budget_of(self.package).p99_ms)
        if self.server.returncode is not None:
            raise EngineError(f"the server died in the phase `{name}` ({_ending(self.server.returncode)})")
        if result.died:
            raise EngineError(f"{result.died}, in the phase `{name}`")
        if result.interrupted:
            raise KeyboardInterrupt
        return phase.load

    def _second(self, name: str, second: dict[str, Any], stop: threading.Event) -> None:
        """Follows a phase. A dead server ends it: what follows would only measure refused connections."""
        if self.server.returncode is not None or self.sampler.failure is not None:
            stop.set()
        self.log.tick(f"{name}: {second['completed']:,} answered, {second['in_flight']} in flight")

    def _batches(self) -> tuple[int, int]:
        """Rows and runs of the model so far, from the server's statistics."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        try:
            connection.request("GET", f"/v2/models/{self.package.identity.name}/stats")
            stats = json.loads(connection.getresponse().read())["model_stats"][0]
        except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
            raise EngineError(f"the server did not give its statistics: {error}") from error
        finally:
            connection.close()
        return int(stats["inference_count"]), int(stats["execution_count"])


def _ending(code: int) -> str:
    """A process's end in words.

    >>> _ending(-9), _ending(1)
    ('SIGKILL', 'exit code 1')
    """
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def budget_of(package: Package) -> Budget:
    """The promises of slo.yaml that load is judged by."""
    slo = package.slo
    total = slo.latency.total
    return Budget(
        p50_ms=total.p50.ms if total.p50 else None,
        p95_ms=total.p95.ms if total.p95 else None,
        p99_ms=total.p99.ms if total.p99 else None,
        miss_share=slo.error_budget.fraction if slo.error_budget else None,
        memory_bytes=slo.memory_per_instance.bytes if slo.memory_per_instance else None,
        peak_per_s=slo.load.peak.per_second if slo.load.peak else None,
    )


def _record(package: Package, plan: Plan, options: TrialOptions, log: TrialLog, found: Found) -> Record:
    budget = budget_of(package)
    knee = knee_of(found.steps)
    evidence = Evidence(
        hold=found.hold,
        golden=found.golden,
        knee=knee,
        peak_rss_bytes=found.system.server.peak_rss_bytes if found.system and found.system.server else None,
        neighbours_share=found.neighbours_share,
        findings=found.findings,
        draft=package.is_draft,
        stopped=found.stopped,
        cure=found.cure,
    )
    batching = package.batching()
    payload = TrialPayload(
        profile=plan.profile,
        plan={k: list(v) if isinstance(v, tuple) else v for k, v in vars(plan).items()},
        findings=found.findings,
        golden=found.golden,
        knee=knee,
        verdict=judge(budget, evidence),
        system=found.system,
        batching=BatchingFinding(
            mode=batching.mode,
            why=batching.why,
            axis=None if batching.axis is None else str(batching.axis),
            max_rows=batching.max_rows,
            mean_rows=found.mean_rows,
        )
        if batching
        else None,
        environment=found.environment,
        not_measured=found.not_measured,
        **log.found(),
    )
    return Record(
        kind="trial",
        id=log.writer.id,
        created=log.writer.created,
        package=PackageRef(
            name=package.identity.name, version=str(package.identity.version), digest=package.digest
        ),
        tool_version=__version__,
        host=host_fingerprint(),
        seed=plan.seed,
        command=options.command,
        status=found.status,
        status_reason=found.stopped,
        payload=payload,
    )
