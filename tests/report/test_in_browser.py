"""Pages in headless Chromium: nothing is asked for, nothing overflows, numbers stay whole."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dhsk.report import write_report
from dhsk.results.parts import Results
from dhsk.results.schema import read_results
from tests.browser import CHROMIUM, WHY_NOT, Browser

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)]

PHONE = 380
"""Width of a narrow phone in CSS pixels."""

BROKEN_NUMBERS = r"""
(() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const broken = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("svg, pre") || !node.parentElement.offsetParent) continue;
    for (const number of node.data.matchAll(/[\u2212-]?\d[\d.,]*(e[+-]?\d+)?( ± [\d.]+)?/g)) {
      const range = document.createRange();
      range.setStart(node, number.index);
      range.setEnd(node, number.index + number[0].length);
      const lines = new Set(Array.from(range.getClientRects(), (box) => Math.round(box.top)));
      if (lines.size > 1) broken.push(number[0]);
    }
  }
  return broken;
})()
"""
"""Numbers of which two parts stand on two lines."""

NARROW = r"""
Array.from(document.querySelectorAll("main td, main th"))
  .filter((cell) => cell.textContent.trim().length > 3 && cell.offsetParent)
  .filter((cell) => cell.clientWidth < 30).map((cell) => cell.textContent)
"""
"""Cells of tables that are a letter or two wide."""

OUTSIDE = r"""
Array.from(document.querySelectorAll("main :is(p, h1, h2, li, dd, td, th)"))
  .filter((one) => one.offsetParent && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.textContent.slice(0, 60))
"""
"""Elements whose text is wider than they are."""


HINTS = r"""
Array.from(document.querySelectorAll(".figures figure"), (one) => [
  one.scrollWidth > one.clientWidth, parseFloat(getComputedStyle(one, "::before").maxHeight) > 0
])
"""
"""Whether each figure is cut at the right, and whether it says so."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests here."""
    with Browser() as started:
        yield started


def long_search(results: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """Return results with large C, a search, long names, and fits that did not converge."""
    names = ("heat s=0.5", "heat s=1.25", "heat s=2", "smoothed alpha=0.0012 s=12.5")
    names_of_classes = ["sci.med", "comp.os.ms-windows.misc", "a" * 40]
    data = results(names, C=(0.125, 22000.0, 38479.8125, 1.5e12), classes=names_of_classes)
    for row in (*data["summary"], *data["rows"]):
        row["C_scaled"] = row["C"] / 7.5
        row["converged"] = row["C"] < 1e12
        score = "score" if "fold" in row else "mean"
        row[score] = 0.9281 - 0.01 / (1 + row[score] % 7)
    best = max(data["summary"], key=lambda cell: cell["mean"])
    choice = {"rule": "best", "left_out": 3}
    stage = {"time_scales": [0.5, 1.25, 2.0], "C": [0.125, 22000.0, 38479.8125, 1.5e12],
             "C_scaled": [], "best": best, "why": "between 1.25 and its neighbours"}  # fmt: skip
    return data | {"best": best, "choice": choice, "search": [stage], "search_ended": "ended: why"}


@pytest.fixture(scope="module")
def pages(results: Any, low_rank: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of an exact search and of low rank."""
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for name, data in {"search": long_search(results), "rank": low_rank()}.items():
        found[name] = folder / f"{name}.html"
        write_report(read_results(Results, data), found[name])
    return found


@pytest.mark.parametrize("name", ["search", "rank"])
@pytest.mark.parametrize("width", [PHONE, 1280])
def test_a_page_is_readable_at_every_width(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    """No error, no request, no sideways scrolling, no broken number, no column of one letter."""
    opened = browser.open(pages[name], width)
    assert opened.complaints == []
    assert opened.width <= width
    assert browser.value(BROKEN_NUMBERS) == []
    assert browser.value(NARROW) == []
    assert browser.value(OUTSIDE) == []


@pytest.mark.parametrize(("width", "cut"), [(PHONE, True), (390, True), (1280, False)])
def test_figures_that_are_cut_say_that_they_scroll(
    browser: Browser, pages: dict[str, Path], width: int, cut: bool
) -> None:
    """Phones show no scroll bars; figures that fit say nothing."""
    browser.open(pages["search"], width)
    found = browser.value(HINTS)
    assert [wide for wide, _ in found] == [said for _, said in found]
    assert any(wide for wide, _ in found) == cut


def test_dark_and_paper_are_sound_too(browser: Browser, pages: dict[str, Path]) -> None:
    """Figures follow the page: light words on dark, dark words on paper; nothing is cut off."""
    ink = "getComputedStyle(document.querySelector('figure svg text')).fill"
    assert browser.open(pages["search"], dark=True).complaints == []
    assert browser.value(ink) == "rgb(230, 233, 238)"
    opened = browser.open(pages["search"], 700, paper=True)
    assert opened.complaints == []
    assert opened.width <= 700
    assert browser.value(ink) == "rgb(0, 0, 0)"
    assert browser.value("document.querySelector('.scroll').scrollHeight") == browser.value(
        "document.querySelector('.scroll').clientHeight"
    )


def test_tables_sort_by_a_click(browser: Browser, pages: dict[str, Path]) -> None:
    """Numbers by their value, not their digits, both ways; the best cell comes back."""
    browser.open(pages["search"])
    column = "Array.from(document.querySelectorAll('.cells td:nth-child(2)'), (c) => c.textContent)"
    click = "document.querySelector('.cells th:nth-child(2) button').click(), true"
    before = browser.value(column)
    browser.value(click)
    rising = ["0.125"] * 4 + ["22000"] * 4 + ["38480"] * 4 + ["1.5e12"] * 4
    assert before != rising
    assert browser.value(column) == rising
    browser.value(click)
    assert browser.value(column) == rising[::-1]
    assert browser.value("document.querySelector('.cells [aria-sort]').ariaSort") == "descending"


def test_without_scripts_nothing_is_missing(pages: dict[str, Path]) -> None:
    """All words are in the file itself: the script adds only what sorts."""
    source = pages["search"].read_text()
    script = source.split("<script>")[1]
    assert "button" not in re.sub("<style>.*?</style>", "", source.split("<script>")[0], flags=re.S)
    assert "innerHTML" not in script
    assert source.count('<th scope="row">smoothed alpha=0.0012 s=12.5') >= 4
