"""The exception tree. Every class has a stable `code`, an exit code, and may carry a `hint` with the cure.

SeatrialError
├── UsageError                exit 2: the command or a file was used wrongly
│   └── ContractError         a package file breaks its schema or names something that is not there
├── MissingError              exit 3: something is missing on this machine
│   ├── EngineError           the server or the generator could not start, or died
│   └── RecordError           a record could not be written or read: full disk, torn file
├── GateError                 exit 1: a check or a gate said no
└── InvalidMeasurementError   exit 4: the measurement cannot carry a verdict
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "ContractError",
    "EngineError",
    "GateError",
    "InvalidMeasurementError",
    "MissingError",
    "RecordError",
    "SeatrialError",
    "UsageError",
]


class SeatrialError(Exception):
    """Something a person can act on: a text, and where there is one a hint with the cure."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SeatrialError):
    """The command, a flag or a file was used wrongly."""

    code = "usage"
    exit_code = 2


class ContractError(UsageError):
    """A package file breaks its schema, or names something that is not there."""

    code = "contract"

    def __init__(
        self, message: str, *, hint: str | None = None, file: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line


class MissingError(SeatrialError):
    """Something that the work needs is missing on this machine."""

    code = "missing"
    exit_code = 3


class EngineError(MissingError):
    """The server or the load generator could not start, or died."""

    code = "engine"


class RecordError(MissingError):
    """A record could not be written or read: full disk, no rights, torn file."""

    code = "record"


class GateError(SeatrialError):
    """A check or a gate said no."""

    code = "gate"
    exit_code = 1


class InvalidMeasurementError(SeatrialError):
    """What was measured cannot carry a verdict: noisy host, saturated generator, cut short."""

    code = "invalid_measurement"
    exit_code = 4
