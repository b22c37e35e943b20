"""Squared distances of features, K_ii + K_jj - 2 K_ij, and where they are exactly 0."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import ROWS, Floats, Indices, Rows, blocks
from dhsk.gram.storage.staged import Side as SideName
from dhsk.gram.storage.staged import StagedSamples
from dhsk.kernels import Kernel
from dhsk.kernels.duplicates import row_hashes

_SQUARE: Final = 128  # samples whose kernel values are computed for their diagonal

NEAR: Final = 1e-3
"""Equal samples have squared distances below this part of K_ii + K_jj, in float32 too."""


@dataclass(frozen=True)
class Side:
    """What distances need of the samples of rows or of columns."""

    norms2: Floats
    """K(x, x) of each sample, (N,)."""

    marks: NDArray[np.uint64]
    """Hashes of the samples, (N,), the same for equal ones; (0,) where K_ij = K_ii for these.

    Rounding makes K_ij of equal samples differ from K_ii, unless the kernel sets both to 1.
    """

    def take(self, chosen: Indices | slice) -> "Side":
        """Side of some samples."""
        return Side(self.norms2[chosen], self.marks[chosen] if self.marks.size else self.marks)


def squared_distances(values: Floats, rows: Side, cols: Side) -> Floats:
    """Squared distances from kernel values (a, b), which are overwritten; none is below 0."""
    scale = np.add.outer(rows.norms2, cols.norms2)
    values *= -2.0
    values += scale
    if rows.marks.size and cols.marks.size:
        equal = np.equal.outer(rows.marks, cols.marks) & (values < NEAR * scale)
        values[equal] = 0.0
    return np.maximum(values, 0.0, out=values)


def side_of(samples: StagedSamples, side: SideName, kernel: Kernel) -> Side:
    """Side of the samples of a rectangular matrix, which has no diagonal to read."""
    if kernel.unit_diagonal:
        norms2 = np.ones(samples.count(side))
    else:
        norms2 = np.concatenate(
            [np.diagonal(kernel.of_rows(block)) for block in _blocks(samples, side, _SQUARE)],
            dtype=np.float64,
        )
    return Side(norms2, marks_of(samples, side, kernel))


def marks_of(samples: StagedSamples, side: SideName, kernel: Kernel) -> NDArray[np.uint64]:
    """Hashes of samples, see `Side.marks`; none where there are no samples, as of a graph."""
    if kernel.unit_diagonal or not samples.has(side):
        return np.empty(0, dtype=np.uint64)
    return np.concatenate([row_hashes(block) for block in _blocks(samples, side, ROWS)])


def _blocks(samples: StagedSamples, side: SideName, size: int) -> Iterator[Rows]:
    return (samples.read(side, part) for part in blocks(samples.count(side), size))
