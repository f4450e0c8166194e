"""Finds the ONNX Runtime library that the server opens: the one of the installed wheel, found without importing it."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from seatrial import settings
from seatrial.errors import EngineError

__all__ = ["OLDEST", "Runtime", "find_runtime"]

OLDEST = (1, 24)
NEWEST = (1, 32)
_NAME = re.compile(r"libonnxruntime\.so\.(\d+)\.(\d+)\.(\d+)$")


@dataclass(frozen=True)
class Runtime:
    """The library and the version that its file name tells; the server asks the library itself before using it."""

    library: Path
    version: str | None


def find_runtime(flag: str | None = None) -> Runtime:
    """The library named by flag or environment, or the one of the installed `onnxruntime` wheel."""
    named = settings.resolve("runtime", flag)
    if named:
        library = Path(named).expanduser().absolute()
        if not library.is_file():
            raise EngineError(
                f"the runtime library `{library}` is not there", hint="correct the setting `runtime`"
            )
    else:
        library = _of_wheel()
    found = _NAME.search(library.name)
    if found is None:
        return Runtime(library, None)
    version = ".".join(found.groups())
    _require_supported(version, library)
    return Runtime(library, version)


def _of_wheel() -> Path:
    # find_spec looks at the folder only; importing would load a second copy of the library into this process.
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        raise EngineError(
            "the ONNX Runtime is not installed: there is no Python package `onnxruntime`",
            hint="install it with `pip install onnxruntime` (or `onnxruntime-gpu`), or name a library with "
            "SEATRIAL_RUNTIME",
        )
    for place in spec.submodule_search_locations:
        libraries = sorted(Path(place, "capi").glob("libonnxruntime.so.*.*.*"))
        if libraries:
            return libraries[-1].absolute()
    raise EngineError(
        f"the installed `onnxruntime` in `{spec.submodule_search_locations[0]}` has no library `libonnxruntime.so`",
        hint="reinstall it with `pip install --force-reinstall onnxruntime`",
    )


def _require_supported(version: str, library: Path) -> None:
    major_minor = tuple(int(part) for part in version.split(".")[:2])
    oldest, newest = ".".join(map(str, OLDEST)), ".".join(map(str, NEWEST))
    if not OLDEST <= major_minor <= NEWEST:
        age = "old" if major_minor < OLDEST else "new"
        raise EngineError(
            f"ONNX Runtime `{version}` is too {age}: expected {oldest} to {newest}, found in `{library}`",
            hint=f"install a supported one with `pip install 'onnxruntime>={oldest},<{NEWEST[0]}.{NEWEST[1] + 1}'`",
        )
