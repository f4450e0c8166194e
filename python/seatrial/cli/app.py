"""The root command: finds commands lazily, so that `seatrial --help` loads no room, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import sys
from typing import Any, NoReturn

import click

from seatrial import __version__
from seatrial.errors import MissingError, SeatrialError

__all__ = ["COMMANDS", "app", "main"]

# Command name -> module under seatrial.cli that holds a click command called `command`.
COMMANDS: dict[str, str] = {
    "init": "init",
    "check": "check",
    "serve": "serve",
    "bench": "bench",
    "report": "report",
    "trial": "trial",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command: Any = importlib.import_module(f"seatrial.cli.{COMMANDS[cmd_name]}").command
        assert isinstance(command, click.Command)  # noqa: S101 - a wrong table is our own mistake
        return command


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="seatrial")
def app() -> None:
    """Take a trained model to a measured verdict."""


def main() -> None:
    """Entry point of the `seatrial` script. Exit codes: 0 done, 1 a check said no, 2 wrong use, 3 missing, 4 invalid."""
    try:
        app(prog_name="seatrial")
    except SeatrialError as error:
        _end(error)
    except OSError as error:
        _end(_refused_here(error))


def _refused_here(error: OSError) -> MissingError:
    """What the operating system refused and no room has put into words of its own."""
    reason = error.strerror or str(error)
    text = reason if error.filename is None else f"`{error.filename}`: {reason}"
    return MissingError(text, hint="see that the folder is there, has room and may be written to")


def _end(error: SeatrialError) -> NoReturn:
    click.echo(f"error[{error.code}]: {error.message}", err=True)
    if error.hint:
        click.echo(f"hint: {error.hint}", err=True)
    sys.exit(error.exit_code)
