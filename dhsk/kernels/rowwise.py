"""Kernels that need the rows themselves, because inner products do not give them to full digits."""

from abc import abstractmethod
from dataclasses import dataclass

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.kernels.base import Kernel
from dhsk.kernels.certified.evaluate import Reals
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

    def _between(self, rows: Rows, columns: Rows, out: Reals | None) -> Floats:
        del out
        return self.between(rows, columns)
