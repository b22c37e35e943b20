"""Kernel matrices for solvers: computed from rows in memory, or a Gram matrix."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.caching import cached_value
from dhsk.errors import InputError
from dhsk.execution.kept_pass import pass_of_call
from dhsk.execution.limits import core_count
from dhsk.execution.threads import Threads
from dhsk.gram.memory import product_bytes
from dhsk.gram.prepare import takes_float32
from dhsk.gram.row_map import mapped_bytes
from dhsk.kernels import GaussianKernel, Kernel, StretchedKernel
from dhsk.kernels.centre import marked_rows
from dhsk.kernels.certified.evaluate import Reals
from dhsk.kernels.duplicates import are_distinct
from dhsk.kernels.rows import inner_product
from dhsk.models.combined import WithNorms, column_blocks, combined, rows_at_once
from dhsk.models.on_device import RowsOnDevice
from dhsk.run_progress import passes_of_call
from dhsk.samples import Samples
from dhsk.solvers.device_steps import WholeOnDevice
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import Combination, Panel, Source

EDGE: Final = 1024
"""Default edge of blocks of kernel values. Measured: 0.30 s for 4,096 samples of 393 features;
blocks of 2,048 took 0.32 s and four times the memory."""

_SMALLEST_EDGE: Final = 256
"""Edge of the smallest blocks. With less, sparse rows are made dense too often: measured, 64 took
ten times as long."""

_BLOCK_SHARE: Final = 16
"""Divisor of the allowed memory: the share of a block, at most."""

STRIP_ROWS: Final = 256
"""Rows of a block of an approximation, or of a pass, that are computed at a time."""

MOST_THREADS: Final = 8
"""Most concurrent blocks: with those that wait they take 72 MB."""


class RowsSource(Source):
    """The matrix of a kernel on rows in memory, computed in blocks when a solver reads it.

    Rows are mapped samples, (N, dim); float32 computes in float32. The values are the same bits
    with any number of threads, but may change with the edge of the blocks, see `edge_for`.
    """

    computes = True

    def __init__(
        self, rows: Rows, kernel: Kernel, threads: int = 1, edge: int | None = None
    ) -> None:
        self._edge = EDGE if edge is None else edge
        self.n = rows.shape[0]
        self.dtype = rows.dtype
        self._rows = rows
        self._kernel = kernel
        self._executor = Threads(min(threads, MOST_THREADS))

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples."""
        K = np.empty((len(members), padded(len(members))), self.dtype)
        K[:, len(members) :] = 0.0
        if self._on_device is not None and self._on_device.block(members, K[:, : len(members)]):
            return K
        rows = self._rows[members]
        pairs, passes = list(self._pairs(len(members))), passes_of_call()
        tasks = ((K, rows, i, j) for i, j in pairs)
        for done, _ in enumerate(self._executor.run(self._write, tasks, ordered=True), 1):
            passes.part(done, len(pairs))
        return K

    def _write(self, K: NDArray[Any], rows: Rows, i: slice, j: slice) -> None:
        """Write a block of values, and its transpose: the task of a thread."""
        _, _, K[i, j] = self._values(rows, i, rows, j)
        if i != j:
            K[j, i] = K[i, j].T

    def product(self, V: Floats) -> Floats:
        """Product with V."""
        found = None if self._on_device is None else self._on_device.product(V)
        if found is not None:
            return found
        out, passes = np.zeros((self.n, V.shape[1])), passes_of_call()
        pairs, kept = list(self._pairs(self.n)), pass_of_call(out)
        tasks = ((i, j, V) for i, j in pairs[kept.done :])
        for i, j, above, below in self._executor.run(self._products, tasks, ordered=True):
            out[i] += above
            if below is not None:
                out[j] += below
            kept.advance()
            passes.part(kept.done, len(pairs))
        return out

    def _products(
        self, i: slice, j: slice, V: Floats
    ) -> tuple[slice, slice, Floats, Floats | None]:
        """Products of a block and of its transpose with their parts of V: the task of a thread.

        In strips that stay in the cache, in float64: measured on 40,000 rows of 100 features in
        float32, 1.3 ns a pair. Whole blocks took 1.7, and 3.7 where each product converted them.
        """
        if i == j:
            _, _, values = self._values(self._rows, i, self._rows, j)
            return i, j, values.astype(np.float64, copy=False) @ V[j], None
        rows, columns, own = self._rows[i], self._rows[j], V[i]
        height = min(rows.shape[0], STRIP_ROWS if isinstance(rows, np.ndarray) else self._edge)
        buffer = np.empty((height, columns.shape[0]), self.dtype)
        above, below = np.empty(own.shape), np.zeros((columns.shape[0], V.shape[1]))
        for some in blocks(rows.shape[0], height):
            strip = rows[some]
            values = self._between(strip, columns, buffer[: strip.shape[0]])
            values = values.astype(np.float64, copy=False)
            above[some] = values @ V[j]
            below += values.T @ own[some]
        return i, j, above, below

    def panels(self, rows: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Entries between some samples and groups of samples."""
        for number, group in enumerate(groups):
            for i, j in product(blocks(len(rows), self._edge), blocks(len(group), self._edge)):
                values = self._kernel.of_rows(self._rows[rows[i]], self._rows[group[j]])
                places = np.arange(i.start, i.stop), np.arange(j.start, j.stop)
                yield Panel(places[0], number, places[1], values)

    def combine(self, parts: Sequence[Combination]) -> list[Floats]:
        """Combinations of columns, on all cores or a device."""
        found = None if self._on_device is None else self._on_device.combined(parts)
        if found is not None:
            return found
        out = [np.zeros((len(part.rows), part.coef.shape[1])) for part in parts]
        kept = pass_of_call(*out)
        tasks = (
            (number, part, columns, some)
            for number, part in enumerate(parts)
            for columns in [self._columns(part)]
            for some in blocks(len(part.rows), rows_at_once(len(part.rows)))
        )
        left = islice(tasks, kept.done, None)
        for number, some, own in Threads(core_count()).run(self._task, left, ordered=True):
            out[number][some] = own
            kept.advance()
        return out

    def _columns(self, part: Combination) -> Any:
        """What the tasks of a combination share: its columns in blocks, or their sum."""
        columns: Any = self._rows[part.columns]
        if self.bilinear:
            return columns.T @ part.coef
        return column_blocks(columns, part.coef, part.ends)

    def _task(
        self, number: int, part: Combination, columns: Any, some: slice
    ) -> tuple[int, slice, Floats]:
        """Combinations at some rows: the task of a thread."""
        return number, some, self._combined(part, columns, some)

    def _combined(self, part: Combination, columns: Any, some: slice) -> Floats:
        """Combinations at some rows."""
        rows: Any = self._rows[part.rows[some]]
        if self.bilinear:
            return np.asarray(rows @ columns)
        shared = np.isin(part.rows[some], part.columns, assume_unique=True).any()
        between = self._kernel.of_rows if shared else self._between
        return combined(between, rows, columns, part.coef.shape[1])

    def in_single(self, samples: Indices) -> Source | None:
        """Rows of some samples in float32, if they take less than their matrix then saves."""
        if self.dtype == np.float32 or self.on_device:
            return None
        rows: Any = self._rows
        if isinstance(rows, np.ndarray) and 2 * rows.shape[1] > len(samples):
            return None
        rows = rows[samples]
        if not _takes_single(self._kernel, rows):
            return None
        found = RowsSource(rows.astype(np.float32), self._kernel, edge=self._edge)
        found._executor = self._executor
        return found

    def diagonal(self) -> Floats:
        """Diagonal entries."""
        if self._kernel.unit_diagonal:
            return np.ones(self.n)
        parts = (self._kernel.of_rows(self._rows[part]) for part in blocks(self.n, self._edge))
        return np.concatenate([np.diagonal(values) for values in parts]).astype(np.float64)

    def _pairs(self, n: int) -> Iterator[tuple[slice, slice]]:
        """Blocks on and above the diagonal of a matrix of n samples."""
        parts = list(blocks(n, self._edge))
        yield from ((i, j) for number, i in enumerate(parts) for j in parts[number:])

    def _values(
        self, first: Rows, i: slice, second: Rows, j: slice
    ) -> tuple[slice, slice, NDArray[Any]]:
        """Compute one block between slices of two sets of rows: the task of a thread."""
        if first is second and i == j:
            return i, j, self._kernel.of_rows(first[i])
        return i, j, self._between(first[i], second[j])

    def _between(self, rows: Rows, columns: Rows, out: Reals | None = None) -> NDArray[Any]:
        """Values of different samples, which may be equal."""
        if self._distinct:
            return self._kernel.of_distinct_rows(rows, columns, out)
        return self._kernel.of_rows(rows, columns, out)

    def linear_rows(self, samples: Indices) -> Rows | None:
        """Rows of some samples, if the entries are their inner products."""
        rows: Any = self._rows
        return rows[samples] if self.bilinear else None

    def approximate(self, room: int) -> Source:
        """The rows in single precision, where that is safe."""
        if self.dtype == np.float32 or not _takes_single(self._kernel, self._rows):
            return self
        rows: Any = self._rows
        if (4 * rows.size if isinstance(rows, np.ndarray) else 8 * rows.nnz) > room:
            return self
        return ApproximateSource(rows.astype(np.float32), self._kernel, core_count(), self._edge)

    @cached_value
    def bilinear(self) -> bool:
        """Whether sums over rows are products with one vector."""
        return self._kernel.bilinear and marked_rows(self._rows) is None

    @property
    def on_device(self) -> bool:
        """Whether passes over the matrix are computed on the device of the code in progress."""
        return self._on_device is not None and self._on_device.pays(self.n**2)

    def whole_on_device(self, samples: Indices) -> WholeOnDevice | None:
        """Matrix of some samples on the device of the code in progress, if it fits there."""
        return None if self._on_device is None else self._on_device.whole(samples)

    @cached_value
    def _on_device(self) -> RowsOnDevice | None:
        """The rows for a device; None of sparse rows, and where products are with sums of rows."""
        if self.bilinear or not isinstance(self._rows, np.ndarray):
            return None
        exact = not isinstance(self, ApproximateSource)
        return RowsOnDevice(self._kernel, self._rows, exact=exact)

    @cached_value
    def _distinct(self) -> bool:
        """Whether no two samples are equal: hashed once, and not for every block."""
        return are_distinct(self._rows)


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
    edge = EDGE
    while (
        allowed is not None
        and edge > _SMALLEST_EDGE
        and _BLOCK_SHARE * evaluation_bytes(rows, edge) > allowed
    ):
        edge //= 2
    return edge


class ApproximateSource(RowsSource):
    """A `RowsSource` in single precision: nearly symmetric, and equal rows are like any others."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._buffer = np.zeros((0, 0), np.float32)
        self._norms2 = self._kernel.norms2(self._rows)

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples, valid until the next one."""
        n = len(members)
        if self._buffer.shape != (n, padded(n)):
            self._buffer = np.zeros((n, padded(n)), np.float32)
        if self._on_device is not None and self._on_device.block(members, self._buffer[:, :n]):
            return self._buffer
        columns = self._with_norms(members)
        tasks = ((columns, part) for part in blocks(n, STRIP_ROWS))
        for _ in self._executor.run(self._fill, tasks):
            continue
        return self._buffer

    def _fill(self, columns: WithNorms, part: slice) -> None:
        """Values of some rows of a block: the task of a thread."""
        strip, n = self._buffer[part], len(columns.norms2)
        whole = strip.shape[1] == n
        values = self._values_of(columns[part], columns, strip if whole else None)
        if not whole:
            strip[:, :n] = values

    def _columns(self, part: Combination) -> Any:
        """Columns of a combination in blocks, or their sum."""
        if self.bilinear:
            return super()._columns(part)
        return column_blocks(self._with_norms(part.columns), part.coef, part.ends)

    def _combined(self, part: Combination, columns: Any, some: slice) -> Floats:
        """Combinations at some rows."""
        if self.bilinear:
            return super()._combined(part, columns, some)
        rows = self._with_norms(part.rows[some])
        return combined(self._values_of, rows, columns, part.coef.shape[1])

    def _with_norms(self, chosen: Indices) -> WithNorms:
        return WithNorms(self._rows[chosen], self._norms2[chosen])

    def _values_of(self, rows: WithNorms, columns: WithNorms, out: Reals | None = None) -> Any:
        product = inner_product(rows.rows, columns.rows, out)
        return self._kernel.of_product(product, rows.norms2, columns.norms2)


def _takes_single(kernel: Kernel, rows: Rows) -> bool:
    """Whether values of a kernel on these rows are about right in single precision."""
    if takes_float32(kernel):
        return not isinstance(kernel, StretchedKernel)
    if not isinstance(kernel, GaussianKernel):
        return False
    try:
        kernel.check_products(rows, dtype="float32")
    except InputError:
        return False
    return True
