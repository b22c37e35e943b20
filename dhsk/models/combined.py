"""Combinations of columns of kernel values, in blocks that stay small."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Rows, blocks
from dhsk.kernels.certified.evaluate import Reals

COMBINED_ROWS: Final = 2048
COMBINED_COLUMNS: Final = 512
"""Block of kernel values that are combined at a time, of 4 MB in float32. Measured: blocks of 1,024
took 1.1 to 1.4 times as long on 14 entries of 123 features, 1.2 times on 10 features."""

_FEWEST_ROWS: Final = 512
"""Fewest rows of such blocks, so that a combination at a few thousand has several."""


@dataclass(frozen=True, eq=False)
class WithNorms:
    """Samples and their squared norms, (a,)."""

    rows: Rows
    norms2: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of samples and features."""
        return self.rows.shape

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the samples."""
        return self.rows.dtype

    def __getitem__(self, part: slice) -> "WithNorms":
        return WithNorms(self.rows[part], self.norms2[part])


def rows_at_once(n: int) -> int:
    """Rows that are combined at a time, of so many."""
    return min(COMBINED_ROWS, max(_FEWEST_ROWS, -(-n // 4)))


def column_blocks(columns: Any) -> list[Any]:
    """Columns in the blocks of `combined`."""
    return [columns[own] for own in blocks(columns.shape[0], COMBINED_COLUMNS)]


def combined(
    between: Callable[[Any, Any, Reals], NDArray[Any]], rows: Any, columns: list[Any], coef: Floats
) -> Floats:
    """Kernel values between rows and blocks of columns, times coefficients of these, (a, k)."""
    a, first = rows.shape[0], 0
    found = np.zeros((a, coef.shape[1]))
    # One buffer: the first use of memory takes as long as some values.
    buffer = np.empty(a * max((block.shape[0] for block in columns), default=0), rows.dtype)
    for block in columns:
        b = block.shape[0]
        values = between(rows, block, buffer[: a * b].reshape(a, b))
        # Not matmul, which warns of what OpenBLAS reads beyond short rows and leaves out.
        found += np.dot(values.astype(coef.dtype, copy=False), coef[first : first + b])
        first += b
    return found
