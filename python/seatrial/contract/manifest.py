"""MANIFEST.json: sha256 and size of every file. Its own sha256 is the version's true name.

It covers everything but itself and `evidence/`, because evidence names the digest it was found for.
"""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from seatrial.contract.environment import Sha256
from seatrial.contract.files import file_problems, package_files
from seatrial.contract.source import fail
from seatrial.contract.strict import API_VERSION, Document, Strict, Text

__all__ = [
    "MANIFEST",
    "FileEntry",
    "Manifest",
    "file_sha256",
    "manifest_digest",
    "model_digest",
    "verify_manifest",
    "write_manifest",
]

MANIFEST = "MANIFEST.json"
MAX_MANIFEST_BYTES = 16 << 20


class FileEntry(Strict):
    """One file of the package."""

    path: Text
    sha256: Sha256
    size: Annotated[int, Field(strict=True, ge=0)]


class Manifest(Document):
    """The content of MANIFEST.json."""

    kind: Literal["Manifest"]
    files: list[FileEntry]


def write_manifest(root: Path) -> str:
    """Writes MANIFEST.json for the files as they are now and returns the digest. Links are refused."""
    links = file_problems(root)
    if links:
        raise fail(links)
    entries = [
        {"path": path, "sha256": file_sha256(root / path), "size": (root / path).stat().st_size}
        for path in covered_files(root)
    ]
    document = {"apiVersion": API_VERSION, "kind": "Manifest", "files": entries}
    raw = (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
    draft = root / f".{MANIFEST}.new"
    draft.write_bytes(raw)
    draft.replace(root / MANIFEST)
    return hashlib.sha256(raw).hexdigest()


def model_digest(manifest: Manifest) -> str:
    """One name for everything under `model/`: evidence about the model holds while this stays the same."""
    lines = sorted(f"{e.sha256} {e.path}\n" for e in manifest.files if e.path.startswith("model/"))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def manifest_digest(root: Path) -> str:
    """The sha256 of MANIFEST.json as it lies there."""
    return file_sha256(root / MANIFEST)


def verify_manifest(root: Path, manifest: Manifest) -> list[str]:
    """Sentences about every file that differs from the manifest; empty when it is fresh."""
    listed = {e.path: e for e in manifest.files}
    present = set(covered_files(root))
    differences = [f"`{p}` is listed but not there" for p in sorted(set(listed) - present)]
    differences += [f"`{p}` is there but not listed" for p in sorted(present - set(listed))]
    for path in sorted(present & set(listed)):
        info = (root / path).lstat()
        entry, size = listed[path], info.st_size
        if not stat.S_ISREG(info.st_mode):
            differences.append(f"`{path}` is no regular file")
        elif size != entry.size:
            differences.append(f"`{path}` has {size} bytes, listed are {entry.size}")
        elif file_sha256(root / path) != entry.sha256:
            differences.append(f"`{path}` has other content than listed")
    return differences


def covered_files(root: Path) -> list[str]:
    """The paths that the manifest covers, sorted."""
    return sorted(
        p
        for p in package_files(root)
        if p not in (MANIFEST, f".{MANIFEST}.new") and not p.startswith("evidence/")
    )


def file_sha256(path: Path) -> str:
    """The sha256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
