"""Sections on the classes: precision, recall and confusion, over folds and on held-out samples."""

import numpy as np
from numpy.typing import NDArray

from dhsk.report import class_figure, confusion_figure
from dhsk.report.markup import Html, colour_scale, figure_row, joined, section, table
from dhsk.report.mosaic import SHARES, SHARES_POWER, colours_of
from dhsk.report.words import (
    capitalised,
    count_of,
    duration,
    metric,
    score,
    spread,
    unbroken,
    whole,
)
from dhsk.results.parts import Results


def classes(results: Results) -> Html:
    """Return precision and recall of every class, over the folds."""
    note = "Best candidate, each sample predicted by the fold that did not train on it."
    note += _few_samples(results)
    sizes = np.array(results.class_counts)
    counts = np.array(results.confusion)
    shown = [*_bars(results, counts, "bars"), _table(results, counts, sizes)]
    return section("Class by class", note, *shown, anchor="classes")


def _few_samples(results: Results) -> str:
    """Say which classes some folds lack in training, and which were left out."""
    note = ""
    if results.untrained_classes:
        listed = ", ".join(
            f"{c.name} ({count_of(c.samples, 'sample')}) on {c.folds} of {results.folds.n}"
            for c in results.untrained_classes
        )
        note += f" Folds trained without a class count its samples as wrong: {listed}."
    if results.dropped_classes:
        listed = ", ".join(
            f"{c.name} ({count_of(c.samples, 'sample')})" for c in results.dropped_classes
        )
        note += f" Left out for having too few samples: {listed}."
    return note


def confusion(results: Results) -> Html:
    """Return the confusion matrix, over the folds."""
    note = (
        "Best candidate again. Rows are true classes, columns predicted ones. Each cell holds the "
        "count and its share of the true class; empty cells are zero."
    )
    matrix = _matrix(results, np.array(results.confusion), "Confusion matrix")
    return section("What was taken for what", note, matrix, anchor="confusion")


def held_out(results: Results) -> Html:
    """Return score and confusion on the held-out samples; empty if there are none."""
    test = results.test
    if test is None:
        return Html()
    note = (
        f"{capitalised(metric(results))} {score(test.score)} on {count_of(test.n, 'sample')} that "
        "took no part in the choice of kernel and C, in "
        f"{duration(test.seconds)}; the folds gave {spread(results.best)}. Below, every class of "
        "these samples, and what was taken for what."
    )
    counts = np.array(test.confusion)
    return section(
        "Held-out test",
        note,
        *_bars(results, counts, "bars of the test"),
        _table(results, counts, counts.sum(axis=1)),
        _matrix(results, counts, "Confusion matrix of the held-out test"),
        anchor="test",
    )


def _table(results: Results, counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Html:
    right = np.diagonal(counts)
    truth, found = counts.sum(axis=1), counts.sum(axis=0)
    rows = [
        (
            f"{k + 1}. {name}" if confusion_figure.is_numbered(results) else name,
            whole(sizes[k]),
            _ratio(right[k], found[k]),
            _ratio(right[k], truth[k]),
            _ratio(2 * right[k], found[k] + truth[k]),
            _most_mistaken(results.class_names, k, counts[k]),
        )
        for k, name in enumerate(results.class_names)
    ]
    head = ("class", "samples", "precision", "recall", "F1", "most often taken for")
    return table(head, rows, class_="numbers classes sortable")


def _bars(results: Results, counts: NDArray[np.int64], name: str) -> list[Html]:
    found = class_figure.bars(results, counts, name)
    return [figure_row(found)] if found else []


def _ratio(part: int, of: int) -> str:
    return score(part / of) if of else "–"


def _most_mistaken(names: tuple[str, ...], k: int, counts: NDArray[np.int64]) -> str:
    others = counts.copy()
    others[k] = 0
    most = int(others.argmax())
    return f"{names[most]} ({whole(others[most])})" if others[most] else "–"


def _matrix(results: Results, counts: NDArray[np.int64], title: str) -> Html:
    colours = colours_of(SHARES, SHARES_POWER)
    scale = colour_scale(colours, unbroken("0 %"), f"{unbroken('100 %')} of the true class")
    return joined([scale, figure_row([confusion_figure.confusion(results, counts, title)])])
