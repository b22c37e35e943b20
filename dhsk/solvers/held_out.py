"""Decisions of all pairs of classes for held-out samples, from the support vectors of some folds.

A pair needs the entries between these samples and its support vectors. A class is in as many pairs
as there are other classes, and its pairs, folds and values of C share the entries of its samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.solvers.dual import Fit
from dhsk.solvers.problems import pairs_of_classes
from dhsk.solvers.sources import Combination, Source


@dataclass(frozen=True, eq=False)
class SupportVectors:
    """Support vectors of all pairs of classes in some folds, by some columns of each fold."""

    groups: list[Indices]
    """Samples of each class that are support vectors of any fit."""
    coef: list[Floats]
    """Coefficients of each class, (folds, samples, (k - 1) columns). The pairs of a class are
    ordered by the other class."""
    intercepts: Floats
    """(folds, pairs, columns)."""

    @classmethod
    def of(
        cls, fits: Sequence[Sequence[Fit]], classes: Sequence[Indices], columns: int
    ) -> "SupportVectors":
        """Of the fits of each pair, fold by fold; classes are the samples of each."""
        k, folds = len(classes), len(fits[0]) // columns
        V = [np.zeros((folds, len(members), k - 1, columns)) for members in classes]
        used = [np.zeros(len(members), bool) for members in classes]
        for (a, b), own in zip(combinations(range(k), 2), fits, strict=True):
            for number, fit in enumerate(own):
                fold, column = divmod(number, columns)
                cut = np.searchsorted(fit.support, len(classes[a]))
                first, second = fit.support[:cut], fit.support[cut:] - len(classes[a])
                V[a][fold, first, b - 1, column] = fit.coef[:cut]
                V[b][fold, second, a, column] = fit.coef[cut:]
                used[a][first] = used[b][second] = True
        intercepts = np.array([[fit.intercept for fit in own] for own in fits])
        return cls(
            [members[some] for members, some in zip(classes, used, strict=True)],
            [
                own[:, some].reshape(folds, np.count_nonzero(some), (k - 1) * columns)
                for own, some in zip(V, used, strict=True)
            ],
            np.stack(np.split(intercepts, folds, axis=1)),
        )


def sample_bytes(k: int, columns: int) -> int:
    """Bytes of the coefficients, or else of the sums, of a sample in one fold and k classes."""
    return 8 * k * (k - 1) * columns


def held_out_decisions(
    source: Source, rows: Indices, folds: Indices, found: SupportVectors
) -> Floats:
    """Decisions for some samples, (columns, rows, pairs); folds are those of each, ascending."""
    k, columns = len(found.groups), found.intercepts.shape[2]
    sums = np.zeros((k, len(rows), (k - 1) * columns))
    add = _add_combined if source.computes else _add_panels
    add(sums, source, rows, folds, found)
    out = found.intercepts[folds]
    for own, pairs in zip(sums, pairs_of_classes(k), strict=True):
        out[:, pairs] += own.reshape(len(rows), k - 1, columns)
    return np.ascontiguousarray(out.transpose(2, 0, 1))


def _add_panels(
    sums: Floats, source: Source, rows: Indices, folds: Indices, found: SupportVectors
) -> None:
    """Add the parts of a stored matrix, of which each serves all folds."""
    for panel in source.panels(rows, found.groups):
        coef = found.coef[panel.group]
        if len(panel.columns) < coef.shape[1]:
            coef = coef[:, panel.columns]
        for fold, part in _by_fold(folds[panel.rows]):
            sums[panel.group, panel.rows[part]] += panel.values[part] @ coef[fold]


def _add_combined(
    sums: Floats, source: Source, rows: Indices, folds: Indices, found: SupportVectors
) -> None:
    """Add the columns of all support vectors, computed at the samples alone."""
    parts, places = [], []
    for fold, part in _by_fold(folds):
        order = part.start + np.argsort(rows[part], kind="stable")
        for number, group in enumerate(found.groups):
            if len(group):
                parts.append(Combination(rows[order], group, found.coef[number][fold]))
                places.append((number, order))
    for place, values in zip(places, source.combine(parts) if parts else (), strict=True):
        sums[place] += values


def _by_fold(folds: Indices) -> Iterator[tuple[int, slice]]:
    """Folds that occur among ascending ones, and where."""
    starts = np.flatnonzero(np.diff(folds, prepend=-1))
    for start, stop in pairwise([*starts, len(folds)]):
        yield int(folds[start]), slice(int(start), int(stop))
