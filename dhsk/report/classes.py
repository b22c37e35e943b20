"""Sections on the classes: precision, recall and confusion, over folds and on held-out samples."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.report.drawing import (
    GRID,
    INK,
    POINT,
    SHARES,
    SHARES_POWER,
    colours_of,
    drawing,
    frame,
    legend,
    mosaic,
)
from dhsk.report.markup import Html, colour_scale, figure_row, joined, listing, section
from dhsk.report.words import (
    capitalised,
    count_of,
    duration,
    mean_and_std,
    metric,
    score,
    short_count,
    shortened,
    unbroken,
    whole,
)
from dhsk.results.parts import FewSamples, Results

Counts = NDArray[np.int64]
"""Confusion matrix, (classes, classes)."""

MOST = 60
"""Classes of which each has its bars."""

OTHER = "#e08214"


def classes(results: Results) -> Html:
    """Return precision and recall of every class, over the folds."""
    words = "The taken candidate; each sample is predicted by the fold that did not train on it."
    words += _few_samples(results)
    counts = np.array(results.confusion)
    shown = _bars(results, counts, "bars"), _table(results, counts, results.class_counts)
    return section("Class by class", words, *shown, anchor="classes")


def _few_samples(results: Results) -> str:
    """Say which classes some folds lack in training, and which were left out."""
    words = ""
    if results.untrained_classes:
        of = results.folds.n
        listed = ", ".join(f"{_few(c)} on {c.folds} of {of}" for c in results.untrained_classes)
        words += f" Folds trained without a class count its samples as wrong: {listed}."
    if results.dropped_classes:
        listed = ", ".join(map(_few, results.dropped_classes))
        words += f" Left out for having too few samples: {listed}."
    return words


def _few(one: FewSamples) -> str:
    return f"{one.name} ({count_of(one.samples, 'sample')})"


def confusion(results: Results) -> Html:
    """Return the confusion matrix, over the folds."""
    words = (
        "The taken candidate again. Rows are true classes, columns predicted ones. Each cell holds "
        "the count and its share of the true class; empty cells are zero."
    )
    matrix = _matrix(results, np.array(results.confusion), "Confusion matrix")
    return section("Confusion matrix", words, matrix, anchor="confusion")


def held_out(results: Results) -> Html:
    """Return score and confusion on the held-out samples; empty if there are none."""
    test = results.test
    if test is None:
        return Html()
    words = (
        f"{capitalised(metric(results))} {score(test.score)} on {count_of(test.n, 'sample')} that "
        "took no part in the choice of kernel and C, in "
        f"{duration(test.seconds)}; the folds gave {mean_and_std(results.best)}. Below, every "
        "class of these samples, and the confusion matrix."
    )
    counts = np.array(test.confusion)
    shown = (
        _bars(results, counts, "bars of the test"),
        _table(results, counts, counts.sum(axis=1).tolist()),
        _matrix(results, counts, "Confusion matrix of the held-out test"),
    )
    return section("Held-out test", words, *shown, anchor="test")


def _table(results: Results, counts: Counts, sizes: Sequence[int]) -> Html:
    names, right = results.class_names, np.diagonal(counts).tolist()
    truth, found = counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
    numbered = _is_numbered(results)
    columns = {
        "class": lambda k: f"{k + 1}. {names[k]}" if numbered else names[k],
        "samples": lambda k: whole(sizes[k]),
        "precision": lambda k: _ratio(right[k], found[k]),
        "recall": lambda k: _ratio(right[k], truth[k]),
        "F1": lambda k: _ratio(2 * right[k], found[k] + truth[k]),
        "most often taken for": lambda k: _most_mistaken(names, k, counts[k]),
    }
    return listing(range(len(names)), columns, class_="numbers classes sortable")


def recall_of(counts: Counts) -> Floats:
    """Return the share of each class that was found, (classes,); 0 of a class without samples."""
    return np.asarray(np.diagonal(counts) / np.maximum(counts.sum(axis=1), 1))


def _ratio(part: int, of: int) -> str:
    return score(part / of) if of else "–"


def _most_mistaken(names: tuple[str, ...], k: int, counts: Counts) -> str:
    others = counts.copy()
    others[k] = 0
    most = int(others.argmax())
    return f"{names[most]} ({whole(others[most])})" if others[most] else "–"


# Figures


def _bars(results: Results, counts: Counts, name: str) -> Html:
    """Return two bars for each class, or nothing for very many; `name` is one per page."""
    n = len(counts)
    if n > MOST:
        return Html()
    precision, recall = recall_of(counts.T), recall_of(counts)
    with drawing(name, 4.6, 0.36 * n + 0.1) as picture:
        ax = picture.axes
        places = np.arange(n)
        ax.barh(places - 0.17, precision, 0.3, color=POINT, label="precision")
        ax.barh(places + 0.17, recall, 0.3, color=OTHER, label="recall")
        for values, shift in ((precision, -0.17), (recall, 0.17)):
            for place, value in zip(places, values, strict=True):
                ax.text(
                    1.02, place + shift, score(value), va="center", fontsize=7, color=INK,
                    transform=ax.get_yaxis_transform(),
                )  # fmt: skip
        ax.set_yticks(places, [shortened(one) for one in results.class_names])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(n - 0.5, -0.5)
        ax.set_xlim(0, 1)
        frame(ax, "share of the samples", lines="x")
        legend(ax, 1.15)
        worst = int(recall.argmin())
        said = f"Lowest recall: {results.class_names[worst]}, {score(recall[worst])}."
        return figure_row([picture.svg("Precision and recall of every class", said)])


def _matrix(results: Results, counts: Counts, title: str) -> Html:
    """Return a confusion matrix: counts, and their shares of the true class in percent."""
    colours = colours_of(SHARES, SHARES_POWER)
    scale = colour_scale(colours, unbroken("0 %"), f"{unbroken('100 %')} of the true class")
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size, side, width = (7.0, 0.34, 24) if len(counts) > 12 else (9.0, 0.62, 48)
    texts = [
        [f"{short_count(n)}\n{_percent(s)}" if n else "" for n, s in zip(*row, strict=True)]
        for row in zip(counts.tolist(), shares.tolist(), strict=True)
    ]
    rows = columns = [shortened(name, width) for name in results.class_names]
    if _is_numbered(results):
        columns = [str(k) for k in range(1, len(rows) + 1)]
        rows = [f"{row}   {k}" for row, k in zip(rows, columns, strict=True)]
    with drawing(title, side * len(counts), side * len(counts)) as picture:
        ax = picture.axes
        shades = np.where(counts > 0, shares, np.nan) ** SHARES_POWER
        mosaic(ax, shades, texts, (rows, columns), SHARES, edges=GRID, size=size)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        right = f"{whole(np.trace(counts))} of {whole(counts.sum())}"
        shown = picture.svg(title, f"{right} samples lie on the diagonal.")
    return joined([scale, figure_row([shown])])


def _is_numbered(results: Results) -> bool:
    """Whether the names are too long to stand under a column, so that numbers do."""
    return max(len(name) for name in results.class_names) > (5 if len(results.classes) > 12 else 7)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.005 else "<1%"
