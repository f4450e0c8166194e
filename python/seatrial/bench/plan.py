"""What to send where, when and how often: the values that become the generator's `load.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from seatrial.errors import UsageError

__all__ = ["Body", "ClosedLoop", "LoadPlan", "OpenLoop", "Target"]

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Target:
    """Where requests go. Only this machine, unless `allow_remote` says that another one is meant."""

    host: str
    port: int
    path: str
    method: str = "POST"
    headers: Headers = ()
    allow_remote: bool = False

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Target:
        """The target of an `http://` address.

        >>> Target.from_url("http://127.0.0.1:8000/v2/models/m/infer").path
        '/v2/models/m/infer'
        """
        hint = "give an address such as http://127.0.0.1:8000/v2/models/m/infer"
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UsageError(f"`{url}` is no address: {error}", hint=hint) from error
        if parts.scheme != "http" or not parts.hostname or parts.username is not None:
            raise UsageError(f"`{url}` is not a plain http:// address", hint=hint)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(parts.hostname, 80 if port is None else port, path, **options)


@dataclass(frozen=True)
class OpenLoop:
    """A timetable that the server cannot slow down, drawn from a seed before the run."""

    rate_per_s: float
    duration_s: float
    arrivals: Literal["poisson", "constant"] = "poisson"
    seed: int = 1

    def resolved(self) -> dict[str, Any]:
        """The `schedule` of `load.json`."""
        return {
            "mode": "open",
            "arrivals": self.arrivals,
            "rate_per_s": self.rate_per_s,
            "duration_s": self.duration_s,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class ClosedLoop:
    """Each of `connections` clients sends its next request when the last one is answered."""

    connections: int
    duration_s: float

    def resolved(self) -> dict[str, Any]:
        """The `schedule` of `load.json`."""
        return {"mode": "closed", "connections": self.connections, "duration_s": self.duration_s}


@dataclass(frozen=True)
class Body:
    """One request's body with the headers that only it has."""

    data: bytes = b""
    headers: Headers = ()


@dataclass(frozen=True)
class LoadPlan:
    """One run of the generator; request i sends body i modulo their number."""

    target: Target
    schedule: OpenLoop | ClosedLoop
    bodies: tuple[Body, ...] = (Body(),)
    max_in_flight: int = 4096
    timeout_ms: int = 10_000
    stages: bool = True

    def resolved(self, bodies: Path, output: Path) -> dict[str, Any]:
        """The content of `load.json`."""
        target = self.target
        return {
            "target": {
                "host": target.host,
                "port": target.port,
                "method": target.method,
                "path": target.path,
                "headers": [list(header) for header in target.headers],
            },
            "bodies": str(bodies),
            "schedule": self.schedule.resolved(),
            "max_in_flight": self.max_in_flight,
            "timeout_ms": self.timeout_ms,
            "stages": self.stages,
            "output": str(output),
            "allow_remote": target.allow_remote,
        }
