"""Values of tiles where they are needed: computed from samples, read from disk, or derived.

A pass over a matrix goes through groups of neighbouring tiles, one task a group: the rows of a
group are read once, its columns once, and its arrays are used again from tile to tile, because
fresh memory costs as much as the kernel does (2 µs a page on the machine where this was measured).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Rows
from dhsk.gram.plan import Tiling
from dhsk.gram.store import GramStore
from dhsk.kernels import Kernel, RowKernel

Group: TypeAlias = tuple[tuple[int, int], ...]
"""Indices (i, j) of neighbouring tiles."""


@dataclass(frozen=True)
class TileValues:
    """Values of one tile of one kernel."""

    i: int
    j: int
    kernel: int
    """Number of the kernel."""
    values: NDArray[Any]
    """(rows of i, columns of j); overwritten after the next one was asked for."""


class TileSource:
    """Gives the tiles of kernels on one store; cheap to pickle, workers open the store themselves.

    Parameters
    ----------
    path
        Folder of the store.
    kernels
        Kernels, in the order in which their values are given.
    compute
        Compute all tiles from the samples, whatever is stored.
    norms2
        Squared norms of row and column samples, where kernels are derived from stored products.
    """

    def __init__(
        self,
        path: Path,
        kernels: Sequence[Kernel],
        *,
        compute: bool = False,
        norms2: tuple[Floats, Floats] | None = None,
    ) -> None:
        self.path = path
        self.kernels = tuple(kernels)
        self.compute = compute
        self.norms2 = norms2

    def __call__(self, group: Group) -> Iterator[TileValues]:
        """Give the values of a group's tiles, for each tile one kernel after the other.

        Parameters
        ----------
        group
            Tiles; of a symmetric matrix those with i <= j.

        Yields
        ------
        TileValues
            A tile of a kernel. Two arrays take turns, so that the one before stays valid while
            the next is computed.
        """
        store = GramStore.open(self.path)
        if self.compute:
            yield from _computed(store, self.kernels, group)
            return
        for i, j in group:
            for number, kernel in enumerate(self.kernels):
                yield TileValues(i, j, number, self._read(store, kernel, i, j))

    def _read(self, store: GramStore, kernel: Kernel, i: int, j: int) -> NDArray[Any]:
        index = store.index_of(kernel)
        if index is not None:
            return store.read_tile(i, j, index)
        assert self.norms2 is not None
        tiling = store.header.tiling
        rows, cols = self.norms2[0][tiling.rows(i)], self.norms2[1][tiling.cols(j)]
        products = np.ascontiguousarray(store.read_tile(i, j), dtype=np.float64)
        return kernel.of_product(products, rows, cols).astype(store.header.dtype, copy=False)


class _Arrays:
    """Arrays of the size of a tile that are used again and again."""

    def __init__(self, entries: int, dtype: Any, count: int) -> None:
        self._flat = [np.empty(entries, dtype) for _ in range(count)]
        self._next = 0

    def take(self, shape: tuple[int, int]) -> NDArray[Any]:
        """Give the array that was taken longest ago, as a C-ordered block."""
        flat = self._flat[self._next]
        self._next = (self._next + 1) % len(self._flat)
        return flat[: shape[0] * shape[1]].reshape(shape)


def _computed(store: GramStore, kernels: Sequence[Kernel], group: Group) -> Iterator[TileValues]:
    header = store.header
    results = _Arrays(header.tile**2, header.dtype, 2)
    # A single kernel overwrites its product, in the result itself if it is of the same type.
    direct = len(kernels) == 1 and header.dtype == header.product_dtype
    spare = 0 if direct else min(len(kernels), 2)
    products = results if direct else _Arrays(header.tile**2, header.product_dtype, spare)
    for i, j, rows, cols in _blocks(store, group):
        shape = rows.shape[0], (rows if cols is None else cols).shape[0]
        for number, values in enumerate(_values(kernels, rows, cols, products, shape)):
            result = values
            if not direct:
                result = results.take(shape)
                np.copyto(result, values, casting="same_kind")
            yield TileValues(i, j, number, result)


def _values(
    kernels: Sequence[Kernel],
    rows: Rows,
    cols: Rows | None,
    products: _Arrays,
    shape: tuple[int, int],
) -> Iterator[Floats]:
    """Values of each kernel on one pair of blocks, from one product where that gives them."""
    row_kernels = any(isinstance(kernel, RowKernel) for kernel in kernels)
    if len(kernels) == 1 or row_kernels or len({kernel.spherical for kernel in kernels}) > 1:
        for kernel in kernels:
            yield kernel.of_rows(rows, cols, products.take(shape))
        return
    product, scratch = products.take(shape), products.take(shape)
    columns = rows if cols is None else cols
    kernels[0].product(rows, columns, product)
    for kernel in kernels:
        np.copyto(scratch, product)
        values = kernel.of_product(scratch, kernel.norms2(rows), kernel.norms2(columns))
        if cols is None:
            kernel.make_symmetric(values)
        yield values


def _blocks(store: GramStore, group: Group) -> Iterator[tuple[int, int, Rows, Rows | None]]:
    """Tiles with their samples, column by column; no columns on the diagonal of a square."""
    tiling = store.header.tiling
    above, left = extent(tiling, group)
    rows = store.samples.read("rows", above)
    if tiling.symmetric and above == left:
        cols = rows
    else:
        cols = store.samples.read("rows" if tiling.symmetric else "cols", left)
    for i, j in sorted(group, key=lambda tile: tile[::-1]):
        diagonal = tiling.symmetric and i == j
        block = rows[within(tiling.rows(i), above)]
        yield i, j, block, None if diagonal else cols[within(tiling.cols(j), left)]


def extent(tiling: Tiling, group: Group) -> tuple[slice, slice]:
    """Rows and columns from the first to the last that a group's tiles cover."""
    rows, cols = [i for i, _ in group], [j for _, j in group]
    return (
        slice(tiling.rows(min(rows)).start, tiling.rows(max(rows)).stop),
        slice(tiling.cols(min(cols)).start, tiling.cols(max(cols)).stop),
    )


def within(part: slice, whole: slice) -> slice:
    """A slice of a slice, counted from its start."""
    return slice(part.start - whole.start, part.stop - whole.start)
