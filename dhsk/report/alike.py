"""Cells that the folds cannot tell from the best, and what to say of them."""

from dhsk.report.words import count_of
from dhsk.results.columns import Cell
from dhsk.results.decision import comparisons
from dhsk.results.parts import Results

STEPS = 32
"""Shades of a colour scale that an eye can tell apart, about."""


def cells_alike(results: Results) -> tuple[Cell, ...]:
    """Return the converged cells within one standard error of the best, as the decision has it.

    It is that of differences paired over the folds.
    """
    compared = comparisons(results.summary, results.rows_of, results.fold_sizes)
    return tuple(one.cell for one in compared if one.within and one.cell.converged)


def alike_words(results: Results, low: float, high: float) -> str:
    """Say how many cells are as good as the best, and what a colour between `low`, `high` shows."""
    alike = cells_alike(results)
    if len(alike) < 2:
        return ""
    means = [cell.mean for cell in alike]
    words = (
        f"The {count_of(len(alike), 'candidate')} with a dot are within one standard error of the "
        "highest mean, that of differences paired over the folds as in the decision: these folds "
        "cannot tell them apart"
    )
    apart = max(means) - min(means)
    if apart == 0:
        return f"{words}, and their means are equal."
    if apart < (high - low) / STEPS:
        return f"{words}. Their means differ by {apart:.2g}, too little for a colour to show."
    return f"{words}. Their means differ by up to {apart:.2g}."
