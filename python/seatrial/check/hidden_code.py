"""Files that run code when they are loaded, under whatever name: pickles, archives of pickles, native libraries."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import zipfile
import zlib
from pathlib import Path

from seatrial.check.findings import Finding, finding
from seatrial.check.reading import is_pickle
from seatrial.contract import MODEL, package_files

__all__ = ["hidden_code_findings", "what_runs"]

HEAD_BYTES = 4096
MAX_MEMBERS = 1000
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle", ".pt", ".pth", ".ckpt")
_LIBRARIES = (
    (b"\x7fELF", "a native library"),
    (b"MZ\x90", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O library"),
)


def hidden_code_findings(root: Path) -> list[Finding]:
    """A finding for every file of the package that can run code; the model file itself has rules of its own."""
    found = []
    for path in package_files(root):
        info = (root / path).lstat()
        if path == MODEL or not stat.S_ISREG(info.st_mode):
            continue
        what = what_runs(root / path)
        if what is not None:
            found.append(finding("PKG003", path, f"`{path}` is {what}"))
    return found


def what_runs(path: Path) -> str | None:
    """What a file is when loading it would run code; None for plain data."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return None
    if path.suffix.lower() in _PICKLE_SUFFIXES:
        return f"a `{path.suffix}` file, which is loaded by unpickling"
    if is_pickle(head):
        return "a Python pickle"
    for magic, what in _LIBRARIES:
        if head.startswith(magic):
            return what
    if head.startswith(b"\x93NUMPY") and b"|O" in head[:256]:
        return "a NumPy array of Python objects, which is a pickle"
    if head.startswith(b"PK\x03\x04"):
        return _in_archive(path)
    inner = _unpacked_head(head)
    return "a compressed Python pickle" if inner and is_pickle(inner) else None


def _in_archive(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()[:MAX_MEMBERS]
            for member in members:
                if member.filename.lower().endswith(_PICKLE_SUFFIXES):
                    return f"an archive that holds the pickle `{member.filename:.80}`"
                with archive.open(member) as stream:
                    head = stream.read(256)
                if is_pickle(head) or (head.startswith(b"\x93NUMPY") and b"|O" in head):
                    return f"an archive that holds a pickle, `{member.filename:.80}`"
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, ValueError, zlib.error, EOFError):
        return "an archive that cannot be looked into"
    return None


def _unpacked_head(head: bytes) -> bytes | None:
    """The first bytes inside a compressed file; bounded, since only the head is unpacked."""
    try:
        if head.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(31).decompress(head, 256)
        if head[:1] == b"\x78" and head[1:2] in (b"\x01", b"\x5e", b"\x9c", b"\xda"):
            return zlib.decompressobj().decompress(head, 256)
        if head.startswith(b"BZh"):
            return bz2.BZ2Decompressor().decompress(head, 256)
        if head.startswith(b"\xfd7zXZ"):
            return lzma.LZMADecompressor(memlimit=64 << 20).decompress(head, 256)
    except (zlib.error, OSError, EOFError, lzma.LZMAError, gzip.BadGzipFile, ValueError):
        return None
    return None
