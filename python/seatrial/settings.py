"""Every setting once: name, default, environment name, meaning. Flags and the reference page come from here.

What belongs to a model (limits, budget, batching) belongs to its package, not here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import UsageError

__all__ = ["SETTINGS", "Setting", "resolve", "resolve_path"]


@dataclass(frozen=True)
class Setting:
    """One setting of the tool itself."""

    name: str
    default: str
    meaning: str

    @property
    def environment(self) -> str:
        """The environment variable that overrides the default, such as `SEATRIAL_HOST`."""
        return "SEATRIAL_" + self.name.upper()

    @property
    def flag(self) -> str:
        """The command-line flag, such as `--host`."""
        return "--" + self.name.replace("_", "-")


SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting("host", "127.0.0.1", "Address the server binds; loopback unless said otherwise."),
        Setting(
            "records", "records", "Folder that records are written to, relative to the working directory."
        ),
        Setting(
            "runtime", "", "Path of the ONNX Runtime library; empty means the one of the installed wheel."
        ),
    )
}


def resolve(name: str, flag: str | None = None) -> str:
    """The value of a setting: the flag if given, then the environment, then the default.

    >>> resolve("host", "127.0.0.2")
    '127.0.0.2'
    """
    try:
        setting = SETTINGS[name]
    except KeyError:
        raise UsageError(
            f"there is no setting `{name}`", hint=f"the settings are {', '.join(SETTINGS)}"
        ) from None
    if flag is not None:
        return flag
    return os.environ.get(setting.environment, setting.default)


def resolve_path(name: str, flag: str | None = None) -> Path:
    """Like `resolve`, as an absolute path."""
    return Path(resolve(name, flag)).expanduser().absolute()
