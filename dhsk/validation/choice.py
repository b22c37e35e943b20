"""Choice of the best cell of a grid."""

import math
from collections.abc import Sequence

from dhsk.results.columns import Cell
from dhsk.results.parts import HIGHEST, SIMPLEST, ChoiceOfBest


def choose(summary: Sequence[Cell], n_folds: int, *, simplest: bool) -> tuple[Cell, ChoiceOfBest]:
    """Choose among the cells whose fits converged, or among all if none did.

    `simplest` takes, of the cells whose mean lies within one standard error of the highest, the one
    with the fewest support vectors (of low rank: features), and of equals the highest mean [1]_.
    Otherwise the highest mean wins, of equals the first.

    References
    ----------
    .. [1] L. Breiman, J. Friedman, C. J. Stone and R. A. Olshen, "Classification and Regression
       Trees" (1984), section 3.4.3.
    """
    rivals = [cell for cell in summary if cell.converged] or list(summary)
    highest = max(rivals, key=lambda cell: cell.mean)
    # "std" is over the folds without Bessel's correction.
    error = highest.std / math.sqrt(n_folds - 1) if n_folds > 1 else 0.0
    within = [cell for cell in rivals if cell.mean >= highest.mean - error]
    fewest = min(within, key=lambda cell: (cell.size, -cell.mean))
    rule, best = (SIMPLEST, fewest) if simplest else (HIGHEST, highest)
    return best, ChoiceOfBest(rule, highest, error, len(within), len(summary) - len(rivals))
