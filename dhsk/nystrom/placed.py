"""Mapped samples for passes: in memory, read in every pass, or in a folder of all workers."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.execution.tasks import Executor
from dhsk.execution.threads import Threads
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.row_map import RowMap
from dhsk.gram.storage.staged import StagedSamples
from dhsk.kernels import Kernel
from dhsk.nystrom.spans import Basis, FeatureMatrix, SpanSource, of_rows, of_samples, of_staged
from dhsk.samples import Samples

_DIAGONAL_ROWS: Final = 64
"""Rows whose kernel matrix is computed for its diagonal: a small share of a pass."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Mapped samples, wherever they are stored."""

    n: int
    """Number of samples."""
    kernel: Kernel
    dtype: str
    """Type of the rows and of the kernel values."""
    source: SpanSource
    """Begins a pass."""
    take: Callable[[Indices], Rows]
    """Gives the mapped rows of some samples, in any order, with repeats."""
    executor: Executor
    """Runs passes."""
    fingerprint: str | None = None
    """Fingerprint of the samples before the map, if it is known."""
    on_device: bool = False
    """Whether a device computes kernel values in passes."""

    def values(self, landmarks: Rows, root: Floats | None = None) -> FeatureMatrix:
        """Kernel values of all samples and landmarks, times a root, computed in every pass."""
        return self._matrix(Basis(self.kernel, landmarks, self.on_device), root)

    def only(self, some: Indices, executor: Executor) -> "Placed":
        """Some of the samples, in memory."""
        rows = self.take(some)
        return Placed(
            len(some),
            self.kernel,
            self.dtype,
            of_rows(rows, on_device=self.on_device),
            lambda chosen: rows[chosen],
            executor,
            on_device=self.on_device,
        )

    def trace(self) -> float:
        """Sum of the kernel of each sample with itself."""
        if self.kernel.unit_diagonal:
            return float(self.n)
        return float(sum(float(part.sum()) for part in self._diagonals()))

    def diagonal(self) -> Floats:
        """Kernel of each sample with itself, (N,)."""
        if self.kernel.unit_diagonal:
            return np.ones(self.n)
        return np.concatenate(list(self._diagonals()))

    def _diagonals(self) -> Iterator[Floats]:
        """Diagonal of each span."""
        own = Diagonal(self.kernel, self.take(np.zeros(1, np.intp)))
        yield from self._matrix(own).map(_first_column, ())

    def _matrix(self, basis: Basis, root: Floats | None = None) -> FeatureMatrix:
        dtype = np.dtype(self.dtype)
        return FeatureMatrix(
            self.source, self.n, self.executor, dtype=dtype, basis=basis, root=root
        )


class Diagonal(Basis):
    """Kernel of each row with itself, as one feature; its landmark may be any row."""

    def of(self, rows: Rows) -> NDArray[Any]:
        """Kernel of rows with themselves, (rows, 1)."""
        parts = (rows[part] for part in blocks(rows.shape[0], _DIAGONAL_ROWS))
        return np.concatenate([np.diagonal(self.kernel.of_rows(part)) for part in parts])[:, None]


def _first_column(parts: Iterable[tuple[slice, NDArray[Any]]]) -> Floats:
    return np.concatenate([values[:, 0] for _, values in parts]).astype(np.float64)


def in_memory(rows: Rows, kernel: Kernel, threads: int, *, on_device: bool = False) -> Placed:
    """Mapped samples in memory, (N, dim)."""
    return Placed(
        rows.shape[0],
        kernel,
        rows.dtype.name,
        of_rows(rows, on_device=on_device),
        lambda some: rows[some],
        Threads(threads),
        on_device=on_device,
    )


def in_source(
    samples: Samples, row_map: RowMap, threads: int, *, on_device: bool = False
) -> Placed:
    """Samples that are read and mapped in every pass."""
    return Placed(
        samples.shape[0],
        row_map.kernel,
        row_map.dtype,
        of_samples(samples, row_map),
        lambda some: row_map.some_of(samples, some),
        Threads(threads),
        on_device=on_device,
    )


def in_folder(
    G: GramMatrix, row_bytes: float, executor: Executor, *, on_device: bool = False
) -> Placed:
    """Samples of a matrix that is computed on demand, in a folder that all workers read."""
    n, header = G.shape[0], G.header
    begin = of_staged(StagedSamples(G.path, header), n, row_bytes, on_device=on_device)

    def spans() -> Iterator[tuple[slice, Any]]:
        assert G.path.exists()  # a temporary folder lasts as long as G does
        yield from begin()

    return Placed(
        n,
        G.kernel,
        header.product_dtype,
        spans,
        G.staged_rows,
        executor,
        header.fingerprints[0],
        on_device,
    )
