"""The envelope of every record: what was measured, when, where, with what, and the command to repeat it."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field, model_validator

from seatrial.records.figures import Words
from seatrial.records.trial import BenchPayload, TrialPayload

__all__ = [
    "SCHEMA_VERSION",
    "FileRef",
    "HostFingerprint",
    "PackageRef",
    "Record",
    "RecordKind",
    "RecordStatus",
]

SCHEMA_VERSION = 1

RecordKind = Literal["trial", "bench"]
RecordStatus = Literal["complete", "cut_short", "died"]


class PackageRef(Words):
    """The delivery package; `digest` is the SHA-256 of its MANIFEST.json."""

    name: str
    version: str
    digest: str | None


class FileRef(Words):
    """A file of the record, relative to its folder."""

    path: str
    bytes: int
    sha256: str


class HostFingerprint(Words):
    """The machine. Two hosts with the same `like` may be compared; None means that it could not be read."""

    cpu_model: str | None
    logical_cpus: int
    affinity_cpus: int
    cpu_limit: float | None
    """CPUs allowed by the cgroup quota; None when there is no quota."""
    cpu_flags: list[str]
    memory_bytes: int | None
    memory_limit_bytes: int | None
    kernel: str
    os: str
    python: str
    versions: dict[str, str]
    like: str


class Record(Words):
    """One dated, versioned piece of evidence."""

    api_version: Literal["seatrial/v1"] = "seatrial/v1"
    kind: RecordKind
    schema_version: int = SCHEMA_VERSION
    id: str
    created: AwareDatetime
    package: PackageRef | None
    tool_version: str
    host: HostFingerprint
    seed: int | None
    command: str
    status: RecordStatus
    status_reason: str = ""
    files: list[FileRef] = Field(default_factory=list)
    payload: TrialPayload | BenchPayload

    @model_validator(mode="after")
    def _payload_fits(self) -> Record:
        held = "trial" if isinstance(self.payload, TrialPayload) else "bench"
        if held != self.kind:
            raise ValueError(f"a record of kind `{self.kind}` holds the payload of a {held}")
        return self
