"""Decisions of all problems for held-out samples, from the support vectors of some folds.

A problem needs the entries between these samples and its support vectors. The samples of a class
are in several problems, which share their entries, as folds and values of C do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from dhsk.arrays import Floats, Indices, blocks
from dhsk.solvers.dual import Fit
from dhsk.solvers.problems import MultiClass, problems_of_classes
from dhsk.solvers.sources import Combination, Source


@dataclass(frozen=True, eq=False)
class SupportVectors:
    """Support vectors of all problems in some folds, by some columns of each fold."""

    groups: list[Indices]
    """Samples of each class that are support vectors of any fit."""
    coef: list[Floats]
    """Coefficients of each class, (folds, samples, problems of the class times columns)."""
    intercepts: Floats
    """(folds, problems, columns)."""
    problems: Indices
    """Problems of each class, see `problems_of_classes`."""

    @classmethod
    def of(
        cls,
        fits: Sequence[Sequence[Fit]],
        classes: Sequence[Indices],
        columns: int,
        multi_class: MultiClass = "ovo",
    ) -> "SupportVectors":
        """Of the fits of each problem, fold by fold; classes are the samples of each."""
        problems = problems_of_classes(len(classes), multi_class)
        sizes, folds = np.array(list(map(len, classes))), len(fits[0]) // columns
        starts, width = np.cumsum(sizes) - sizes, problems.shape[1] * columns
        V = np.zeros((folds, sizes.sum(), problems.shape[1], columns))
        used = np.zeros(sizes.sum(), dtype=bool)
        for number, own in enumerate(fits):
            parts, rows = np.nonzero(problems == number)
            members = np.concatenate([starts[c] + np.arange(sizes[c]) for c in parts])
            rows = np.repeat(rows, sizes[parts])
            for place, fit in enumerate(own):
                fold, column = divmod(place, columns)
                support = members[fit.support]
                V[fold, support, rows[fit.support], column] = fit.coef
                used[support] = True
        spans = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
        intercepts = np.array([[fit.intercept for fit in own] for own in fits])
        return cls(
            [members[used[span]] for members, span in zip(classes, spans, strict=True)],
            [V[:, span][:, used[span]].reshape(folds, used[span].sum(), width) for span in spans],
            np.stack(np.split(intercepts, folds, axis=1)),
            problems,
        )


def sample_bytes(problems: Indices, columns: int) -> int:
    """Bytes of the coefficients, or else of the sums, of a sample in one fold."""
    return 8 * problems.size * columns


def held_out_decisions(
    source: Source, rows: Indices, folds: Indices, found: SupportVectors
) -> Floats:
    """Decisions for some samples, (columns, rows, problems); folds are those of each, ascending."""
    (k, width), columns = found.problems.shape, found.intercepts.shape[2]
    sums = np.zeros((k, len(rows), width * columns))
    add = _add_combined if source.computes else _add_panels
    add(sums, source, rows, folds, found)
    out = found.intercepts[folds]
    for own, problems in zip(sums, found.problems, strict=True):
        out[:, problems] += own.reshape(len(rows), width, columns)
    return np.ascontiguousarray(out.transpose(2, 0, 1))


ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)
"""Decisions of rounding alone, for entries and a sum of absolute coefficients of 1: a guess, far
above the sums of the coefficients, whose roundings are of both signs."""

_TINY: Final = 1e-6
"""Decisions from which on none is rounding: far below the tolerance of the fits."""

_LOOKED_AT: Final = 1 << 20
"""Decisions that are looked at together."""


def settle_rounding(decided: Floats, bounds: Callable[[], Floats]) -> None:
    """Set decisions of rounding alone to 0, so that no score is of them: (columns, rows, problems).

    `bounds`, (columns, problems), are the largest of these, asked for where some are tiny.
    """
    most = None
    for column, own in enumerate(decided):
        for part in blocks(len(own), max(1, _LOOKED_AT // own.shape[1])):
            if (np.abs(own[part]) < _TINY).any():
                most = bounds() if most is None else most
                own[part][np.abs(own[part]) <= most[column]] = 0.0


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
