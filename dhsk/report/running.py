"""The page of a run that goes on: what is finished, what runs, and how much is left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from time import monotonic
from typing import Final, TypeAlias

from dhsk.bars import event_words
from dhsk.errors import DhskError
from dhsk.objects.places import Place
from dhsk.progress import OnProgress, Progress
from dhsk.report.cells import brief_cells
from dhsk.report.document import write_page
from dhsk.report.grid import heat_maps
from dhsk.report.markup import figure_row, section, tag
from dhsk.report.words import folds_of, metric
from dhsk.results.parts import Results

REFRESH_SECONDS: Final = 30
"""Least time between two versions of the page, after which a browser loads it again."""

LARGEST_COST: Final = 0.005
"""Largest share of the time after a page that writing it took: of a run of over a minute, all pages
take less than a hundredth."""

SoFar: TypeAlias = Callable[[], Results]
"""Gives the results of all candidates that are finished; they have no plan, and no mistakes."""


class RunningPage:
    """Passes progress on, and rewrites a page once more candidates are finished.

    Parameters
    ----------
    path
        The file; the page of the results replaces it at the end.
    title
        Its heading.
    progress
        Receives the events.
    """

    def __init__(self, path: Place, title: str, progress: OnProgress) -> None:
        self._path, self._title, self._progress = path, title, progress
        self._next = monotonic() + REFRESH_SECONDS
        self._found: SoFar | None = None

    def found(self, so_far: SoFar) -> None:
        """Take that more is finished."""
        self._found = so_far

    def __call__(self, event: Progress) -> None:
        """Pass an event on; write the page if it is time for that."""
        self._progress(event)
        begin = monotonic()
        if self._found is None or begin < self._next:
            return
        so_far, self._found = self._found, None
        with suppress(DhskError, OSError):  # a page that cannot be written stops no run
            write_running(so_far(), event, self._path, self._title)
        end = monotonic()
        self._next = end + max(REFRESH_SECONDS, (end - begin) / LARGEST_COST)


_page: Final[ContextVar[RunningPage | None]] = ContextVar("running_page", default=None)


@contextmanager
def page_of_run(path: Place, title: str, progress: OnProgress) -> Iterator[RunningPage]:
    """Keep a page of the cross-validation in a ``with`` block; see `RunningPage`."""
    page = RunningPage(path, title, progress)
    token = _page.set(page)
    try:
        yield page
    finally:
        _page.reset(token)


def tell_found(so_far: SoFar) -> None:
    """Tell the page of the run, if there is one, that more candidates are finished."""
    page = _page.get()
    if page is not None:
        page.found(so_far)


def write_running(results: Results, event: Progress, path: Place, title: str) -> None:
    """Write the page of a run that goes on, of what is finished and its last event."""
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    head = tag(
        "header",
        tag("h1", title),
        tag("p", f"This page is of a run that goes on, as of {now}.", class_="lede"),
        tag("p", event_words(event, event.left), class_="decision"),
        tag(
            "p",
            f"It is rewritten when more is finished, at most every {REFRESH_SECONDS} seconds, and "
            "then shown by itself. If that time is long ago, the run was stopped: the same "
            "command goes on from what is finished.",
        ),
    )  # fmt: skip
    words = (
        f"Mean {metric(results)} over {folds_of(results)}; the outlined candidate is the best, and "
        "those with a dot are within one standard error of it."
    )
    shown = figure_row(heat_maps(results)), brief_cells(results, results.cells)
    write_page(
        path, title, head, [section("Finished so far", words, *shown, anchor="grid")],
        refresh=REFRESH_SECONDS,
    )  # fmt: skip
