"""Combinations of columns of kernel values, in blocks that stay small."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.kernels.certified.evaluate import Reals

COMBINED_ROWS: Final = 2048
COMBINED_COLUMNS: Final = 512
"""Block of kernel values that are combined at a time, of 4 MB in float32. Measured: blocks of 1,024
took 1.1 to 1.4 times as long on 14 entries of 123 features, 1.2 times on 10 features."""

_STRIP_ROWS: Final = 128
"""Rows of a block that are converted at a time. Whole blocks took 2.2 to 2.7 times as long in two
threads, for 1 to 15 combinations: malloc had returned their pages, which are made again."""

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


@dataclass(frozen=True, eq=False)
class ColumnBlock:
    """Some columns, and their coefficients in several combinations."""

    columns: Any
    coef: Floats
    """(columns, combinations)."""
    groups: Sequence[tuple[slice, Indices, Floats]] = ()
    """Combinations, places of the columns they have, and coefficients, (combinations, columns);
    none where all may have any."""


def column_blocks(columns: Any, coef: Floats, ends: Sequence[int] = ()) -> list[ColumnBlock]:
    """Columns in the blocks of `combined`; `ends` are those of `Combination`."""
    places, found = [slice(*pair) for pair in pairwise((0, *ends))], []
    for some in blocks(columns.shape[0], COMBINED_COLUMNS):
        own, groups = coef[some], []
        has = np.logical_or.reduceat(own != 0, [p.start for p in places], axis=1) if places else own
        for number, place in enumerate(places):
            used = np.flatnonzero(has[:, number])
            groups.append((place, used, np.ascontiguousarray(own[used, place].T)))
        found.append(ColumnBlock(columns[some], own, groups))
    return found


def combined(
    between: Callable[[Any, Any, Reals], NDArray[Any]],
    rows: Any,
    columns: Sequence[ColumnBlock],
    width: int,
) -> Floats:
    """Kernel values between rows and columns, times the coefficients of these, (a, width).

    A group of combinations is multiplied with its own columns, which are rows of the transposed
    values, and so copied fast. Measured on 20 groups of 15, each with coefficients at 13 % of the
    columns: 4.8 ms a block in place of 17.
    """
    a = rows.shape[0]
    found = np.zeros((a, width))
    # One buffer: the first use of memory takes as long as some values.
    buffer = np.empty(a * max((len(block.coef) for block in columns), default=0), rows.dtype)
    for block in columns:
        b = len(block.coef)
        if not block.groups:
            values = between(rows, block.columns, buffer[: a * b].reshape(a, b))
            _add_product(found, values, block.coef)
            continue
        if found.flags.c_contiguous:
            found = np.zeros((width, a)).T
        values = between(block.columns, rows, buffer[: a * b].reshape(b, a))
        for place, used, weights in block.groups:
            found.T[place] += np.dot(weights, values[used].astype(weights.dtype, copy=False))
    return found


def _add_product(found: Floats, values: NDArray[Any], coef: Floats) -> None:
    """Add a product, whose factor is converted in strips."""
    # Not matmul, which warns of what OpenBLAS reads beyond short rows and leaves out.
    if values.dtype == coef.dtype:
        found += np.dot(values, coef)
        return
    strip = np.empty((min(len(values), _STRIP_ROWS), values.shape[1]), coef.dtype)
    for some in blocks(len(values), _STRIP_ROWS):
        part = strip[: some.stop - some.start]
        part[...] = values[some]
        found[some] += np.dot(part, coef)
