"""Matrices of kernel values that are given as samples."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.samples import Samples
from dhsk.samples.memory import DenseSamples


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
