"""Decision between kernels: the simplest cell within one standard error of the best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.results.columns import TFIDF, Cell, GridPoint, Row

_SIMPLEST_FIRST: Final = ("linear", "cosine", "polynomial", "gaussian", "parametrix", "heat")
"""Kernels from simple to complex; all others come after them."""


@dataclass(frozen=True)
class Comparison:
    """A cell beside the best one, on the same folds.

    Attributes
    ----------
    cell
        The cell.
    difference
        Mean over the folds of the best cell's score less this cell's.
    standard_error
        Standard error of that mean: the standard deviation of the differences, with Bessel's
        correction, over the root of the number of folds (of one repeat, as repeats share their
        samples); 0 of a single fold.
    """

    cell: Cell
    difference: float
    standard_error: float

    @property
    def within(self) -> bool:
        """Whether the best cell is at most one standard error better."""
        return self.difference <= self.standard_error

    @property
    def words(self) -> str:
        """Difference and standard error: 0.0089 ± 0.0010."""
        return f"{self.difference:.4f} ± {self.standard_error:.4f}"


@dataclass(frozen=True)
class Decision:
    """The simplest cell within one standard error of the best, and what it was compared with.

    That is the rule of one standard error [1]_, with the standard error of paired differences: all
    cells see the same folds, so what makes a fold hard for all of them cancels. Simple is, in this
    order: linear, cosine, polynomial, Gaussian, parametrix, heat, other kernels, each before the
    same on tf-idf; of one kernel a smaller rank, then a larger time or sigma (at an infinite time
    the heat kernel is the cosine), then a smaller C, in units of the spread if it was chosen so.
    Cells whose fits did not converge take no part, unless none converged. The folds share training
    samples, so the true error is somewhat larger than this one.

    Attributes
    ----------
    best
        The cell with the highest mean score, of equals the first.
    simplest
        The simplest cell that is within one standard error of it.
    compared
        The best cell of each kernel, simple kernels first.
    n_folds
        Number of folds.

    References
    ----------
    .. [1] L. Breiman, J. Friedman, C. J. Stone and R. A. Olshen, "Classification and Regression
       Trees" (1984), section 3.4.3.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> kernels = ["linear", "cosine"]
    >>> result = dhsk.cross_validate(X[:500], y[:500], time_scale=0.5, kernels=kernels, C=10)
    >>> result.decision.simplest.cell.label
    'heat s=0.5'
    >>> print(result.decision.sentence)
    take heat s=0.5, C = 10: the highest mean, and nothing simpler is within one standard ...
    """

    best: Cell
    simplest: Comparison
    compared: tuple[Comparison, ...]
    n_folds: int

    @property
    def sentence(self) -> str:
        """The decision in one sentence, with its figures."""
        cell, best = self.simplest.cell, self.best
        if cell == best:
            said = f"take {best.brief}: the highest mean, and nothing simpler is within one"
            said += " standard error of it"
        else:
            said = (
                f"take {cell.brief}: the simplest within one standard error of the best "
                f"({best.brief}, {self.simplest.words} better)"
            )
        simpler = [
            f"{one.cell.kernel} is {one.words} below the best"
            for one in self.compared
            if _order(one.cell) < _order(cell)
        ]
        if cell == best and not simpler:
            return said
        figures = "; ".join([said, *simpler])
        return f"{figures} (± one standard error, of differences paired over {self.n_folds} folds)"


def decide(
    summary: Sequence[Cell], rows_of: Mapping[GridPoint, Sequence[Row]], repeats: int = 1
) -> Decision:
    """Compare all cells with the best one; `rows_of` has the rows of each, fold by fold."""
    all_of = comparisons(summary, rows_of, repeats)
    best = max(all_of, key=lambda one: one.cell.mean).cell
    within = [one for one in all_of if one.within]
    families: dict[str, Comparison] = {}
    for one in sorted(all_of, key=lambda one: (-one.cell.mean, simplicity(one.cell))):
        families.setdefault(one.cell.kernel, one)
    return Decision(
        best=best,
        simplest=min(within, key=lambda one: simplicity(one.cell)),
        compared=tuple(sorted(families.values(), key=lambda one: _order(one.cell))),
        n_folds=len(rows_of[best.point]),
    )


def comparisons(
    summary: Sequence[Cell], rows_of: Mapping[GridPoint, Sequence[Row]], repeats: int = 1
) -> list[Comparison]:
    """Compare each cell with the best one, among those that converged if any did."""
    rivals = [cell for cell in summary if cell.converged] or list(summary)
    best = max(rivals, key=lambda cell: cell.mean)
    scores = np.array([row.score for row in rows_of[best.point]])
    return [_compared(cell, scores, rows_of[cell.point], repeats) for cell in rivals]


def simplicity(cell: Cell) -> tuple[float, ...]:
    """Sort key, simple cells first: see `Decision`."""
    return (
        _order(cell), cell.rank or 0, -(cell.time or 0), -(cell.sigma or 0), cell.penalty,
        -cell.mean,
    )  # fmt: skip


def _order(cell: Cell) -> float:
    """Place of a kernel among all; on tf-idf, whose weights are learnt, it is a little later."""
    name, names = cell.kernel.removeprefix(TFIDF), _SIMPLEST_FIRST
    place = names.index(name) if name in names else len(names)
    return place if name == cell.kernel else place + 0.5


def _compared(cell: Cell, best: Floats, rows: Sequence[Row], repeats: int) -> Comparison:
    """Compare a cell with the scores of the best one, (folds,)."""
    differences = best - np.array([row.score for row in rows])
    n = len(differences)
    error = float(differences.std(ddof=1) / np.sqrt(n / repeats)) if n > 1 else 0.0
    return Comparison(cell, float(differences.mean()), error)
