"""`seatrial serve`: serves packages until it is told to stop."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from seatrial.errors import ContractError, EngineError

if TYPE_CHECKING:
    from seatrial.contract import Package
    from seatrial.engine import Repository

__all__ = ["command"]


@click.command("serve", short_help="Serve packages over HTTP until SIGTERM or Ctrl-C.")
@click.argument("packages", nargs=-1, type=click.Path(path_type=Path), metavar="[PACKAGE...]")
@click.option(
    "--repository", "folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
    help="Folder of packages that may be loaded while the server runs.",
)  # fmt: skip
@click.option("--host", help="Address to bind; the setting `host`, 127.0.0.1, unless given.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free port."
)
@click.option(
    "--port-file", type=click.Path(path_type=Path), help="File that gets the port once it is bound."
)
@click.option(
    "--grpc-port", type=click.IntRange(0, 65535), help="Port for gRPC, 0 for a free one; none unless given."
)
@click.option(
    "--grpc-port-file", type=click.Path(path_type=Path), help="File that gets the gRPC port once it is bound."
)
@click.option(
    "--executors", type=click.IntRange(1, 1024), help="Sessions of each model that run side by side."
)
@click.option("--threads", type=click.IntRange(1, 1024), help="Threads of each session.")
@click.option(
    "--grace", "grace_ms", type=click.IntRange(0, 3_600_000), default=0, show_default=True, metavar="MS",
    help="How long the port stays open after readiness has turned false.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the resolved configuration and start nothing.")
def command(packages: tuple[Path, ...], folder: Path | None, dry_run: bool, **options: Any) -> None:
    """Serve packages over HTTP, and gRPC if asked, with the Open Inference Protocol until SIGTERM or Ctrl-C.

    Without a package the newest version of each model in the repository is served.
    """
    from seatrial.engine import EngineOptions, Repository, resolve

    repository = Repository(packages, folder, EngineOptions(**options), _sound)
    config = resolve(repository.newest(), repository.options)
    if dry_run:
        click.echo(json.dumps(config, indent=2))
    else:
        sys.exit(_serve(config, repository))


def _sound(path: Path) -> Package:
    """A package without errors: its rules are held before the runtime sees a byte of it."""
    from seatrial.check import check_package
    from seatrial.contract import load_package

    package = load_package(path)
    errors = [found for found in check_package(path).findings if found.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more of `seatrial check`)" if len(errors) > 1 else ""
        raise ContractError(f"{errors[0].where()}: {errors[0].text}{more}", hint=errors[0].hint)
    return package


def _serve(config: dict[str, Any], repository: Repository) -> int:
    from seatrial.engine import Server

    signal.signal(signal.SIGTERM, _interrupt)
    server = Server(config, repository=repository, on_change=_tell)
    try:
        server.wait_listening()
        click.echo(f"listening on http://{_address(server.host)}:{server.port}", err=True)
        if server.grpc_port is not None:
            click.echo(f"listening on grpc://{_address(server.host)}:{server.grpc_port}", err=True)
        ready = server.wait_ready()
        names = ", ".join(model["name"] for model in ready.models)
        click.echo(f"ready after {ready.seconds:.2f} s: {names}", err=True)
        code = server.wait()
        raise EngineError(f"the server ended by itself with code {code}\n{server.log_tail()}".rstrip())
    except KeyboardInterrupt:
        return _drain(server)
    finally:
        server.stop()


def _drain(server: Any) -> int:
    """Lets the server finish; a second Ctrl-C ends it at once."""
    click.echo("draining; once more to stop at once", err=True)
    server.terminate()
    while True:
        try:
            code = server.wait()
            break
        except KeyboardInterrupt:
            server.terminate()
    if server.drained is not None:
        click.echo(
            f"drained: {server.drained['answered']} answered meanwhile, {server.drained['failed']} failed",
            err=True,
        )
    return int(code)


def _tell(event: dict[str, Any]) -> None:
    match event:
        case {"event": "activated", "model": model, "version": version, "digest": digest}:
            click.echo(f"active: {model} {version} ({digest[:12]})", err=True)
        case {"event": "load_failed", "model": model, "error": error}:
            click.echo(f"not loaded: {model}: {error}", err=True)
        case {"event": "unloaded", "model": model, "version": version, "digest": digest}:
            click.echo(f"unloaded: {model} {version} ({digest[:12]})", err=True)


def _interrupt(_number: int, _frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _address(host: str) -> str:
    return f"[{host}]" if ":" in host else host
