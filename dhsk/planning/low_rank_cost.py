"""What SVMs of low rank cost in seconds, memory and disk: arithmetic on a plan and measured rates.

The Cholesky factor of the landmarks, (N, k), serves as the features. It is held where it fits, or
else kernel values are computed anew in every pass over the samples.

Counts of passes were seen on MNIST (20,000 to 60,000 images, time scales 0.7 and 1, k = 500 to
2000, features in float32, C from 0.1 to 10, gradients a thousandth of the first), work also on
250,000 and a million counts at k = 1000. Labels and C decide them, so of other samples they are
assumed.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.errors import InputError
from dhsk.nystrom.spans import block_rows, span_rows
from dhsk.planning.exact_cost import GridShape
from dhsk.planning.prediction import SAMPLE_WORK, Prediction

LEAST_BLOCK: Final = 128
"""Landmarks proposed in a round, if they are few: as many as make the products pay."""

ROUNDS: Final = 4
"""Rounds in which more landmarks are proposed. A few proposals are refused: not counted here."""

PASSES: Final = 50, 160
"""Passes of the solver for one model, and for a grid, whose problems share them: 50, and 147 to
171 of 6 and 15 problems a class."""

MAKINGS: Final = 2, 9
"""Times that second derivatives are made for one model, and for a grid: 1 to 3, and 8 or 9."""

COLUMN_WORK: Final = 70
"""Multiply-adds of a feature for each problem, in all passes together: 30 to 110, as few samples or
many are active."""

CURVED: Final = 0.125
"""Seconds of second derivatives over those of GEMM for N k^2/2 multiply-adds: they are estimated by
an eighth of the active samples or more."""

START: Final = 1.2
"""All work of the solver over that after its start on a part of the samples: 1.15 to 1.25."""

NARROW: Final = 2.0
"""Seconds over those of GEMM, for as many multiply-adds, of narrow products: of features with
coefficients, and of samples with a block of landmarks."""

FEATURE_READ: Final = 0.05e-9
"""Seconds of a thread for a byte of held features in a pass."""

TASK_BLOCKS: Final = 3
"""Blocks of features that a task holds: as computed, scaled, and the one before."""

_SQUARES: Final = 4
"""Matrices of second derivatives in memory besides those of all problems, see `Factors`."""

_VECTORS: Final = 8
"""Arrays of coefficients of all problems that conjugate gradients hold."""


@dataclass(frozen=True)
class LowRankCost:
    """Cost of SVMs on Nyström features; make it with `low_rank_cost`.

    Attributes
    ----------
    prediction
        The Gram matrix on some machine: its samples, products and rates.
    shape
        The SVMs; classes are told apart one against the rest.
    rank
        Landmarks k, at most N.
    """

    prediction: Prediction
    shape: GridShape
    rank: int

    @property
    def _n(self) -> int:
        return self.prediction.plan.tiling.n_rows

    @property
    def _item(self) -> int:
        return np.dtype(self.prediction.plan.product_dtype).itemsize

    @property
    def _keys(self) -> int:
        """Second derivatives of one kernel: one for each class and C, shared by the folds."""
        classes = self.shape.classes
        return self.shape.chain * (1 if classes == 2 else classes)

    @property
    def columns(self) -> int:
        """Problems of one kernel, all solved in the same passes."""
        return self._keys * self.shape.folds

    # Memory

    @property
    def feature_bytes(self) -> int:
        """Bytes of all features."""
        return self._n * self.rank * self._item

    @property
    def least_bytes(self) -> int:
        """Memory of all processes where features are not held."""
        r, sample = self.prediction.plan.resources, self.prediction.plan.row_bytes
        rows, values = span_rows(self._n, sample), self._item * self.rank
        task = rows * sample + TASK_BLOCKS * min(rows, block_rows(values)) * values
        landmarks = (r.workers + 1) * self.rank * sample
        side = self.rank + 1
        squares = (self._keys + _SQUARES) * side**2 * self._item
        vectors = 8 * _VECTORS * side * self.columns
        targets = 8 * self._n * (1 + self.shape.folds)
        return r.idle_bytes + math.ceil(r.threads * task + landmarks) + squares + vectors + targets

    @property
    def held(self) -> bool:
        """Whether the features fit the memory."""
        return self.least_bytes + self.feature_bytes <= self.prediction.plan.resources.memory

    @property
    def memory(self) -> int:
        """Bytes of all processes together, at most."""
        return self.least_bytes + (self.feature_bytes if self.held else 0)

    @property
    def fits_memory(self) -> bool:
        """Whether the memory suffices."""
        return self.memory <= self.prediction.plan.resources.memory

    @property
    def disk(self) -> int:
        """Bytes on disk: the mapped samples."""
        return math.ceil(self._n * self.prediction.plan.row_bytes)

    # Time

    @property
    def _multiply_add(self) -> float:
        """Seconds of a thread for a multiply-add of features."""
        return self.prediction.rates.product(self.prediction.plan.product_dtype, sparse=False).each

    @property
    def _reading(self) -> float:
        """Seconds in which all threads read all samples once."""
        return self._n * self.prediction.plan.row_bytes * SAMPLE_WORK / self.prediction.at_once

    def _values(self, count: float, stretch: float = 1.0) -> float:
        """Seconds for so many kernel values, their products stretched."""
        p = self.prediction
        line = p.rates.product(p.plan.product_dtype, sparse=p.plan.sparse_path)
        return count * (stretch * line(p.plan.multiply_adds) + p.kernel) / p.at_once

    @property
    def rounds(self) -> int:
        """Passes in which landmarks are chosen."""
        return math.ceil(self.rank / max(LEAST_BLOCK, self.rank // ROUNDS))

    @property
    def landmarks(self) -> float:
        """Seconds of randomly pivoted Cholesky: N k kernel values, N k^2/2 multiply-adds.

        Without the factor, each round computes the values with all landmarks so far again.
        """
        again = 1.0 if self.held else (self.rounds + 1) / 2
        update = self._n * self.rank**2 / 2 * self._multiply_add / self.prediction.at_once
        values = self._values(again * self._n * self.rank, NARROW)
        return self.rounds * self._reading + values + NARROW * update

    @property
    def solving(self) -> float:
        """Seconds of Newton's method for all problems of a kernel."""
        several = self.shape.folds * self.shape.chain > 1
        passes, makings = (grid if several else one for one, grid in (PASSES, MAKINGS))
        narrow = self.columns * COLUMN_WORK * NARROW * self._multiply_add
        squares = makings * self._keys * CURVED * self.rank / 2 * self._multiply_add
        reading = (passes + makings) * self._item * FEATURE_READ
        own = self._n * self.rank * (narrow + squares + reading) / self.prediction.at_once
        computed = self._reading + self._values(self._n * self.rank)
        return START * own + (0.0 if self.held else (passes + makings) * computed)

    @property
    def seconds(self) -> float:
        """Seconds for all kernels, each with landmarks of its own."""
        return self.prediction.start + self.shape.kernels * (self.landmarks + self.solving)


def low_rank_cost(prediction: Prediction, shape: GridShape, rank: int) -> LowRankCost:
    """Predict the cost of SVMs on Nyström features.

    Parameters
    ----------
    prediction
        The Gram matrix on some machine, symmetric.
    shape
        The SVMs.
    rank
        Landmarks; of more than there are samples, all samples.

    Returns
    -------
    LowRankCost
        The cost; `LowRankCost.fits_memory` says whether the memory suffices.

    Raises
    ------
    InputError
        The rank is below 1.
    """
    if rank < 1:
        raise InputError(f"the rank must be at least 1, got {rank}")
    return LowRankCost(prediction, shape, min(rank, prediction.plan.tiling.n_rows))
