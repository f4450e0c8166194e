"""`seatrial init`: a DRAFT package from an ONNX file."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

__all__ = ["command"]


@click.command("init")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to write; must be new or empty. Default: the file's name.",
)
@click.option(
    "--sample", type=click.Path(path_type=Path), help="Real requests: request lines, .json or .npz arrays."
)
@click.option("--name", help="Name of the model. Default: that of the folder.")
def command(model: Path, out: Path | None, sample: Path | None, name: str | None) -> None:
    """Write a DRAFT package from the ONNX file MODEL."""
    from seatrial.check import check_package, init_package

    package = init_package(model, out, sample, name)
    report = check_package(package)
    click.echo(package)
    mode = report.batching.mode if report.batching is not None else "none"
    why = report.batching.why if report.batching is not None else "not probed"
    click.echo(f"batching: {mode}; {why}", err=True)
    questions = sum(f.code == "QST001" for f in report.findings)
    click.echo(
        f"{questions} open questions are marked QUESTION(owner); `seatrial check {shlex.quote(str(package))}` lists them",
        err=True,
    )
    for found in report.findings:
        if found.severity == "error":
            click.echo(f"error[{found.code}] {found.where()}: {found.text}", err=True)
