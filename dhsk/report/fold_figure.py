"""Figure of the score of each fold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dhsk.report.axes import INK, LABEL_WIDTH, POINT, widened
from dhsk.report.drawing import drawing
from dhsk.report.markup import Html
from dhsk.report.words import capitalised, label, metric, penalty_text, shortened, spread
from dhsk.results.columns import Cell, Row
from dhsk.results.parts import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def folds(results: Results) -> Html:
    """Return the score of each fold, for the best cell of each family of kernels."""
    best: dict[str, Cell] = {}
    for cell in results.cells:
        best.setdefault(cell.kernel, cell)
    cells = list(best.values())
    with drawing("folds", 5.2, 0.5 * len(cells) + 0.1) as picture:
        names = [f"{shortened(label(c), LABEL_WIDTH)}, C = {penalty_text(c.C)}" for c in cells]
        rows = [(c, results.rows_of[c.point]) for c in cells]
        draw_folds(picture.axes, names, rows)
        picture.axes.set_xlabel(metric(results))
        said = "; ".join(f"{label(c)}: {spread(c)}" for c in cells)
        return picture.svg(
            f"{capitalised(metric(results))} by fold", f"Mean and standard deviation: {said}."
        )


def draw_folds(
    ax: "Axes", names: Sequence[str], rows: Sequence[tuple[Cell, Sequence[Row]]]
) -> None:
    """Draw named cells from top to bottom, a dot for each fold."""
    for number, (cell, folds) in enumerate(rows):
        _fold_row(ax, number, cell, folds)
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(len(rows) - 0.45, -0.55)
    ax.set_xlim(*widened(*ax.get_xlim()))
    ax.locator_params(axis="x", nbins=6)
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)


def _fold_row(ax: "Axes", row: int, cell: Cell, folds: Sequence[Row]) -> None:
    # Folds from top to bottom, so that equal scores do not hide each other.
    heights = row + np.linspace(-0.2, 0.2, len(folds)) if len(folds) > 1 else [row]
    ends = [cell.mean - cell.std, cell.mean + cell.std]
    ax.plot(ends, [row, row], color=POINT, linewidth=9, alpha=0.22, solid_capstyle="butt")
    ax.plot([cell.mean] * 2, [row - 0.28, row + 0.28], color=INK, linewidth=1.6)
    scores = [fold.score for fold in folds]
    ax.plot(scores, heights, "o", color=POINT, markersize=6, mec="white", mew=0.6)
    ax.text(1.02, row, spread(cell), transform=ax.get_yaxis_transform(), va="center")
