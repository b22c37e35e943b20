"""Decisions of all pairs of classes for held-out samples, from the support vectors of one fold.

A pair needs the entries between these samples and its support vectors. A class is in as many pairs
as there are other classes, and they share the entries of its samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.solvers.dual import Fit
from dhsk.solvers.problems import pairs_of_classes
from dhsk.solvers.sources import Combination, Source


@dataclass(frozen=True, eq=False)
class SupportVectors:
    """Support vectors of all pairs of classes by some columns, in few arrays."""

    columns: int
    intercepts: Floats
    """(pairs, columns)."""
    counts: Indices
    """Number of support vectors, (pairs, columns)."""
    support: Indices
    """Indices among the samples of each pair, fit by fit."""
    coef: Floats

    @classmethod
    def of(cls, fits: Sequence[Sequence[Fit]]) -> "SupportVectors":
        """Of the fits of each pair, one for every column."""
        flat = [fit for own in fits for fit in own]
        shape = len(fits), len(fits[0])
        return cls(
            shape[1],
            np.array([fit.intercept for fit in flat]).reshape(shape),
            np.array([len(fit.support) for fit in flat]).reshape(shape),
            np.concatenate([fit.support for fit in flat]),
            np.concatenate([fit.coef for fit in flat]),
        )

    def by_class(self, classes: Sequence[Indices]) -> Iterator[tuple[Indices, Floats]]:
        """Support vectors of each class, and their coefficients, (n, (k - 1) columns).

        classes are the samples of each. The pairs of a class are ordered by the other class.
        """
        first, second = np.array(np.triu_indices(len(classes), 1))
        pair = np.repeat(np.arange(len(first)), self.counts.sum(axis=1))
        column = np.repeat(np.tile(np.arange(self.columns), len(first)), self.counts.ravel())
        cut = np.array([len(members) for members in classes])[first[pair]]
        of_second = self.support >= cut
        place = np.where(of_second, self.support - cut, self.support)
        own = np.where(of_second, second[pair], first[pair])
        other = np.where(of_second, first[pair], second[pair] - 1)
        for number, members in enumerate(classes):
            mine = own == number
            V = np.zeros((len(members), len(classes) - 1, self.columns))
            V[place[mine], other[mine], column[mine]] = self.coef[mine]
            used = np.unique(place[mine])
            yield members[used], V[used].reshape(len(used), V.shape[1] * V.shape[2])


def held_out_decisions(
    source: Source, rows: Indices, classes: Sequence[Indices], found: SupportVectors
) -> Floats:
    """Decisions for some samples, (columns, rows, pairs); classes are the samples of each class."""
    groups, coef = zip(*found.by_class(classes), strict=True)
    pairs = pairs_of_classes(len(classes))
    out = np.zeros((len(rows), len(found.intercepts), found.columns))
    sums = _combined if source.computes else _of_panels
    for places, number, values in sums(source, rows, groups, coef):
        shape = len(places), len(classes) - 1, found.columns
        out[places[:, None], pairs[number]] += values.reshape(shape)
    return np.ascontiguousarray((out + found.intercepts).transpose(2, 0, 1))


_Sums: TypeAlias = Iterator[tuple[Indices, int, Floats]]
"""Positions among the samples, a class, and sums over some of its support vectors."""


def _of_panels(
    source: Source, rows: Indices, groups: Sequence[Indices], coef: Sequence[Floats]
) -> _Sums:
    """Sums over parts of a stored matrix."""
    for panel in source.panels(rows, groups):
        yield panel.rows, panel.group, panel.values @ coef[panel.group][panel.columns]


def _combined(
    source: Source, rows: Indices, groups: Sequence[Indices], coef: Sequence[Floats]
) -> _Sums:
    """Sums over the columns of all support vectors, computed at the samples alone."""
    order = np.argsort(rows, kind="stable")
    used = [number for number, group in enumerate(groups) if len(group)]
    parts = [Combination(rows[order], groups[number], coef[number]) for number in used]
    for number, values in zip(used, source.combine(parts) if parts else (), strict=True):
        yield order, number, values
