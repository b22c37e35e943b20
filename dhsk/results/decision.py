"""Decision between kernels: the simplest one within one standard error of the best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dhsk.results.columns import CLR, Cell, GridPoint, Row, bare, grouped, is_rest, prefix_of
from dhsk.results.paired import FoldSizes, PairedDifference, about_equal

_SIMPLEST_FIRST: Final = ("linear", "cosine", "polynomial", "gaussian", "parametrix", "heat")
"""Kernels from simple to complex; all others come after them."""

MORE_REPEATS: Final = 5
"""Repeats that are proposed where the folds cannot tell kernels apart."""

POINT: Final = 0.01
"""Differences that a decision should see; where it cannot, that is said."""


@dataclass(frozen=True, kw_only=True)
class Comparison(PairedDifference):
    """A cell beside the best one, on the same folds: the score of the best less that of the cell.

    Attributes
    ----------
    cell
        The cell.
    """

    cell: Cell


@dataclass(frozen=True)
class Decision:
    """The simplest kernel that the folds cannot tell from the best, and what was compared.

    Each kernel stands with its best cell, at each rank if it is of low rank. Taken is the simplest
    kernel that is within one standard error of the best [1]_, but for one that a still simpler
    kernel beats. The standard error is that of paired differences, as all cells see the same folds,
    corrected for training sets that overlap and for repeats that share their samples, see
    `paired_difference`: one sample, or one fold, never decides. Simple is, in this order: linear,
    cosine, polynomial, Gaussian, parametrix, heat, other kernels; then a smaller rank. Of one
    kernel log-ratios come first, if they were tried beside other maps and are that near: where
    samples are few, chance often gives another map the highest mean (measured:
    examples/microbiome). Else the highest mean counts. Of equal means, to nine digits, the kernel's
    own map comes first, then the larger time or sigma (at an infinite time the heat kernel is the
    cosine), then the smaller C, in units of the spread if it was chosen so. Cells whose fits did
    not converge take no part, unless none converged.

    Attributes
    ----------
    best
        The cell with the highest mean score, of equals the simplest.
    simplest
        The best cell of the simplest kernel within one standard error of it.
    compared
        The best cell of each kernel and rank, simple kernels first.
    n_folds
        Number of folds.
    taken
        The cell that was taken: that of `simplest`, or `best` where that was asked for.
    sizes
        Folds, repeats and samples that the standard errors are of.

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
    >>> result = dhsk.cross_validate(X[:1000], y[:1000], time_scale=0.5, kernels=kernels, C=10)
    >>> result.decision.simplest.cell.label
    'heat s=0.5'
    >>> print(result.decision.sentence)
    take heat s=0.5, C = 10: the highest mean, and no simpler one tried is within one standard ...
    """

    best: Cell
    simplest: Comparison
    compared: tuple[Comparison, ...]
    n_folds: int
    taken: Cell
    sizes: FoldSizes

    @property
    def sentence(self) -> str:
        """The decision in one sentence, with its figures."""
        simpler = [
            f"{_name(one.cell)} is {one.words} below the best"
            for one in self.compared
            if _order(one.cell) < _order(self.simplest.cell)
        ]
        if self.simplest.cell == self.best and not simpler:
            return self._said
        figures = "; ".join([self._said, *simpler])
        over = f"{self.n_folds} folds"
        return f"{figures} (± one standard error, corrected, of differences paired over {over})"

    @property
    def _said(self) -> str:
        """What to take, and why."""
        cell, best, own = self.simplest.cell, self.best, self.simplest.words
        if cell == best:
            said = f"take {best.brief}: the highest mean, and no simpler one tried is within one"
            said += f" standard error of it{self._beaten}"
        elif self.taken == best:
            said = (
                f"take {best.brief}: the highest mean, as was asked for; {cell.brief} is simpler, "
                f"and within one standard error of it ({own} below)"
            )
        else:
            as_simple = _order(cell) == _order(best)
            said = (
                f"take {cell.brief}: {'on log-ratios, and' if as_simple else 'the simplest kernel'}"
                f" within one standard error of the best{self._beaten} "
                f"({best.brief}, {own} better)"
            )
        return said

    @property
    def _beaten(self) -> str:
        """Simpler kernels that are near the best, but that still simpler ones beat, in words."""
        order = _order(self.simplest.cell)
        near = (one for one in self.compared if one.within and _order(one.cell) < order)
        pairs = ((one, _beating(one, self.compared)) for one in near)
        return "".join(f" but {_name(a.cell)}, which {_name(b.cell)} beats" for a, b in pairs if b)

    @property
    def unseen(self) -> str:
        """What these folds cannot see, in a sentence; empty where they see a point.

        It is said where a simpler kernel than the best is taken, although the best may be better by
        a point or more.
        """
        least = self.simplest.standard_error
        if self.simplest.cell == self.best or least < POINT:
            return ""
        said = (
            f"with {self.sizes.n_samples:,} samples a difference from the best below {least:.3f} "
            "cannot be told from chance here"
        )
        if self.sizes.repeats >= MORE_REPEATS or not self.sizes.repeatable:
            return said
        with_more = replace(self.sizes, repeats=MORE_REPEATS)
        smaller = least * with_more.error_factor / self.sizes.error_factor
        return f"{said}; --repeats {MORE_REPEATS} makes that about {smaller:.3f}"


def decide(
    summary: Sequence[Cell],
    rows_of: Mapping[GridPoint, Sequence[Row]],
    sizes: FoldSizes,
    taken: Cell | None = None,
) -> Decision:
    """Compare the best cell of each kernel with the best of all.

    `rows_of` has the rows of each cell, fold by fold; `taken` is what was taken, None for the
    simplest.
    """
    families = grouped(rivals_in(summary), lambda cell: (cell.kernel, cell.rank))
    firsts = sorted(map(highest, families.values()), key=simplicity)
    best = highest(firsts)
    compared = tuple(_compared(best, cell, rows_of, sizes) for cell in firsts)
    within = [one for one in compared if one.within and _beating(one, compared) is None]
    alike = [one.cell for one in within if _order(one.cell) == _order(within[0].cell)]
    on_ratios = [cell for cell in alike if prefix_of(cell.kernel) == CLR]
    simplest = next(one for one in within if one.cell == highest(on_ratios or alike))
    return Decision(
        best=best,
        simplest=simplest,
        compared=compared,
        n_folds=len(rows_of[best.point]),
        taken=simplest.cell if taken is None else taken,
        sizes=sizes,
    )


def _beating(one: Comparison, compared: Sequence[Comparison]) -> Comparison | None:
    """The best of the kernels that are simpler than one, if it has a higher mean."""
    simpler = [other for other in compared if _order(other.cell) < _order(one.cell)]
    best = min(simpler, key=lambda other: other.difference, default=one)
    higher = best.cell.mean > one.cell.mean and not about_equal(best.cell.mean, one.cell.mean)
    return best if higher else None


def comparisons(
    summary: Sequence[Cell], rows_of: Mapping[GridPoint, Sequence[Row]], sizes: FoldSizes
) -> list[Comparison]:
    """Compare each cell with the best one, among those that converged if any did."""
    rivals = rivals_in(summary)
    best = highest(rivals)
    return [_compared(best, cell, rows_of, sizes) for cell in rivals]


def rivals_in(summary: Sequence[Cell]) -> list[Cell]:
    """Cells whose fits converged, or all if none did."""
    return [cell for cell in summary if cell.converged] or list(summary)


def highest(cells: Sequence[Cell]) -> Cell:
    """The converged cell with the highest mean; of equals, up to rounding, the simplest."""
    rivals = rivals_in(cells)
    top = max(cell.mean for cell in rivals)
    return min((cell for cell in rivals if about_equal(cell.mean, top)), key=simplicity)


def simplicity(cell: Cell) -> tuple[float, ...]:
    """Sort key, simple cells first: see `Decision`."""
    moved = bool(prefix_of(cell.kernel))
    return (*_order(cell), moved, -(cell.time or 0), -(cell.sigma or 0), cell.penalty)


def _order(cell: Cell) -> tuple[float, float]:
    """Place of a kernel among all, where one-vs-rest is after one-vs-one, and rank."""
    name, names = bare(cell.kernel), _SIMPLEST_FIRST
    place = names.index(name) if name in names else len(names)
    return (place + 0.5 * is_rest(cell.kernel), cell.rank or 0)


def _name(cell: Cell) -> str:
    return cell.kernel if cell.rank is None else f"{cell.kernel} of rank {cell.rank}"


def _compared(
    best: Cell, cell: Cell, rows_of: Mapping[GridPoint, Sequence[Row]], sizes: FoldSizes
) -> Comparison:
    """Compare a cell with the best one."""
    first, second = ([row.score for row in rows_of[one.point]] for one in (best, cell))
    found = sizes.paired(first, second)
    return Comparison(found.difference, found.standard_error, cell=cell)
