"""Kernels that need the rows themselves, because inner products do not give them to full digits."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.kernels.base import Kernel, mirror_upper
from dhsk.kernels.rows import RowsLike


@dataclass(frozen=True)
class RowKernel(Kernel):
    """A kernel of two rows that cannot be derived from stored inner products."""

    @abstractmethod
    def check_rows(self, rows: Rows, first_row: int = 0, what: str = "X") -> None:
        """Refuse rows that this kernel is not defined on, naming the first.

        Parameters
        ----------
        rows
            Samples by row, (a, dim), finite.
        first_row
            Number of the first of these rows among all samples, for the message.
        what
            What the message calls the samples.

        Raises
        ------
        InputError
            If there is such a row.
        """

    @abstractmethod
    def between(self, rows: Rows, columns: Rows) -> Floats:
        """Kernel values of all pairs of checked rows, (a, b), a new array."""

    def __call__(self, X: RowsLike, Y: RowsLike | None = None) -> Floats:
        """Kernel values of all pairs of rows.

        Parameters
        ----------
        X
            Samples by row, (a, dim), dense or sparse.
        Y
            Samples by row, (b, dim), dense or sparse; None means X.

        Returns
        -------
        Floats
            K(x_i, y_j), (a, b). Without Y it is symmetric bit for bit, and its diagonal is
            exactly 1 where the kernel has a unit diagonal.

        Raises
        ------
        InputError
            If the samples are not 2-D, finite, of the right number of columns and such that the
            kernel is defined.
        """
        rows = self._accept(X, "X")
        if Y is None:
            return self._symmetric(rows)
        columns = self._accept(Y, "Y")
        if rows.shape[1] != columns.shape[1]:
            raise InputError(
                f"X has {rows.shape[1]} columns and Y has {columns.shape[1]}:"
                " both need the same features in the same order"
            )
        return self.between(rows, columns)

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Refuse: inner products and norms do not determine this kernel."""
        del product, row_norms2, col_norms2
        raise InputError(
            f"a {self.name} kernel needs the samples, inner products do not determine it: call it"
            " with rows, or use compute_gram"
        )

    def _accept(self, X: RowsLike, what: str) -> Rows:
        rows = super()._accept(X, what)
        self.check_rows(rows, what=what)
        return rows

    def _symmetric(self, rows: Rows) -> Floats:
        values = self.between(rows, rows)
        mirror_upper(values)
        if self.unit_diagonal:
            np.fill_diagonal(values, 1.0)
        return values
