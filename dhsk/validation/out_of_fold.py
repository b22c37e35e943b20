"""Predictions and decisions for samples while they were held out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.results.columns import GridPoint

Decisions = NDArray[np.float32]
"""Decisions of one fold, (n,) for two classes, else (n, k)."""


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """What a cell predicted for each sample in the fold that held it out.

    One entry for each sample and repeat, by repeat and then by sample.

    Attributes
    ----------
    samples
        Index of the sample, (n,).
    repeat, fold
        Repeat, and fold within all repeats, that held it out, (n,).
    true, predicted
        Labels, (n,).
    decisions
        Decision values as of scikit-learn's `decision_function`, float32: (n,) for two classes, a
        positive one for the second class; else (n, k), NaN for classes that a fold was trained
        without. None if they were not kept.
    classes
        Labels, (k,), in the order of the columns of `decisions`.
    """

    samples: Indices
    repeat: Indices
    fold: Indices
    true: NDArray[Any]
    predicted: NDArray[Any]
    decisions: Decisions | None
    classes: NDArray[Any]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Whether the prediction is wrong, (n,)."""
        return np.asarray(self.predicted != self.true)

    @property
    def errors(self) -> Indices:
        """Samples that were predicted wrongly in any repeat, ascending."""
        return np.unique(self.samples[self.wrong])


@dataclass(frozen=True, eq=False)
class KeptCell:
    """Predictions of a cell, fold by fold."""

    predicted: Sequence[Sequence[int]]
    """Numbers of classes."""
    decisions: Sequence[Decisions | None]


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Predictions of all cells of a grid, and decisions of the best ones."""

    classes: NDArray[Any]
    y: Indices
    """Numbers of the true classes, (N,)."""
    tests: Sequence[Indices]
    """Samples that each fold holds out."""
    repeats: int
    cells: Mapping[GridPoint, KeptCell]

    def numbered(self, point: GridPoint) -> OutOfFold:
        """Predictions of one cell, with numbers of classes in place of labels."""
        own = self.cells[point]
        sizes = [len(test) for test in self.tests]
        samples = np.concatenate(self.tests)
        fold = np.repeat(np.arange(len(sizes)), sizes)
        repeat = fold // (len(sizes) // self.repeats)
        order = np.lexsort([samples, repeat])
        predicted = np.concatenate([np.asarray(part, np.intp) for part in own.predicted])
        kept = [part for part in own.decisions if part is not None]
        return OutOfFold(
            samples=samples[order],
            repeat=repeat[order],
            fold=fold[order],
            true=self.y[samples[order]],
            predicted=predicted[order],
            decisions=np.concatenate(kept)[order] if len(kept) == len(sizes) else None,
            classes=self.classes,
        )

    def of(self, point: GridPoint) -> OutOfFold:
        """Predictions of one cell."""
        found, names = self.numbered(point), self.classes
        return replace(found, true=names[found.true], predicted=names[found.predicted])

    def named(self, label: str, C: float, rank: int | None) -> OutOfFold:
        """Predictions of the cell of this name; InputError if there is none."""
        for point in self.cells:
            if (point.label, point.C, point.rank) == (label, C, rank):
                return self.of(point)
        raise InputError(f"no candidate of the grid is {label!r} with C = {C:g}: see summary_")
