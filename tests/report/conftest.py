"""Pages of results, and a reader of them."""

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dhsk.report import write_report
from dhsk.results.parts import Results
from dhsk.results.schema import read_results

VOID = {"meta"}


class Page(HTMLParser):
    """Read a page and refuse tags that do not match."""

    def __init__(self, text: str) -> None:
        """Read the whole text."""
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element and its attributes."""
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element that closes itself, as SVG has them."""
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep what a reader sees; the contents repeat the headings."""
        if self.open and {"style", "script", "nav"}.isdisjoint(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        """The words of the page with single blanks."""
        return " ".join(" ".join(self.words).split())

    def values(self, *names: str) -> list[str]:
        """Return the values of all attributes of these names."""
        return [value for name, value in self.attributes if name in names]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], str]:
    """Writer of the report, which returns its text; of the same data in the same order, once."""
    known: dict[str, str] = {}

    def write(data: dict[str, Any]) -> str:
        key = json.dumps(data)
        if key not in known:
            path = tmp_path_factory.mktemp("report") / "report.html"
            write_report(read_results(Results, data), path)
            known[key] = path.read_text(encoding="utf-8")
        return known[key]

    return write


@pytest.fixture(scope="session")
def page_of(written: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any]], Page]:
    """Writer of the report, which returns it parsed."""
    return lambda data: Page(written(data))


@pytest.fixture(scope="session")
def parsed() -> Callable[[Path], Page]:
    """Reader of a page in a file."""
    return lambda path: Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def source(results: Any, written: Callable[[dict[str, Any]], str]) -> str:
    """The page of five kernels, four C and two classes."""
    heat = ("heat s=0.7", "heat s=1", "heat s=1.4")
    return written(results((*heat, "cosine", "gaussian sigma=2")))


@pytest.fixture(scope="session")
def page(source: str) -> Page:
    """The same page, parsed."""
    return Page(source)
