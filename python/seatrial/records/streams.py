"""The columnar files of a record: `system.arrow` written and read, `requests.arrow` read as far as it goes.

Both are Arrow IPC streams of small batches, so that a killed writer leaves all but its last batch readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from seatrial.errors import RecordError

__all__ = ["SystemSample", "SystemWriter", "read_stream", "read_system"]


@dataclass(frozen=True, slots=True)
class SystemSample:
    """One reading of the sampler.

    `t_s` is seconds from the start of the record. The counters (`cpu_s`, switches, `throttled_s`,
    `run_queue_wait_s`) are cumulative. PSI is the kernel's `avg10` in percent. None means not measured:
    the row of `host` has no process figures, the rows of processes have no PSI.
    """

    t_s: float
    process: Literal["server", "generator", "host"]
    cpu_s: float | None = None
    rss_bytes: int | None = None
    pss_bytes: int | None = None
    threads: int | None = None
    fds: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    psi_cpu_some: float | None = None
    psi_io_some: float | None = None
    psi_memory_some: float | None = None
    throttled_s: float | None = None
    run_queue_wait_s: float | None = None


COLUMNS = tuple(field.name for field in fields(SystemSample))
INTEGERS = {"rss_bytes", "pss_bytes", "threads", "fds", "voluntary_switches", "involuntary_switches"}


class SystemWriter:
    """Appends samples to `system.arrow`; each `append` is one flushed batch. A context manager."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        types = {name: pa.int64() if name in INTEGERS else pa.float64() for name in COLUMNS}
        types["process"] = pa.string()
        self._pa = pa
        self._schema = pa.schema(
            [pa.field(n, t, nullable=n not in ("t_s", "process")) for n, t in types.items()]
        )
        self._path = path
        try:
            self._file = path.open("xb")
        except OSError as error:
            raise _cannot_write(path, error) from error
        self._stream = pa.ipc.new_stream(self._file, self._schema)

    def append(self, samples: Iterable[SystemSample]) -> None:
        """Writes one batch and flushes it."""
        rows = list(samples)
        if not rows:
            return
        columns = [[getattr(row, name) for row in rows] for name in COLUMNS]
        batch = self._pa.record_batch(columns, schema=self._schema)
        try:
            self._stream.write_batch(batch)
            self._file.flush()
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def close(self) -> None:
        """Ends the stream."""
        try:
            self._stream.close()
            self._file.close()
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def __enter__(self) -> SystemWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_stream(path: Path) -> Any:
    """A `pyarrow.Table` of all whole batches of an Arrow stream; a torn last batch is left out.

    A file that holds no readable schema is an error.
    """
    import pyarrow as pa

    batches: list[Any] = []
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
            schema = reader.schema
            try:
                batches.extend(iter(reader.read_next_batch, None))
            except StopIteration:
                pass
            except (pa.ArrowInvalid, OSError):
                pass
    except FileNotFoundError as error:
        raise RecordError(f"there is no file `{path}`") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise RecordError(f"`{path}` is not a readable Arrow stream: {error}") from error
    return pa.Table.from_batches(batches, schema)


def read_system(path: Path) -> list[SystemSample]:
    """The samples of a `system.arrow`, in the order written."""
    table = read_stream(path)
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise RecordError(f"`{path}` lacks the column `{missing[0]}`")
    return [SystemSample(*row) for row in zip(*(table.column(n).to_pylist() for n in COLUMNS), strict=True)]


def _cannot_write(path: Path, error: OSError) -> RecordError:
    return RecordError(
        f"`{path}` could not be written: {error.strerror or error}",
        hint="free space on this disk or choose another records folder; what was written before is kept",
    )
