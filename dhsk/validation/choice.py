"""Which cell of a grid wins."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

HIGHEST: Final = "highest mean"
SIMPLEST: Final = "one standard error"


def choose(
    summary: Sequence[Mapping[str, Any]], n_folds: int, *, simplest: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Choose among the cells whose fits converged, or among all if none did.

    Parameters
    ----------
    summary
        One row per cell, see `dhsk.validation.result.summarise`.
    n_folds
        Number of folds.
    simplest
        Take, of the cells whose mean lies within one standard error of the highest, that with the
        fewest support vectors, and of those with as many the one with the highest mean [1]_. Else
        the highest mean; of equals the first.

    Returns
    -------
    dict
        The row of the winner.
    dict
        How it was chosen: the rule, the cell of the highest mean, its standard error over the
        folds, how many cells lie within, and how many were left out as not converged.

    References
    ----------
    .. [1] L. Breiman, J. Friedman, C. J. Stone and R. A. Olshen, "Classification and Regression
       Trees" (1984), section 3.4.3.
    """
    converged = [row for row in summary if row["converged"]]
    rivals = converged or list(summary)
    highest = max(rivals, key=lambda row: row["mean"])
    # "std" is over the folds without Bessel's correction.
    error = highest["std"] / math.sqrt(n_folds - 1) if n_folds > 1 else 0.0
    within = [row for row in rivals if row["mean"] >= highest["mean"] - error]
    fewest = min(within, key=lambda row: (row["n_support"], -row["mean"]))
    named = ("label", "C", "C_scaled", "mean", "n_support")
    return dict(fewest if simplest else highest), {
        "rule": SIMPLEST if simplest else HIGHEST,
        "highest": {name: highest.get(name) for name in named},
        "standard_error": error,
        "within": len(within),
        "left_out": len(summary) - len(rivals),
    }
