"""Values of tiles: computed from samples, read from disk, or derived from stored products.

In a pass over a matrix, a task computes a group of neighbouring tiles. It reads the rows and
columns of the group once, and uses the same arrays for all its tiles.

Whole tiles are multiplied and then evaluated strip by strip: with a product for each strip BLAS
packs the other factor again, which took 1.10 times as long with strips of 1,024 rows and up to 1.9
times with smaller ones, where the pass over a whole product takes 0.06. Rejected: a space-filling
curve over single tiles (Dask decides which worker gets which, so neighbours meet by luck); row
blocks that workers keep between tasks (state).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Rows, blocks
from dhsk.errors import CorruptTileError
from dhsk.gram.graph_functions import NodeColumns, NodeSpectrum
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.tiling import Tiling
from dhsk.kernels import Kernel, NodeKernel, SphericalKernel
from dhsk.kernels.base import mirror_upper
from dhsk.objects.places import Place

Group: TypeAlias = tuple[tuple[int, int], ...]
"""Indices (i, j) of neighbouring tiles."""

_Evaluate: TypeAlias = Callable[[Rows, Rows | None], Iterator[tuple[int, slice, NDArray[Any]]]]
"""From two blocks of samples to (index of a kernel, rows of the block, values)."""

STRIP_BYTES: Final = 2 << 20
"""Size of a strip of values. Measured: 1 MB takes more calls, 4 MB exceeds the cache of a core."""


@dataclass(frozen=True)
class TileValues:
    """Values of one tile of one kernel, or of a strip of its rows."""

    i: int
    j: int
    kernel: int
    """Index of the kernel."""
    rows: slice
    """Rows of the matrix."""
    cols: slice
    """Columns of the matrix."""
    values: NDArray[Any]
    """(rows, cols); valid until the next one is yielded."""


class SourceOfTiles(ABC):
    """What passes over tiles read: a `TileSource`, or one made of it."""

    kernels: Sequence[Kernel]
    """Kernels of the values."""

    def part(self, rows: slice, cols: slice) -> "SourceOfTiles":
        """Source of the tiles within these rows and columns, with no more data than they need."""
        del rows, cols
        return self

    @abstractmethod
    def __call__(self, group: Group, *, in_strips: bool = False) -> Iterator[TileValues]:
        """Yield the values of all kernels for each tile of a group, i <= j if symmetric.

        With `in_strips` a tile is yielded by strips of rows if possible, each strip for all kernels
        before the next one, so that values are used while they are in the cache.
        """


@dataclass(eq=False)
class TileSource(SourceOfTiles):
    """Source of the tiles of kernels on one store, pickled without data."""

    path: Place
    kernels: Sequence[Kernel]
    compute: bool = False
    """Whether tiles are computed from the samples, even if they are stored."""
    norms2: tuple[Floats, Floats] | None = None
    """Squared norms of row and column samples, by which kernels are derived from stored inner
    products of samples that are not unit vectors."""

    @classmethod
    def joined(cls, sources: Sequence["TileSource"]) -> "TileSource":
        """One source for the kernels of several, on the same store."""
        first = sources[0]
        norms2 = next((s.norms2 for s in sources if s.norms2 is not None), None)
        kernels = [kernel for source in sources for kernel in source.kernels]
        return cls(first.path, kernels, compute=first.compute, norms2=norms2)

    def __call__(self, group: Group, *, in_strips: bool = False) -> Iterator[TileValues]:
        """Yield values, see `SourceOfTiles`."""
        store = GramStore.open(self.path)
        if self.compute and store.header.graph is not None:
            yield from _of_nodes(store, group)
            return
        if self.compute:
            yield from _computed(store, self.kernels, group, in_strips)
            return
        tiling = store.header.tiling
        for i, j in group:
            for number, kernel in enumerate(self.kernels):
                values = self._read(store, kernel, i, j)
                yield TileValues(i, j, number, tiling.rows(i), tiling.cols(j), values)

    def _read(self, store: GramStore, kernel: Kernel, i: int, j: int) -> NDArray[Any]:
        index = store.index_of(kernel)
        if index is not None:
            return store.read_tile(i, j, index)
        tiling = store.header.tiling
        products = np.ascontiguousarray(store.read_tile(i, j), dtype=np.float64)
        rows, cols = np.ones(products.shape[0]), np.ones(products.shape[1])
        if self.norms2 is not None:
            rows, cols = self.norms2[0][tiling.rows(i)], self.norms2[1][tiling.cols(j)]
            largest = kernel.largest_norm2(store.header.dtype)
            kernel.check_norms2(rows, largest, "the samples", tiling.rows(i).start)
            kernel.check_norms2(cols, largest, "the samples", tiling.cols(j).start)
        return kernel.of_product(products, rows, cols).astype(store.header.dtype, copy=False)


class HeldTiles(SourceOfTiles):
    """Source that keeps the tiles of as many groups as fit the memory, from their first pass on.

    Later passes have the same strips of the same bits, so results do not depend on the memory. The
    groups that came first are kept: to drop the oldest would keep none until it is needed again.
    Entries have `itemsize` bytes each, and `room` bytes may be kept, in this process.
    """

    def __init__(self, source: SourceOfTiles, tiling: Tiling, itemsize: int, room: int) -> None:
        self.kernels = source.kernels
        self._source = source
        self._tiling = tiling
        self._itemsize = itemsize
        self._room = room
        self._lock = Lock()
        self._groups: dict[Group, list[TileValues]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without tiles, which would travel with every task, and a lock."""
        raise TypeError("tiles in memory are those of one process")

    def __call__(self, group: Group, *, in_strips: bool = False) -> Iterator[TileValues]:
        """Yield values, see `SourceOfTiles`."""
        held = self._groups.get(group) if in_strips else None
        if held is not None:
            yield from held
        elif in_strips and self._reserve(group):
            yield from self._kept(group)
        else:
            yield from self._source(group, in_strips=in_strips)

    def _kept(self, group: Group) -> Iterator[TileValues]:
        """Values of a group for which there is room, kept when the last one was yielded."""
        kept = []
        try:
            for values in self._source(group, in_strips=True):
                kept.append(replace(values, values=values.values.copy()))
                yield values
        except BaseException:
            with self._lock:
                self._room += self._bytes(group)
            raise
        self._groups[group] = kept

    def _reserve(self, group: Group) -> bool:
        """Take the room of a group, if there is enough."""
        with self._lock:
            size = self._bytes(group)
            fits = size <= self._room
            self._room -= size if fits else 0
        return fits

    def _bytes(self, group: Group) -> int:
        tiling = self._tiling
        edges = ((tiling.rows(i), tiling.cols(j)) for i, j in group)
        entries: int = sum((r.stop - r.start) * (c.stop - c.start) for r, c in edges)
        return entries * self._itemsize * len(self.kernels)


