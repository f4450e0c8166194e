"""Fixtures shared by all rooms: where the sample folder lies, and temporary packages."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The sample folder beside the repository. Tests that use it carry the mark `shared`."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"SKIPPED: the sample folder {folder.name} is not beside the repository")
    return folder
