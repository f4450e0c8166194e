"""Everything a user can meet is documented: commands, settings, errors; links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seatrial import errors
from seatrial.cli.app import COMMANDS
from seatrial.settings import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("examples/**/README.md")])


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_a_guide_and_a_reference(command: str) -> None:
    assert (ROOT / "docs" / "guides" / f"{command}.md").is_file()
    assert f"## seatrial {command}" in (ROOT / "docs/reference/cli.md").read_text()


def test_every_setting_and_error_code_is_in_the_reference() -> None:
    settings = (ROOT / "docs/reference/settings.md").read_text()
    assert [n for n in SETTINGS if f"`{n}`" not in settings] == []
    page = (ROOT / "docs/reference/errors.md").read_text()
    classes = [getattr(errors, name) for name in errors.__all__]
    assert [c.code for c in classes if f"`{c.code}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_lead_to_files(page: Path) -> None:
    dead = []
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
            dead.append(target)
    assert dead == []


def test_the_readme_promises_what_the_makefile_has() -> None:
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`?make ([a-z-]+)", readme))
    assert {"demo", "test"} <= targets
    assert [t for t in targets if not re.search(rf"^{t}:", makefile, re.M)] == []
