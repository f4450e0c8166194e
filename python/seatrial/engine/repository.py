"""What a running server may load: the packages it was started with and those of one folder, read anew each time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.contract import MANIFEST, Package, load_package, manifest_digest, read_document
from seatrial.engine.config import EngineOptions, resolve_model
from seatrial.errors import UsageError

__all__ = ["NoPackageError", "Repository"]

DIGEST_PREFIX = 12


class NoPackageError(UsageError):
    """No package has the name and version that were asked for."""


@dataclass(frozen=True)
class Repository:
    """Packages by name and version. `folder` holds packages side by side; it may change while the server runs."""

    packages: tuple[Path, ...] = ()
    folder: Path | None = None
    options: EngineOptions = field(default_factory=EngineOptions)
    # Reads a package and raises where it may not be served; a caller that knows more rules brings its own.
    read: Callable[[Path], Package] = load_package

    def newest(self) -> list[Package]:
        """The packages named at the start; without any, the newest version of each model in the folder."""
        if self.packages:
            return [self.read(root) for root in self.packages]
        newest: dict[str, tuple[tuple[Any, ...], Path]] = {}
        for name, version, root in self._all():
            newest[name] = max(newest.get(name, ((), root)), (_rank(version), root), key=lambda e: e[0])
        return [self.read(root) for _, root in newest.values()]

    def find(self, name: str, version: str | None = None) -> Package:
        """The newest package of this name, or the one of this version or digest; validated as a whole."""
        there = [(v, root) for n, v, root in self._all() if n == name]
        named = [entry for entry in there if version is None or _is_version(version, *entry)]
        if named:
            return self.read(max(named, key=lambda entry: _rank(entry[0]))[1])
        if not there and self.folder is not None and (self.folder / name).is_dir():
            return self.read(self.folder / name)  # says what is wrong with it
        raise NoPackageError(self._none_of(name, version, sorted({v for v, _ in there})))

    def resolve(self, name: str, version: str | None = None) -> dict[str, Any]:
        """What the server needs to load it."""
        return resolve_model(self.find(name, version), self.options)

    def _all(self) -> Iterator[tuple[str, str, Path]]:
        """Name, version and folder of every package whose identity can be read."""
        inside = sorted(p for p in self.folder.iterdir() if p.is_dir()) if self.folder else []
        for root in (*inside, *self.packages):
            if not root.is_dir():
                continue
            identity = read_document(root, "seatrial.yaml").value
            if identity is not None:
                yield identity.name, str(identity.version), root

    def _none_of(self, name: str, version: str | None, there: list[str]) -> str:
        places = [f"in the folder `{self.folder}`"] if self.folder else []
        places += ["among the packages of the start"] if self.packages else []
        if there:
            versions = ", ".join(f"`{v}`" for v in there)
            return f"there is no version `{version}` of `{name}`: expected {versions} or a digest"
        return f"there is no package of the model `{name}` {' or '.join(places)}".rstrip()


def _is_version(wanted: str, version: str, root: Path) -> bool:
    if wanted == version:
        return True
    return (
        len(wanted) >= DIGEST_PREFIX
        and (root / MANIFEST).is_file()
        and manifest_digest(root).startswith(wanted)
    )


def _rank(version: str) -> tuple[Any, ...]:
    """Orders semantic versions as semver.org, item 11, does.

    >>> sorted(["1.10.0", "1.9.0", "1.10.0-rc.2", "1.10.0-rc.10"], key=_rank)
    ['1.9.0', '1.10.0-rc.2', '1.10.0-rc.10', '1.10.0']
    """
    core, _, early = re.sub(r"\+.*", "", version).partition("-")
    numbers = tuple(int(n) for n in core.split("."))
    parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in early.split(".")) if early else ()
    return (*numbers, not early, parts)
