"""Figure of a confusion matrix."""

import numpy as np
from numpy.typing import NDArray

from dhsk.report.axes import GRID
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.mosaic import SHARES, SHARES_POWER, mosaic, name_ticks
from dhsk.report.words import short_count, shortened, whole
from dhsk.results.parts import Results


def confusion(results: Results, counts: NDArray[np.int64], title: str) -> Html:
    """Return a confusion matrix: counts, and their shares of the true class in percent."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size, side, width = (7.0, 0.34, 24) if len(counts) > 12 else (9.0, 0.62, 48)
    texts = [
        [f"{short_count(n)}\n{_percent(s)}" if n else "" for n, s in zip(*row, strict=True)]
        for row in zip(counts.tolist(), shares.tolist(), strict=True)
    ]
    rows = columns = [shortened(name, width) for name in results.class_names]
    if is_numbered(results):
        columns = [str(k) for k in range(1, len(rows) + 1)]
        rows = [f"{row}   {k}" for row, k in zip(rows, columns, strict=True)]
    with drawing(title, side * len(counts), side * len(counts)) as picture:
        ax = picture.axes
        shades = np.where(counts > 0, shares, np.nan) ** SHARES_POWER
        mosaic(ax, shades, texts, SHARES, GRID, size)
        name_ticks(ax, rows, columns)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        right = f"{whole(np.trace(counts))} of {whole(counts.sum())}"
        return picture.svg(title, f"{right} samples lie on the diagonal.")


def is_numbered(results: Results) -> bool:
    """Whether the names are too long to stand under a column, so that numbers do."""
    return max(len(name) for name in results.class_names) > (5 if len(results.classes) > 12 else 7)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.005 else "<1%"