class _Array:
    """A buffer that is allocated once and used for blocks of different shapes."""

    def __init__(self, entries: int, dtype: Any) -> None:
        self.entries = entries
        self._flat = np.empty(entries, dtype)

    def take(self, shape: tuple[int, int]) -> NDArray[Any]:
        """Start of the buffer as a C-ordered block."""
        return self._flat[: shape[0] * shape[1]].reshape(shape)


def _computed(
    store: GramStore, kernels: Sequence[Kernel], group: Group, in_strips: bool
) -> Iterator[TileValues]:
    header, tiling = store.header, store.header.tiling
    evaluate = _evaluator(kernels, header, in_strips)
    for i, j, rows, cols in _blocks(store, group):
        first = tiling.rows(i).start
        for number, part, values in evaluate(rows, cols):
            place = slice(first + part.start, first + part.stop)
            yield TileValues(i, j, number, place, tiling.cols(j), values)


def _evaluator(kernels: Sequence[Kernel], header: Header, in_strips: bool) -> _Evaluate:
    """Function that computes the values of kernels from two blocks of samples."""
    entries, same_type = header.tile**2, header.dtype == header.product_dtype
    spherical = [kernel for kernel in kernels if isinstance(kernel, SphericalKernel)]
    if len(spherical) < len(kernels):
        results = _Array(entries, header.dtype)
        product = results if same_type else _Array(entries, header.product_dtype)
        return lambda rows, cols: _apart(kernels, rows, cols, product, results)
    if len(kernels) == 1 and same_type and not in_strips:
        results = _Array(entries, header.dtype)
        return lambda rows, cols: _apart(kernels, rows, cols, results, results)
    product = _Array(entries, header.product_dtype)
    strip = max(STRIP_BYTES // np.dtype(header.product_dtype).itemsize, header.tile)
    results = _Array(min(entries, strip) if in_strips else entries, header.dtype)
    return lambda rows, cols: _together(spherical, rows, cols, product, results)


def _apart(
    kernels: Sequence[Kernel], rows: Rows, cols: Rows | None, product: _Array, results: _Array
) -> Iterator[tuple[int, slice, NDArray[Any]]]:
    """Values of each kernel from its own inner products, in place."""
    shape = _shape(rows, cols)
    for number, kernel in enumerate(kernels):
        values = kernel.of_rows(rows, cols, product.take(shape))
        if product is not results:
            result = results.take(shape)
            np.copyto(result, values, casting="same_kind")
            values = result
        yield number, slice(0, shape[0]), values


def _together(
    kernels: Sequence[SphericalKernel],
    rows: Rows,
    cols: Rows | None,
    product: _Array,
    results: _Array,
) -> Iterator[tuple[int, slice, NDArray[Any]]]:
    """Values of spherical kernels from the same cosines, in strips of rows that fit a result."""
    shape = _shape(rows, cols)
    cosines = kernels[0].cosines(rows, cols, product.take(shape))
    for part in blocks(shape[0], max(1, results.entries // shape[1])):
        for number, kernel in enumerate(kernels):
            result = results.take((part.stop - part.start, shape[1]))
            kernel.evaluate(cosines[part], result)
            yield number, part, result


def _shape(rows: Rows, cols: Rows | None) -> tuple[int, int]:
    return rows.shape[0], (rows if cols is None else cols).shape[0]


def _blocks(store: GramStore, group: Group) -> Iterator[tuple[int, int, Rows, Rows | None]]:
    """Tiles with their samples, column by column; None for the columns of a diagonal tile."""
    tiling = store.header.tiling
    above, left = extent(tiling, group)
    rows = cols = store.samples.read("rows", above)
    if not (tiling.symmetric and above == left):
        cols = store.samples.read("rows" if tiling.symmetric else "cols", left)
    for i, j in sorted(group, key=lambda tile: tile[::-1]):
        diagonal = tiling.symmetric and i == j
        block = rows[within(tiling.rows(i), above)]
        yield i, j, block, None if diagonal else cols[within(tiling.cols(j), left)]


def _of_nodes(store: GramStore, group: Group) -> Iterator[TileValues]:
    """Tiles of a column of the matrix of graph nodes, from the first one to the last."""
    header, tiling = store.header, store.header.tiling
    (kernel,), j = store.kernels, group[0][1]
    S = store.samples.read("rows", slice(0, header.n_rows))
    if not (isinstance(S, csr_array) and isinstance(kernel, NodeKernel)):
        raise CorruptTileError(f"{store.path} has no sparse similarity: compute it again")
    spectrum = NodeSpectrum.of_json(header.graph or {})
    columns = tiling.cols(j)
    values = np.empty((extent(tiling, group)[0].stop, columns.stop - columns.start))
    NodeColumns(S, kernel, spectrum).fill(columns, values)
    for i, _ in group:
        tile: NDArray[Any] = values[tiling.rows(i)]
        if i == j:
            mirror_upper(tile)
        tile = np.ascontiguousarray(tile, header.dtype)
        yield TileValues(i, j, 0, tiling.rows(i), columns, tile)


def extent(tiling: Tiling, group: Group) -> tuple[slice, slice]:
    """Range of rows and columns that a group of tiles covers."""
    rows, cols = [i for i, _ in group], [j for _, j in group]
    return (
        slice(tiling.rows(min(rows)).start, tiling.rows(max(rows)).stop),
        slice(tiling.cols(min(cols)).start, tiling.cols(max(cols)).stop),
    )


def within(part: slice, whole: slice) -> slice:
    """A slice relative to the start of a larger one."""
    return slice(part.start - whole.start, part.stop - whole.start)
