"""`seatrial report`: renders a record."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

__all__ = ["command"]


@click.command("report", short_help="Render a record as HTML, Markdown and JSON.")
@click.argument("record", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "formats",
    type=click.Choice(["html", "md", "json"]),
    multiple=True,
    help="Format to write; may be given several times. All three unless said otherwise.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to; the record's own otherwise.",
)
def command(record: Path, formats: tuple[str, ...], out: Path | None) -> None:
    """Render RECORD, a record's folder or its record.json, and print the paths of the files."""
    from seatrial.records import load_record, record_folder
    from seatrial.report import FORMATS, Format, render

    chosen = cast("tuple[Format, ...]", formats) or FORMATS
    written = render(load_record(record), record_folder(record), formats=chosen, out=out)
    for path in written.values():
        click.echo(path)
