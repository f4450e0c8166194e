"""`seatrial bench run`: one load against an address or a served package, printed as a table or as JSON."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.errors import InvalidMeasurementError, MissingError, UsageError

if TYPE_CHECKING:
    from seatrial.bench import Body, LoadPlan, LoadResult, Target
    from seatrial.records import LoadSummary

__all__ = ["command"]


class Unit(click.ParamType[Any]):
    """A number with its unit, read by a class of the contract's words."""

    def __init__(self, name: str) -> None:
        self.name = name.lower()
        self._class = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The quantity of the text."""
        from seatrial import contract

        try:
            return getattr(contract, self._class).parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.group("bench")
def command() -> None:
    """Measure a server under load."""


@command.command("run")
@click.argument("target", metavar="URL|PACKAGE")
@click.option("--rate", type=Unit("Rate"), help="Mean rate of an open loop, such as 100/s.")
@click.option(
    "--duration", type=Unit("Duration"), required=True, help="Length of the timetable, such as 20s."
)
@click.option("--arrivals", type=click.Choice(["poisson", "constant"]), default="poisson", show_default=True)
@click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), default=1, show_default=True, help="Draws the timetable."
)
@click.option(
    "--closed", type=click.IntRange(1, 100_000), metavar="N", help="Closed loop of N clients; no --rate."
)
@click.option(
    "--body", "body_files", multiple=True, type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File sent as a request's body; several are sent in turn.",
)  # fmt: skip
@click.option("--binary", is_flag=True, help="Send a package's samples with the binary tensor extension.")
@click.option("--method", help="HTTP method; POST with a body, GET without.")
@click.option("--header", "headers", multiple=True, metavar="K:V", help="Header field of every request.")
@click.option("--max-in-flight", type=click.IntRange(1, 1_000_000), default=4096, show_default=True)
@click.option(
    "--timeout", type=Unit("Duration"), default="10s", show_default=True, help="From the intended time."
)
@click.option(
    "--stages", is_flag=True, help="Ask an address for the stage header; a package always is asked."
)
@click.option(
    "--allow-remote", is_flag=True, help="The address is not this machine, and it is yours to load."
)
@click.option(
    "--output", type=click.Path(path_type=Path), help="Folder that gets a record with every request."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(target: str, output: Path | None, as_json: bool, **options: Any) -> None:
    """Load an http:// address, or PACKAGE served for the purpose.

    Open loop: the timetable is made before the run and latency counts from the moment a request was due. Exit codes:
    0 measured, 2 wrong use, 3 something missing here, 4 the run was cut short and its figures say so.
    """
    from seatrial.bench import summarise
    from seatrial.cli.bench_output import document, text

    wish = Wish(**options)
    with contextlib.ExitStack() as stack:
        aim = stack.enter_context(
            _served(Path(target), wish) if "://" not in target else _address(target, wish)
        )
        keeper = stack.enter_context(_kept(output, target, wish))
        result = _load(_plan(aim, wish), keeper.folder, quiet=as_json)
        summary = summarise(keeper.folder, budget_ms=aim.budget_ms)
        keeper.finish(summary, result)
    shown = (summary, result)
    click.echo(json.dumps(document(*shown, target=target, command=_command())) if as_json else text(*shown))
    if keeper.record is not None:
        click.echo(f"record  {keeper.record}", err=True)
    _raise_for(summary, result, target)


@dataclass(frozen=True)
class Wish:
    """The options that shape the load."""

    rate: Any
    duration: Any
    arrivals: Any
    seed: int
    closed: int | None
    body_files: tuple[Path, ...]
    binary: bool
    method: str | None
    headers: tuple[str, ...]
    max_in_flight: int
    timeout: Any
    stages: bool
    allow_remote: bool

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.closed is None):
            raise UsageError(
                "give either `--rate` or `--closed`",
                hint="--rate 100/s is an open loop, --closed 8 a closed one",
            )

    def header_fields(self) -> tuple[tuple[str, str], ...]:
        """The headers as names and values."""
        fields = []
        for text in self.headers:
            name, colon, value = text.partition(":")
            if not colon or not name.strip():
                raise UsageError(f"header `{text}` is not `NAME: VALUE`")
            fields.append((name.strip(), value.strip()))
        return tuple(fields)


@dataclass(frozen=True)
class Aim:
    """Where a load goes, with what, and what was promised for it."""

    target: Target
    bodies: tuple[Body, ...]
    stages: bool
    budget_ms: float | None = None


@contextlib.contextmanager
def _address(url: str, wish: Wish) -> Iterator[Aim]:
    from seatrial.bench import Body, Target, file_bodies

    if wish.binary:
        raise UsageError(
            "`--binary` is for the samples of a package", hint="send a body file with its --header"
        )
    bodies = file_bodies(wish.body_files) or (Body(),)
    method = wish.method or ("POST" if wish.body_files else "GET")
    target = Target.from_url(url, method=method, headers=wish.header_fields(), allow_remote=wish.allow_remote)
    yield Aim(target, bodies, wish.stages)


@contextlib.contextmanager
def _served(root: Path, wish: Wish) -> Iterator[Aim]:
    from seatrial.bench import Target, binary_bodies, file_bodies, json_bodies
    from seatrial.contract import load_package, read_requests
    from seatrial.engine import EngineOptions, resolve, start

    package = load_package(root)
    bodies = file_bodies(wish.body_files) or (binary_bodies if wish.binary else json_bodies)(
        read_requests(package.root) if package.requests_file else []
    )
    if not bodies:
        raise UsageError(
            f"package `{root}` has no sample requests",
            hint="write samples/requests.jsonl or give --body FILE",
        )
    budget = package.slo.latency.total.p99
    with start(resolve([package], EngineOptions(host="127.0.0.1"))) as server:
        path = f"/v2/models/{package.identity.name}/infer"
        target = Target(server.host, server.port, path, wish.method or "POST", wish.header_fields())
        yield Aim(target, bodies, True, None if budget is None else budget.ms)


def _plan(aim: Aim, wish: Wish) -> LoadPlan:
    from seatrial.bench import ClosedLoop, LoadPlan, OpenLoop

    seconds = wish.duration.ms / 1000
    return LoadPlan(
        target=aim.target,
        schedule=OpenLoop(wish.rate.per_second, seconds, wish.arrivals, wish.seed)
        if wish.closed is None
        else ClosedLoop(wish.closed, seconds),
        bodies=aim.bodies,
        max_in_flight=max(wish.max_in_flight, wish.closed or 0),
        timeout_ms=max(1, round(wish.timeout.ms)),
        stages=aim.stages,
    )


def _load(plan: LoadPlan, folder: Path, *, quiet: bool) -> LoadResult:
    from seatrial.bench import run_load

    show = not quiet and sys.stderr.isatty()

    def tell(second: dict[str, Any]) -> None:
        counts = ("intended", "sent", "completed", "errors", "not_sent", "in_flight")
        text = "  ".join(f"{name.replace('_', ' ')} {second[name]:,}" for name in counts)
        click.echo(f"\r{second['t']:5.0f} s  {text}\x1b[K", err=True, nl=False)

    result = run_load(plan, output=folder, on_second=tell if show else None)
    if show and result.seconds:
        click.echo("", err=True)
    return result


class Keeper:
    """The folder of a run: part of a record when an output was asked for, else a temporary one."""

    def __init__(self, folder: Path, writer: Any = None, begun: Any = None) -> None:
        self.folder = folder
        self.record: Path | None = None
        self._writer = writer
        self._begun = begun

    def finish(self, summary: LoadSummary, result: LoadResult) -> None:
        """Closes the record."""
        if self._writer is None:
            return
        from seatrial.records import Phase

        phase = Phase(
            name="load", kind="load", started_s=0.0, ended_s=summary.duration_s, rate_per_s=summary.rate_per_s,
            load=summary, note=result.died or "", folder=self.folder.name,
        )  # fmt: skip
        self._writer.phase(phase)
        payload = self._begun.payload.model_copy(update={"phases": [phase]})
        reason = result.died or ("it was interrupted" if result.interrupted else "")
        status = "died" if result.died else "cut_short" if summary.cut_short else "complete"
        done = {"payload": payload, "status": status, "status_reason": reason}
        self._writer.finish(self._begun.model_copy(update=done))
        self.record = self._writer.folder


@contextlib.contextmanager
def _kept(output: Path | None, target: str, wish: Wish) -> Iterator[Keeper]:
    if output is None:
        with tempfile.TemporaryDirectory(prefix="seatrial-") as folder:
            yield Keeper(Path(folder))
        return
    from seatrial import __version__
    from seatrial.records import BenchPayload, Record, RecordWriter, host_fingerprint

    writer = RecordWriter.create(output, "bench", target.split("://")[-1])
    record = Record(
        kind="bench", id=writer.id, created=writer.created, package=None, tool_version=__version__,
        host=host_fingerprint(), seed=None if wish.closed else wish.seed, command=_command(),
        status="cut_short", status_reason="it has not ended", payload=BenchPayload(target=target),
    )  # fmt: skip
    writer.start(record)
    yield Keeper(writer.phase_folder("load"), writer, record)


def _command() -> str:
    return shlex.join(["seatrial", *sys.argv[1:]])


def _raise_for(summary: LoadSummary, result: LoadResult, target: str) -> None:
    if result.died:
        raise InvalidMeasurementError(
            result.died, hint="the figures above are what it had recorded until then"
        )
    if summary.cut_short:
        raise InvalidMeasurementError(
            "the run was cut short", hint="the figures above hold for the part that ran"
        )
    if summary.intended and summary.errors.get("connect", 0) == summary.intended:
        raise MissingError(f"nothing takes connections at `{target}`", hint="start the server first")
