"""The page of a run that goes on: when it is written, and what it says."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.progress import Progress
from dhsk.report import running, write_report
from dhsk.report.running import LARGEST_COST, REFRESH_SECONDS, RunningPage, page_of_run
from dhsk.results.parts import Results
from dhsk.results.schema import read_results
from tests.browser import CHROMIUM, WHY_NOT, Browser

EVENT = Progress("fits", 4, 10, what="heat s=1 (2 of 3)", share=0.41, left=700.0, best=0.784)

REFRESH = f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">'


def test_it_is_written_seldom_and_of_news_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """After half a minute, when more is finished, and within its share of the time of the run."""
    now, written, heard = [0.0], list[float](), list[Progress]()
    takes = 2.0

    def write(*_: Any) -> None:
        written.append(now[0])
        now[0] += takes

    monkeypatch.setattr(running, "monotonic", lambda: now[0])
    monkeypatch.setattr(running, "write_running", write)
    page = RunningPage(Path("page.html"), "title", heard.append)

    def at(second: float, *, news: bool) -> None:
        now[0] = second
        if news:
            page.found(lambda: None)  # type: ignore[arg-type,return-value]
        page(EVENT)

    at(29.0, news=True)
    assert not written
    at(30.0, news=False)  # what was finished before
    at(30.0 + takes + takes / LARGEST_COST, news=False)
    assert written == [30.0]
    due = 30.0 + takes + takes / LARGEST_COST
    at(due - 1.0, news=True)
    assert written == [30.0]  # within its share of the time
    at(due, news=False)
    assert written == [30.0, due]
    assert len(heard) == 5


def test_a_page_that_cannot_be_written_stops_no_run(
    results: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has a table, and writes its results at the end."""
    monkeypatch.setattr(running, "REFRESH_SECONDS", 0)
    found = read_results(Results, results())
    page = RunningPage(tmp_path / "gone" / "page.html", "title", lambda _: None)
    page.found(lambda: found)
    page(EVENT)


def test_it_says_what_runs_and_what_is_finished(
    results: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """It loads itself again; the page of the results, in its place, does not."""
    found, path = read_results(Results, results()), tmp_path / "page.html"
    running.write_running(found, EVENT, path, "Cross-validation of x")
    assert REFRESH in path.read_text()
    text = path.read_text()
    assert "This page is of a run that goes on, as of 20" in text
    assert "heat s=1 (2 of 3) · 41 % · about 12 min left · best kernel 0.784" in text
    assert text.count("<svg") >= 1
    for cell in found.cells:
        assert f">{cell.kernel_words}</th>" in text
    write_report(found, path)
    assert 'http-equiv="refresh"' not in path.read_text()


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
@pytest.mark.slow
def test_a_browser_shows_the_page_of_the_results_in_its_place(
    results: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a server, and without being asked."""
    monkeypatch.setattr(running, "REFRESH_SECONDS", 1)
    found, path = read_results(Results, results()), tmp_path / "page.html"
    running.write_running(found, EVENT, path, "Cross-validation of x")
    with Browser() as browser:
        opened = browser.open(path)
        assert opened.complaints == []
        assert "a run that goes on" in opened.text
        write_report(found, path)
        while "a run that goes on" in browser.value("document.body.innerText"):
            browser.wait_for_load()


def kinds(counts: Any) -> dict[str, Callable[..., dhsk.CvResult]]:
    """Grids of each engine."""
    X, y = counts(90, 12), np.repeat([0, 1, 2], 30)
    grid = partial(dhsk.cross_validate, y=y, cv=3, C=[1.0, 10.0])
    return {
        "exact": partial(grid, X, time_scale=[0.5, 1.0], kernels="cosine"),
        "weighted": partial(
            grid, csr_array(X), kernels="cosine", sphere_map="auto", C="auto", time_scale=[0.5]
        ),
        "low rank": partial(grid, X, kernels="cosine", low_rank=dhsk.LowRank([5, 10])),
    }


@pytest.mark.parametrize("kind", ["exact", "weighted", "low rank"])
def test_what_is_finished_is_what_the_results_have(
    kind: str, counts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page has more of the candidates of the results, with their scores, and the last all."""
    monkeypatch.setattr(running, "REFRESH_SECONDS", 0)
    monkeypatch.setattr(running, "LARGEST_COST", np.inf)
    seen: list[Results] = []
    monkeypatch.setattr(running, "write_running", lambda results, *_: seen.append(results))
    with page_of_run(tmp_path / "page.html", "title", lambda _: None) as page:
        result = kinds(counts)[kind](progress=page)
        page(EVENT)
    whole = {(c.label, c.rank, c.C, c.C_scaled): (c.mean, c.std) for c in result.summary}
    sizes = [len(found.summary) for found in seen]
    assert sizes == sorted(sizes)
    assert 0 < sizes[0] < sizes[-1] == len(whole)
    for found in seen:
        for c in found.summary:
            assert whole[c.label, c.rank, c.C, c.C_scaled] == (c.mean, c.std)
        assert found.best.mean == max(mean for mean in (c.mean for c in found.summary))
