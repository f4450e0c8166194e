"""The files of a package: found without following a link, refused when one reaches outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from seatrial.contract.source import Problem

__all__ = ["MAX_FILES", "file_problems", "package_files", "path_problem"]

MAX_FILES = 100_000


def package_files(root: Path) -> list[str]:
    """Relative paths of everything in the package that is not a directory, links included."""
    return [entry for entry, _ in _walk(root)]


def file_problems(root: Path) -> list[Problem]:
    """What is wrong with the kind of a file: links and devices are refused, whatever they point to."""
    problems = []
    for path, info in _walk(root):
        if stat.S_ISLNK(info.st_mode):
            text, cure = "is a symbolic link", "copy the file itself into the package"
        elif not stat.S_ISREG(info.st_mode):
            text, cure = "is neither a file nor a folder", "remove it"
        elif info.st_nlink > 1:
            text, cure = f"has {info.st_nlink} hard links", "copy it, so that no other name shares its bytes"
        else:
            continue
        problems.append(Problem("link", path, None, f"`{path}` {text}", cure))
    return problems


def path_problem(root: Path, text: str) -> str | None:
    """Why a path written in a file may not be used; None when it names a regular, single-link file inside."""
    parts = text.replace("\\", "/").split("/")
    if not text or "\x00" in text or text.startswith(("/", "\\", "~")) or ":" in parts[0] or ".." in parts:
        return f"`{text!s:.100}` leads outside the package"
    current = root
    for part in parts:
        current = current / part
        if current.is_symlink():
            return f"`{text:.100}` passes through a symbolic link"
    if not current.exists():
        return f"`{text:.100}` is not in the package"
    info = current.lstat()
    if not stat.S_ISREG(info.st_mode):
        return f"`{text:.100}` is not a regular file"
    if info.st_nlink > 1:
        return f"`{text:.100}` has {info.st_nlink} hard links"
    return None


def _walk(root: Path) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, os.stat_result]] = []
    folders = [""]
    while folders:
        folder = folders.pop()
        for path, entry in _entries(root, folder):
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                else:
                    found.append((path, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue  # gone since it was listed
            if len(found) > MAX_FILES:
                return sorted(found, key=lambda f: f[0])
    return sorted(found, key=lambda f: f[0])


def _entries(root: Path, folder: str) -> list[tuple[str, os.DirEntry[str]]]:
    """What a folder of the package holds, with paths relative to the package; nothing when it may not be read."""
    try:
        with os.scandir(root / folder) as entries:
            listed = [(f"{folder}/{entry.name}" if folder else entry.name, entry) for entry in entries]
    except (FileNotFoundError, PermissionError):
        return []
    return [(path, entry) for path, entry in listed if path != ".git"]
