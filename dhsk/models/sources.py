"""Kernel matrices for solvers: computed from rows in memory, or a Gram matrix."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.execution.threads import Threads
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.memory import product_bytes
from dhsk.gram.row_map import mapped_bytes
from dhsk.gram.storage.indexing import by_block
from dhsk.kernels import Kernel
from dhsk.models.class_blocks import ClassBlocks
from dhsk.samples import Samples
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import Panel, repeat_to_padded

_EDGE: Final = 1024
"""Default edge of blocks of kernel values. Measured: 0.30 s for 4,096 samples of 393 features;
blocks of 2,048 took 0.32 s and four times the memory."""

_SMALLEST_EDGE: Final = 256
"""Edge of the smallest blocks. With less, sparse rows are made dense too often: measured, 64 took
ten times as long."""

_BLOCK_SHARE: Final = 16
"""Divisor of the allowed memory: the share of a block, at most."""

MOST_THREADS: Final = 8
"""Most concurrent blocks: with those that wait they take 72 MB."""

MULTIPLY_RATE: Final = 2.5e10
"""Assumed float64 operations of a core in a second. Measured on one core, the others idle: 45e9."""

READ_RATE: Final = 1.5e9
"""Assumed bytes of tiles that a core reads and evaluates in a second. Measured on one core, on
WebKB's cosines in the page cache: 2.6e9."""


class RowsSource:
    """The matrix of a kernel on rows in memory, computed in blocks when a solver reads it.

    Rows are mapped samples, (N, dim); float32 computes in float32. The values are the same bits
    with any number of threads, but may change with the edge of the blocks, see `edge_for`.
    """

    def __init__(
        self, rows: Rows, kernel: Kernel, threads: int = 1, edge: int | None = None
    ) -> None:
        self._edge = _EDGE if edge is None else edge
        self.n = rows.shape[0]
        self.dtype = rows.dtype
        self._rows = rows
        self._kernel = kernel
        self._executor = Threads(min(threads, MOST_THREADS))

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples."""
        rows = self._rows[members]
        K = np.zeros((len(members), padded(len(members))), self.dtype)
        for i, j, values in self._blocks(rows):
            K[i, j] = values
            if i != j:
                K[j, i] = values.T
        return K

    def product(self, V: Floats) -> Floats:
        """Product with V."""
        out = np.zeros((self.n, V.shape[1]))
        for i, j, values in self._blocks(self._rows):
            out[i] += values @ V[j]
            if i != j:
                out[j] += values.T @ V[i]
        return out

    def panels(self, rows: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Entries between some samples and groups of samples."""
        for number, group in enumerate(groups):
            for i, j in product(blocks(len(rows), self._edge), blocks(len(group), self._edge)):
                values = self._kernel.of_rows(self._rows[rows[i]], self._rows[group[j]])
                places = np.arange(i.start, i.stop), np.arange(j.start, j.stop)
                yield Panel(places[0], number, places[1], values)

    def diagonal(self) -> Floats:
        """Diagonal entries."""
        if self._kernel.unit_diagonal:
            return np.ones(self.n)
        parts = (self._kernel.of_rows(self._rows[part]) for part in blocks(self.n, self._edge))
        return np.concatenate([np.diagonal(values) for values in parts]).astype(np.float64)

    def _blocks(self, rows: Rows) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        """Blocks on and above the diagonal, in the same order on any number of threads."""
        parts = list(blocks(rows.shape[0], self._edge))
        pairs = ((rows, i, rows, j) for number, i in enumerate(parts) for j in parts[number:])
        yield from self._executor.run(self._values, pairs, ordered=True)

    def _values(
        self, first: Rows, i: slice, second: Rows, j: slice
    ) -> tuple[slice, slice, NDArray[Any]]:
        """Compute one block between slices of two sets of rows: the task of a thread."""
        one = first is second and i == j
        return i, j, self._kernel.of_rows(first[i], None if one else second[j])


@dataclass(frozen=True, eq=False)
class RowsShape:
    """Numbers of samples, features and entries, on which the memory of mapped samples depends."""

    n: int
    dim: int
    itemsize: int
    """Bytes of an entry."""
    nnz: int | None = None
    """Entries of sparse samples; None if they are dense."""
    lengths: NDArray[Any] | None = None
    """Entries of each sparse sample, (n,); None for the average."""

    @classmethod
    def of(cls, rows: Rows) -> "RowsShape":
        """Shape of rows in memory."""
        n, dim = rows.shape
        if isinstance(rows, np.ndarray):
            return cls(n, dim, rows.dtype.itemsize)
        return cls(n, dim, rows.dtype.itemsize, rows.nnz, np.diff(rows.indptr))

    @classmethod
    def of_samples(cls, samples: Samples, dtype: str) -> "RowsShape":
        """Shape of samples before the map; lengths are known for CSR with row pointers."""
        lengths = None if samples.indptr is None else np.diff(samples.indptr)
        return cls(*samples.shape, np.dtype(dtype).itemsize, samples.nnz, lengths)

    @property
    def mapped_bytes(self) -> int:
        """Peak memory while samples are mapped."""
        return mapped_bytes(self.n, self.dim, self.nnz, self.itemsize)

    @property
    def nbytes(self) -> int:
        """Memory of the mapped samples."""
        return self.mapped_bytes if self.nnz is None else self.mapped_bytes // 2

    def most_entries(self, rows: int) -> int:
        """Entries of the longest samples, as many as rows."""
        if self.lengths is None:
            return math.ceil((self.nnz or 0) * rows / self.n)
        return int(np.partition(self.lengths, self.n - rows)[self.n - rows :].sum())


