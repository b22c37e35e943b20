"""Repeats of a cross-validation: what each found, and the spread between them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dhsk.results.columns import Cell, grouped
from dhsk.results.paired import deviation
from dhsk.results.parts import Results


def repeats_of(results: Results) -> list[dict[str, Any]]:
    """One row for each kernel, C and repeat, cell by cell, with the mean and std of its folds."""
    return [vars(cell.point) | own for cell in results.summary for own in _of_cell(results, cell)]


def _of_cell(results: Results, cell: Cell) -> list[dict[str, Any]]:
    rows = results.rows_of[cell.point]
    each = len(rows) // results.repeats
    parts = [rows[first : first + each] for first in range(0, len(rows), each)]
    scores = [np.array([row.score for row in part]) for part in parts]
    return [
        {
            "repeat": number,
            "mean": float(own.mean()),
            "std": deviation(own),
            "converged": all(row.converged for row in part),
        }
        for number, (own, part) in enumerate(zip(scores, parts, strict=True))
    ]


def spread_of_repeats(results: Results, cell: Cell) -> float | None:
    """Standard deviation of the repeats' means, with Bessel's correction; None for one repeat."""
    means = [one["mean"] for one in _of_cell(results, cell)]
    return deviation(means, ddof=1) if len(means) > 1 else None


def best_of_families(results: Results) -> list[dict[str, Any]]:
    """The best of each family of kernels by the protocol of most papers, in the order of trial.

    Each repeat takes the highest of its mean scores; mean and std (with Bessel's correction, 0 for
    one repeat) are over the repeats. As the same folds choose the cell and score it, this is a
    little too high, the more so the more cells there are.
    """
    found = grouped(results.summary, lambda cell: cell.kernel)
    return [{"kernel": name} | _best(results, cells) for name, cells in found.items()]


def _best(results: Results, cells: Sequence[Cell]) -> dict[str, Any]:
    """As for `best`, fits that did not converge count only if no others are there."""
    by_cell = [_of_cell(results, cell) for cell in cells]
    scores = []
    for same in zip(*by_cell, strict=True):
        rivals = [one for one in same if one["converged"]] or list(same)
        scores.append(max(one["mean"] for one in rivals))
    best = max([cell for cell in cells if cell.converged] or cells, key=lambda cell: cell.mean)
    return {
        "mean": float(np.mean(scores)),
        "std": deviation(scores, ddof=1) if len(scores) > 1 else 0.0,
        "scores": tuple(scores),
        "label": best.label,
        "C": best.C,
        "rank": best.rank,
    }
