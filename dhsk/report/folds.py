"""Section on the folds: the scores of each, and the differences that the decision compares."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dhsk.report.drawing import INK, POINT, drawing, frame, widened
from dhsk.report.markup import Html, Keyed, figure_row, listing, note, section
from dhsk.report.words import (
    capitalised,
    metric,
    penalty_cell,
    penalty_text,
    score,
    shortened,
    spread,
    unbroken,
)
from dhsk.results.columns import Cell, Row
from dhsk.results.decision import Comparison, Decision
from dhsk.results.parts import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAIRED = (
    "The bands overlap where some folds are harder than others for every kernel, so they do not "
    "say which kernel is better. The decision compares fold by fold: the best less the other on "
    "the same fold. Here is the mean of these differences, ± its standard error, corrected for "
    "training sets that overlap."
)


def folds(results: Results) -> Html:
    """Return the score of each fold, and paired differences from the best."""
    name = metric(results)
    words = (
        f"The best of each kernel{' and rank' if len(results.ranks) > 1 else ''}: a dot for each "
        "fold (first fold on top), a line at the mean, a band of one standard deviation of the "
        "dots (beside them mean ± standard deviation)."
    )
    if len(results.cells) > 1:
        words += (
            " All were scored on the same folds. The best was chosen by these very folds, so its "
            f"{name} on new samples tends to be a little lower."
        )
    title, shown = f"{capitalised(name)} by fold", figure_row([_compared(results)])
    return section(title, words, shown, *_paired(results), anchor="folds")


def _paired(results: Results) -> list[Html]:
    """Return what the decision compares; nothing of one family of kernels."""
    decision = results.decision
    if len(decision.compared) == 1:
        return []
    columns = {
        "kernel": lambda one: one.cell.kernel_words,
        "C": lambda one: penalty_cell(one.cell.C),
        "mean": lambda one: score(one.cell.mean),
        "below the best": lambda one: _below(decision, one),
        "verdict": lambda one: _verdict(decision, one),
    }
    shown = listing(_rivals(decision), columns, class_="numbers paired sortable")
    return [note(PAIRED), shown]


def _rivals(decision: Decision) -> list[Comparison]:
    """Return the best cell, then that of each other kernel and rank, by their means."""
    best = decision.best
    others = [one for one in decision.compared if one.cell != best]
    return [Comparison(0.0, 0.0, cell=best), *sorted(others, key=lambda one: one.difference)]


def _below(decision: Decision, one: Comparison) -> object:
    if one.cell == decision.best:
        return "–"
    return Keyed(unbroken(one.words.replace("-", "\N{MINUS SIGN}")), one.difference)


def _verdict(decision: Decision, one: Comparison) -> str:
    """Say what a difference means, by the rule of the decision."""
    if one.cell == decision.best:
        return "the best, and taken" if decision.taken == decision.best else "the best"
    if one.within:
        word = "taken" if one.cell == decision.taken else "as good"
        return f"{word}: within one standard error"
    if one.standard_error < 5e-5:  # shown as zero
        return "worse"
    return f"worse by {one.difference / one.standard_error:.1f} standard errors"


# Figures


class Dots(NamedTuple):
    """A row of a figure of folds."""

    shown: str
    """Its name, short."""
    name: str
    cell: Cell
    folds: Sequence[Row]


def _compared(results: Results) -> Html:
    """Return the score of each fold, for the cells that the decision compares."""
    best = [one.cell for one in _rivals(results.decision)]
    names = [f"{shortened(c.kernel_words)}, C = {penalty_text(c.C)}" for c in best]
    rows = [
        Dots(name, c.kernel_words, c, results.rows_of[c.point])
        for name, c in zip(names, best, strict=True)
    ]
    return fold_figure("folds", f"{capitalised(metric(results))} by fold", metric(results), rows)


def fold_figure(name: str, title: str, axis: str, rows: Sequence[Dots]) -> Html:
    """Return cells from top to bottom, a dot for each fold; `name` is one per page."""
    with drawing(name, 5.2, 0.5 * len(rows) + 0.1) as picture:
        ax = picture.axes
        for number, row in enumerate(rows):
            _fold_row(ax, number, row.cell, row.folds)
        ax.set_yticks(range(len(rows)), [row.shown for row in rows])
        ax.set_ylim(len(rows) - 0.45, -0.55)
        ax.set_xlim(*widened(*ax.get_xlim()))
        ax.locator_params(axis="x", nbins=6)
        ax.tick_params(axis="y", length=0)
        frame(ax, axis, lines="x")
        said = "; ".join(f"{row.name}: {spread(row.cell)}" for row in rows)
        return picture.svg(title, f"Mean and standard deviation: {said}.")


def _fold_row(ax: "Axes", row: int, cell: Cell, folds: Sequence[Row]) -> None:
    # Folds from top to bottom, so that equal scores do not hide each other.
    heights = row + np.linspace(-0.2, 0.2, len(folds)) if len(folds) > 1 else [row]
    ends = [cell.mean - cell.std, cell.mean + cell.std]
    ax.plot(ends, [row, row], color=POINT, linewidth=9, alpha=0.22, solid_capstyle="butt")
    ax.plot([cell.mean] * 2, [row - 0.28, row + 0.28], color=INK, linewidth=1.6)
    scores = [fold.score for fold in folds]
    ax.plot(scores, heights, "o", color=POINT, markersize=6, mec="white", mew=0.6)
    ax.text(1.02, row, spread(cell), transform=ax.get_yaxis_transform(), va="center")
