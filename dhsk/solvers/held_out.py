"""Decisions of all pairs of classes for held-out samples, from the support vectors of one fold.

A pair needs the entries between these samples and its support vectors. A class is in as many pairs
as there are other classes, and they share the entries of its samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.solvers.dual import Fit
from dhsk.solvers.problems import pairs_of_classes
from dhsk.solvers.sources import Source


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
    for panel in source.panels(rows, groups):
        parts = panel.values @ coef[panel.group][panel.columns]
        shape = len(panel.rows), len(classes) - 1, found.columns
        out[panel.rows[:, None], pairs[panel.group]] += parts.reshape(shape)
    return np.ascontiguousarray((out + found.intercepts).transpose(2, 0, 1))
