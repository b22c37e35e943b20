"""The browser of the tests sees what a page does wrong, and nothing in a sound page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, WHY_NOT, Browser

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests here."""
    with Browser() as started:
        yield started


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<script>console.error('wrong')</script>", "wrong"),
        ("<script>absent.call()</script>", "absent is not defined"),
        ("<script src='missing.js'></script>", "missing.js"),
        ("<img src='http://127.0.0.1:9/picture.png'>", "http://127.0.0.1:9/picture.png"),
        ("<script>fetch('http://127.0.0.1:9/data')</script>", "http://127.0.0.1:9/data"),
        ("<style>@import 'http://127.0.0.1:9/font.css'</style>", "http://127.0.0.1:9/font.css"),
    ],
)
def test_faults_are_seen(browser: Browser, tmp_path: Path, body: str, said: str) -> None:
    """Errors, missing files and requests, of scripts, pictures and styles."""
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>a</title><body>{body}")
    assert any(said in complaint for complaint in browser.open(page).complaints)


def test_a_sound_page_has_no_complaints(browser: Browser, tmp_path: Path) -> None:
    """Nor has the one after a faulty one; text and width are those of the page."""
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>a</title><p style='width: 700px'>sound</p>")
    opened = browser.open(page, width=400)
    assert opened.complaints == []
    assert opened.text == "sound"
    assert opened.width > 700
    assert browser.open(page).width == 1280
    browser.screenshot(page, tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