def evaluation_bytes(rows: RowsShape, edge: int) -> int:
    """Memory of a `RowsSource` for each concurrent block, besides its rows and its result."""
    edge, item = min(edge, rows.n), rows.itemsize
    values = 3 * item * edge**2  # this block, one that waits, and a temporary of the kernel
    if rows.nnz is None:
        return values
    entries = rows.most_entries(edge)
    block = (item + 4) * entries
    return int(values + 2 * block + product_bytes(edge, rows.dim, block, entries / edge, item))


def edge_for(rows: RowsShape, allowed: int | None) -> int:
    """Samples of a block whose evaluation takes a small share of the allowed bytes, if any.

    It depends on the arguments alone: values may differ in the last bit with the size of a block.
    """
    edge = _EDGE
    while (
        allowed is not None
        and edge > _SMALLEST_EDGE
        and _BLOCK_SHARE * evaluation_bytes(rows, edge) > allowed
    ):
        edge //= 2
    return edge


class ClassesSource(RowsSource):
    """A `RowsSource` that computes the matrix of each class once and keeps it in memory.

    Each class is in a pair with every other: with ten classes, this takes a tenth of the bytes of
    the whole matrix and saves almost half of the products. codes are classes from 0, (N,).
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        codes: Indices,
        threads: int = 1,
        edge: int | None = None,
    ) -> None:
        super().__init__(rows, kernel, threads, edge)
        self._codes = codes
        self._of_class = [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
        self._kept: dict[int, NDArray[Any]] = {}

    @staticmethod
    def bytes_of(sizes: Iterable[int], itemsize: int) -> int:
        """Bytes of the matrices of classes of these sizes."""
        return sum(n * padded(n) for n in sizes) * itemsize

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples; that of two whole classes uses the matrices in memory."""
        a, b = (int(self._codes[members[end]]) for end in (0, -1))
        first, second = self._of_class[a], self._of_class[b]
        if a == b or len(members) != len(first) + len(second):
            return super().block(members)
        cut, end = len(first), len(members)
        K = np.zeros((end, padded(end)), self.dtype)
        K[:cut, :cut] = self._square(a)
        K[cut:, cut:end] = self._square(b)
        above, left = self._rows[first], self._rows[second]
        down, across = blocks(cut, self._edge), list(blocks(len(second), self._edge))
        parts = ((above, i, left, j) for i in down for j in across)
        for i, j, values in self._executor.run(self._values, parts):
            K[i, cut + j.start : cut + j.stop] = values
            K[cut + j.start : cut + j.stop, i] = values.T
        return K

    def _square(self, c: int) -> NDArray[Any]:
        """Matrix of a class."""
        members = self._of_class[c]
        if c not in self._kept:  # two threads may both compute it: the same values
            self._kept[c] = super().block(members)
        return self._kept[c][:, : len(members)]


class GramSource:
    """A symmetric Gram matrix: stored, derived, or computed from its samples on demand.

    `held` are the stored values in memory, if they fit there.
    """

    def __init__(self, G: GramMatrix, held: ClassBlocks | None = None) -> None:
        self.n = G.shape[0]
        self.dtype = G.dtype
        self.G = G
        self._held = held

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples, read from tiles, or computed if that takes less time."""
        K = None if self._held is None else self._held.pair(self.G.kernel, members)
        if K is not None:
            return K
        if not self._computing_pays(len(members)):
            return self.G.submatrix(members, repeat_to_padded(members))
        rows = RowsSource(self.G.staged_rows(members), self.G.kernel)
        return rows.block(np.arange(rows.n)).astype(self.dtype, copy=False)

    def _computing_pays(self, count: int) -> bool:
        """Whether multiplying samples takes less time than reading the tiles of their entries."""
        header = self.G.header
        if self.G.computed:
            return True
        if header.nnz[0] is not None:  # the cost of sparse products is not known here
            return False
        flops = float(count) ** 2 * header.dim
        return flops / MULTIPLY_RATE < self.n**2 / 2 * self.dtype.itemsize / READ_RATE

    def panels(self, rows: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Entries between some samples and groups of samples, each of one class."""
        if self._held is None:
            yield from self._panels_of_tiles(rows, groups)
            return
        columns = [np.arange(len(group)) for group in groups]
        for places in self._held.by_class(rows):
            for number, group in enumerate(groups):
                if len(group):
                    values = self._held.between(self.G.kernel, rows[places], group)
                    yield Panel(places, number, columns[number], values)

    def _panels_of_tiles(self, rows: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Parts of tiles, each of which is read once."""
        tiling = self.G.tiling
        own = by_block(rows, tiling.tile)
        others = [by_block(group, tiling.tile) for group in groups]
        for i, j in tiling.tiles():
            sides = ((i, j), (j, i)) if i != j else ((i, j),)
            used = [side for side in sides if side[0] in own]
            if not used:
                continue
            (tile,) = self.G.source(((i, j),))
            for row, column in used:
                values = tile.values if (row, column) == (i, j) else tile.values.T
                strip = values[own[row].inside]
                for number, group in enumerate(others):
                    if column in group:
                        part = strip.take(group[column].inside, axis=1)
                        yield Panel(own[row].place, number, group[column].place, part)

    def product(self, V: Floats) -> Floats:
        """Product with V, on the workers of the current client if there is one."""
        return self.G @ V

    def diagonal(self) -> Floats:
        """Diagonal entries."""
        return self.G.diagonal().astype(np.float64)
