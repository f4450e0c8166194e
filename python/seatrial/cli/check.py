"""`seatrial check`: whether a package's promises hold, as text for people, JSON or SARIF for machines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from seatrial.check import CheckReport

__all__ = ["command"]


@click.command("check")
@click.argument("package", type=click.Path(path_type=Path))
@click.option("--level", default="L", show_default=True, help="L: lint, no model is loaded.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True
)
@click.option(
    "--write-manifest", is_flag=True, help="Write MANIFEST.json anew first; this changes the digest."
)
def command(package: Path, level: str, form: str, write_manifest: bool) -> None:
    """Check PACKAGE. Exit 0 without errors, 1 with errors, 2 wrong use, 3 something is missing."""
    from seatrial.check import check_package, to_sarif

    if write_manifest:
        _write_manifest(package)
    report = check_package(package, level.upper())
    if form == "json":
        click.echo(json.dumps(report.to_json(), indent=1, ensure_ascii=False))
    elif form == "sarif":
        click.echo(json.dumps(to_sarif(report), indent=1, ensure_ascii=False))
    else:
        _print(report)
    sys.exit(0 if report.ok else 1)


def _write_manifest(package: Path) -> None:
    from seatrial.contract import write_manifest
    from seatrial.errors import MissingError

    if not package.is_dir():
        raise MissingError(
            f"there is no package folder `{package}`", hint="`seatrial init MODEL.onnx` writes one"
        )
    click.echo(f"digest {write_manifest(package)}", err=True)


def _print(report: CheckReport) -> None:
    for found in report.findings:
        click.echo(f"{found.severity}[{found.code}] {found.where()} ({found.owner}): {found.text}")
        if found.severity != "note":
            click.echo(f"  hint: {found.hint}")
    batching = report.to_json()["batching"]
    click.echo(f"batching: {batching['mode']}; {batching['why']}")
    counts = ", ".join(
        f"{report.count(s)} {s}{'s' if report.count(s) != 1 else ''}" for s in ("error", "warning", "note")
    )
    click.echo(f"{'DRAFT: ' if report.is_draft else ''}{counts}")
