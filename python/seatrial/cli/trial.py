"""`seatrial trial`: takes a package to a verdict, with a progress display, and writes record and report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

__all__ = ["command"]


@click.command("trial")
@click.argument("package", type=click.Path(path_type=Path))
@click.option("--profile", default="quick", show_default=True, help="Which plan to sail: quick.")
@click.option("--records", "records_folder", help="Folder for records; the setting `records` unless given.")
@click.option(
    "--executors", type=click.IntRange(1, 1024), help="Sessions of the model that run side by side."
)
@click.option("--threads", type=click.IntRange(1, 1024), help="Threads of each session.")
@click.option(
    "--evidence", is_flag=True, help="Keep the record in PACKAGE/evidence/: it is no draft any more."
)
def command(package: Path, profile: str, records_folder: str | None, evidence: bool, **engine: Any) -> None:
    """Take PACKAGE to a measured verdict.

    Checks it, serves it on a free loopback port, compares golden rows, loads it step by step, judges slo.yaml.
    Exit codes: 0 every promise kept, 1 one was broken, 2 wrong use, 3 something missing here, 4 invalid measurement.
    """
    from seatrial.cli.progress import Progress
    from seatrial.engine import EngineOptions
    from seatrial.report import render
    from seatrial.settings import resolve_path
    from seatrial.trial import TrialOptions, keep_evidence, run_trial
    from seatrial.trial import profile as plan_of

    plan = plan_of(profile)
    with Progress(plan.longest_s()) as progress:
        options = TrialOptions(
            records=resolve_path("records", records_folder),
            command=shlex.join(["seatrial", *sys.argv[1:]]),
            watcher=progress.tell,
            engine=EngineOptions(**engine),
        )
        result = run_trial(package, plan, options)
    written = render(result.record, result.folder)
    click.echo(f"{result.verdict.outcome.upper()}  {result.verdict.line}")
    for reason in result.verdict.reasons:
        click.echo(f"  - {reason}")
    for step in result.verdict.next_steps:
        click.echo(f"  next, {step.owner}: {step.text}")
    click.echo(f"record  {result.folder}")
    click.echo(f"report  {written['html']}")
    if evidence:
        click.echo(f"evidence  {keep_evidence(result, package)}")
    sys.exit(result.exit_code)
