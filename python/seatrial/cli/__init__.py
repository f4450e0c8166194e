"""The command line: one file per command group, each function parses, calls a room and prints. No logic of its own."""

from seatrial.cli.app import main

__all__ = ["main"]
