"""Matrices of kernel values that are given as samples."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices, Rows
from dhsk.errors import InputError
from dhsk.execution.limits import core_count
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel, PrecomputedKernel, unit_vectors
from dhsk.models.sources import RowsSource
from dhsk.samples import Samples
from dhsk.samples.memory import DenseSamples
from dhsk.solvers.sources import ArraySource, Source


def given_matrix(samples: Samples, row_map: RowMap, run: Run) -> NDArray[Any]:
    """The matrix that samples are, checked; not copied if it is in memory as float64.

    Raises InputError unless it is square and finite.
    """
    check_square(samples)
    if not isinstance(samples, DenseSamples) or samples.array.dtype != np.float64:
        return np.asarray(row_map.all_of(samples, run))
    for _ in row_map.blocks(samples, run=run):
        continue  # it refuses what is not finite
    return samples.array


def check_square(X: Any) -> None:
    """Raise InputError unless kernel values are those of a fit's samples with each other."""
    n, width = X.shape
    if n != width:
        raise InputError(
            f"Precomputed matrix must be a square matrix. Input is a {n}x{width} matrix."
        )


def source_of_fit(rows: Rows, used: Indices, kernel: Kernel) -> Source:
    """Matrix of some samples, computed from their rows, or of the values that these are."""
    if isinstance(kernel, PrecomputedKernel):
        return ArraySource(np.ascontiguousarray(np.asarray(rows)[np.ix_(used, used)]))
    return RowsSource(rows[used], kernel, threads=core_count())


def fitted_rows(rows: Rows, chosen: Indices, kernel: Kernel) -> Rows:
    """Rows of some samples, as predictions compare with them."""
    given = isinstance(kernel, PrecomputedKernel)
    return unit_vectors(chosen, rows.shape[1]) if given else rows[chosen]
