"""Kernels that are computed from rows, because inner products do not determine them.

Hyperbolic distances from inner products cancel for near points, and smoothed counts have no sparse
image.
"""

from abc import abstractmethod
from dataclasses import dataclass

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.kernels.base import Kernel
from dhsk.kernels.certified.evaluate import Reals


@dataclass(frozen=True)
class RowKernel(Kernel):
    """A kernel of two rows that cannot be derived from stored inner products."""

    @abstractmethod
    def between(self, rows: Rows, columns: Rows) -> Floats:
        """Kernel values of all pairs of checked rows, (a, b), a new array."""

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Refuse: inner products and norms do not determine this kernel."""
        del product, row_norms2, col_norms2
        raise InputError(
            f"a {self.name} kernel needs the samples, inner products do not determine it: call it"
            " with rows, or use compute_gram"
        )

    def _between(self, rows: Rows, columns: Rows, out: Reals | None) -> Floats:
        del out
        return self.between(rows, columns)

    def of_distinct_rows(self, rows: Rows, columns: Rows, out: Reals | None = None) -> Floats:
        """Kernel values of checked rows."""
        return self.of_rows(rows, columns, out)
