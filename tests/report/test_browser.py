"""The page in a real browser, at desk and phone width, light and dark: nothing overflows, nothing is fetched."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.report.conftest import Rendered

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> str:
    if BROWSER is None:
        pytest.skip("SKIPPED: no Chromium on this machine, so the page was not looked at in a browser")
    return BROWSER


def run(browser: str, profile: Path, *flags: str) -> str:
    base = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
    done = subprocess.run([browser, *base, *flags], capture_output=True, text=True, timeout=90, check=True)
    return done.stdout


@pytest.mark.parametrize(("width", "scheme"), [(1200, 1), (1200, 0), (390, 1)])
def test_it_draws_in_both_schemes(
    browser: str, rendered: Rendered, tmp_path: Path, width: int, scheme: int
) -> None:
    picture = tmp_path / "page.png"
    address = (rendered.folder / "report.html").as_uri()
    flags = [
        f"--screenshot={picture}",
        f"--window-size={width},2000",
        f"--blink-settings=preferredColorScheme={scheme}",
    ]
    run(browser, tmp_path / "profile", *flags, address)
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (width, 2000)
    assert len(data) > 50_000, "an empty page compresses to a few kilobytes"


def test_nothing_is_wider_than_a_phone(browser: str, rendered: Rendered, tmp_path: Path) -> None:
    """The page itself says how wide it is and how wide its content, by a script added for the test."""
    probe = tmp_path / "probe.html"
    script = (
        "<script>var e=document.documentElement;document.title=e.scrollWidth+' of '+e.clientWidth</script>"
    )
    open_page = re.sub(r"<meta http-equiv=[^>]*>", "", rendered.text("html"), count=1)
    probe.write_text(open_page.replace("</body>", script + "</body>"), encoding="utf-8")
    dump = run(browser, tmp_path / "profile", "--window-size=390,2000", "--dump-dom", probe.as_uri())
    title = re.search(r"<title>(\d+) of (\d+)</title>", dump)
    assert title is not None, dump[:300]
    content, window = int(title[1]), int(title[2])
    assert window <= 560, f"a window of {window} pixels is no phone"
    assert content <= window, f"the content is {content} pixels wide in a window of {window}"
