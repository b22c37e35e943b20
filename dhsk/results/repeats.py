"""Repeats of a cross-validation: what each found, and the spread between them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dhsk.results.columns import Cell, GridPoint, Row, grouped
from dhsk.results.paired import deviation
from dhsk.results.parts import Results


@dataclass(frozen=True, kw_only=True)
class Repeat(GridPoint):
    """One kernel at one C in one repeat: mean and standard deviation over its folds."""

    repeat: int
    mean: float
    std: float
    converged: bool


@dataclass(frozen=True)
class BestOfFamily:
    """The best that the kernels of a family reach, by the protocol of most papers.

    Each repeat takes the highest of its mean scores; `mean` and `std` are over the repeats. As the
    same folds choose the cell and score it, this is a little too high, the more so the more cells
    there are.
    """

    kernel: str
    mean: float
    std: float
    """With Bessel's correction; 0 for one repeat."""
    scores: tuple[float, ...]
    """The highest mean score of each repeat."""
    label: str
    C: float
    rank: int | None
    """Kernel, C and rank with the highest mean over all repeats."""


def repeats_of(results: Results) -> list[Repeat]:
    """One row for each kernel, C and repeat, cell by cell."""
    return [one for cell in results.summary for one in _of_cell(results, cell)]


def _of_cell(results: Results, cell: Cell) -> list[Repeat]:
    rows, repeats = results.rows_of[cell.point], results.repeats
    each = len(rows) // repeats
    parts = [rows[r * each : (r + 1) * each] for r in range(repeats)]
    return [_repeat(cell, number, part) for number, part in enumerate(parts)]


def _repeat(cell: Cell, number: int, rows: Sequence[Row]) -> Repeat:
    scores = np.array([row.score for row in rows])
    return Repeat(
        **vars(cell.point),
        repeat=number,
        mean=float(scores.mean()),
        std=deviation(scores),
        converged=all(row.converged for row in rows),
    )


def spread_of_repeats(results: Results, cell: Cell) -> float | None:
    """Standard deviation of the repeats' means, with Bessel's correction; None for one repeat."""
    means = [one.mean for one in _of_cell(results, cell)]
    return deviation(means, ddof=1) if len(means) > 1 else None


def best_of_families(results: Results) -> list[BestOfFamily]:
    """The best of each family of kernels, in the order in which the families were tried."""
    found = grouped(results.summary, lambda cell: cell.kernel)
    return [_best(results, name, cells) for name, cells in found.items()]


def _best(results: Results, name: str, cells: Sequence[Cell]) -> BestOfFamily:
    """As for `best`, fits that did not converge count only if no others are there."""
    by_cell = [_of_cell(results, cell) for cell in cells]
    scores = []
    for same in zip(*by_cell, strict=True):
        rivals = [one for one in same if one.converged] or list(same)
        scores.append(max(one.mean for one in rivals))
    best = max([cell for cell in cells if cell.converged] or cells, key=lambda cell: cell.mean)
    std = deviation(scores, ddof=1) if len(scores) > 1 else 0.0
    own = (best.label, best.C, best.rank)
    return BestOfFamily(name, float(np.mean(scores)), std, tuple(scores), *own)
