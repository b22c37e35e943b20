"""The kernel of a matrix that is given: samples are rows of kernel values with those of a fit."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Indices, Rows
from dhsk.kernels.base import Kernel
from dhsk.kernels.certified.evaluate import Reals


@dataclass(frozen=True)
class PrecomputedKernel(Kernel):
    """Values that are given, as by scikit-learn's ``kernel="precomputed"``.

    A sample is its row of kernel values with the N samples of a fit, and the j-th of these is the
    unit vector of its column, so that the inner product of both is the value that was given.
    """

    name: ClassVar[str] = "precomputed"

    @property
    def positive_semidefinite(self) -> bool | None:
        """None: it depends on the values."""
        return None

    @property
    def label(self) -> str:
        """Short name."""
        return "precomputed"

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Return the values as they are."""
        del row_norms2, col_norms2
        return product

    def product(self, rows: Rows, columns: Rows, out: Reals | None = None) -> Floats:
        """Values of the rows at the samples of the fit that unit vectors stand for."""
        if isinstance(rows, np.ndarray) and isinstance(columns, csr_array):
            place: Any = out
            return np.asarray(np.take(rows, columns.indices, axis=1, out=place))
        return super().product(rows, columns, out)

    def norms2(self, rows: Rows) -> Floats:
        """Nothing that the values depend on."""
        return np.zeros(rows.shape[0])


def unit_vectors(places: Indices, n: int) -> Rows:
    """Unit vectors of some of n columns, (places, n), CSR."""
    own = np.arange(len(places) + 1)
    return csr_array((np.ones(len(places)), places, own), shape=(len(places), n))
