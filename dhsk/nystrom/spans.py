"""Features of all samples, span by span: what passes of the solver and of Cholesky read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.execution.tasks import Executor
from dhsk.execution.threads import Threads
from dhsk.gram.row_map import RowMap
from dhsk.gram.storage.staged import StagedSamples
from dhsk.kernels import Kernel
from dhsk.samples import Samples

_LEAST_SPANS: Final = 8
_SPAN_ROWS: Final = (1024, 65536)
"""Least and most rows of a span: enough for a product, few enough to be held by every thread."""

_SPAN_BYTES: Final = 128 * 2**20
"""Mapped rows that a span has at most."""

BLOCK_BYTES: Final = 32 * 2**20
"""Kernel values that a task holds at a time."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions that features are made of: the kernel with each landmark.

    Attributes
    ----------
    kernel
        The kernel.
    landmarks
        Mapped rows, (k, dim).
    """

    kernel: Kernel
    landmarks: Rows

    def of(self, rows: Rows) -> NDArray[Any]:
        """Kernel between rows and landmarks, (rows, k)."""
        return self.kernel.of_rows(rows, self.landmarks)


class Span(Protocol):
    """Consecutive samples."""

    def blocks(self, basis: Basis | None) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Rows counted from the span's first, and their features, (rows, k)."""

    def take(self, inside: Indices, basis: Basis | None) -> NDArray[Any]:
        """Features of some rows, counted from the span's first."""


@dataclass(frozen=True, eq=False)
class HeldFeatures:
    """A span whose features are in memory.

    Attributes
    ----------
    values
        (rows, k).
    """

    values: NDArray[Any]

    def blocks(self, basis: Basis | None) -> Iterator[tuple[slice, NDArray[Any]]]:  # noqa: ARG002
        """Features as they are."""
        for part in blocks(len(self.values), block_rows(self.values[:1].nbytes)):
            yield part, self.values[part]

    def take(self, inside: Indices, basis: Basis | None) -> NDArray[Any]:  # noqa: ARG002
        """Features of some rows."""
        return self.values[inside]


class _Computed(ABC):
    """A span whose features are computed whenever they are asked for."""

    @abstractmethod
    def read(self) -> Rows:
        """The mapped samples, (rows, dim)."""

    def blocks(self, basis: Basis | None) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Kernel values."""
        assert basis is not None  # only features that are held need none
        rows = self.read()
        row_bytes = basis.landmarks.shape[0] * rows.dtype.itemsize
        for part in blocks(rows.shape[0], block_rows(row_bytes)):
            yield part, basis.of(rows[part])

    def take(self, inside: Indices, basis: Basis | None) -> NDArray[Any]:
        """Kernel values of some rows."""
        assert basis is not None
        return basis.of(self.read()[inside])


@dataclass(frozen=True, eq=False)
class HeldRows(_Computed):
    """A span whose mapped samples are in memory.

    Attributes
    ----------
    rows
        (rows, dim).
    """

    rows: Rows

    def read(self) -> Rows:
        """The mapped samples."""
        return self.rows


@dataclass(frozen=True, eq=False)
class StagedRows(_Computed):
    """A span whose mapped samples lie in a folder that every worker reads.

    Attributes
    ----------
    staged
        The folder.
    part
        Which samples.
    """

    staged: StagedSamples
    part: slice

    def read(self) -> Rows:
        """The mapped samples."""
        return self.staged.read("rows", self.part)


def block_rows(row_bytes: int) -> int:
    """Rows of features that a task holds at a time."""
    return max(256, BLOCK_BYTES // max(1, row_bytes) // 256 * 256)


def span_rows(n: int, row_bytes: float) -> int:
    """Rows of a span of N samples; the number of spans depends on nothing else.

    Parameters
    ----------
    n
        Number of samples.
    row_bytes
        Bytes of a mapped sample.
    """
    least, most = _SPAN_ROWS
    rows = min(most, int(_SPAN_BYTES / max(1.0, row_bytes)), -(-n // _LEAST_SPANS))
    return max(least, rows)


SpanSource = Callable[[], Iterator[tuple[slice, Any]]]
"""Begins a pass: spans, with the samples that they hold."""


def of_rows(rows: Rows) -> SpanSource:
    """Spans of mapped samples in memory, (N, dim)."""
    n = rows.shape[0]
    size = span_rows(n, _bytes_of(rows) / n)
    return lambda: ((part, HeldRows(rows[part])) for part in blocks(n, size))


def of_features(values: NDArray[Any]) -> SpanSource:
    """Spans of features in memory, (N, k)."""
    n = len(values)
    size = span_rows(n, 0)
    return lambda: ((part, HeldFeatures(values[part])) for part in blocks(n, size))


def of_samples(samples: Samples, row_map: RowMap) -> SpanSource:
    """Spans of samples that are read, and mapped, once a pass."""
    n, dim = samples.shape
    item = np.dtype(row_map.dtype).itemsize
    each = item * dim if samples.nnz is None else (item + 4) * samples.nnz / n
    size = span_rows(n, each)

    def spans() -> Iterator[tuple[slice, HeldRows]]:
        for first, rows in row_map.blocks(samples, size):
            yield slice(first, first + rows.shape[0]), HeldRows(rows)

    return spans


def of_staged(staged: StagedSamples, n: int, row_bytes: float) -> SpanSource:
    """Spans of samples in a folder that every worker reads."""
    size = span_rows(n, row_bytes)
    return lambda: ((part, StagedRows(staged, part)) for part in blocks(n, size))


def _bytes_of(rows: Any) -> int:
    return int(rows.data.nbytes + rows.indices.nbytes if hasattr(rows, "indptr") else rows.nbytes)


class FeatureMatrix:
    """Features Z of all samples, (N, k), by passes; they may never be there as a whole.

    Parameters
    ----------
    spans
        Begins a pass.
    n
        Number of samples.
    executor
        Runs passes.
    dtype
        Type of the spans' values.
    basis
        What spans compute their values of; None where they hold them.
    root
        R of Z = K R, (k, r), float64, K being the values of the basis; None where the spans hold
        Z itself.
    values
        Z where it is in memory, (N, k).
    """

    def __init__(
        self,
        spans: SpanSource,
        n: int,
        executor: Executor,
        *,
        dtype: str,
        basis: Basis | None = None,
        root: Floats | None = None,
        values: NDArray[Any] | None = None,
    ) -> None:
        self.n = n
        self.values = values
        self.dtype = np.dtype(dtype)
        self.root = root
        across = values if basis is None else basis.landmarks.T
        assert across is not None  # one of both is given
        self.inner = int(across.shape[1])
        self.width = self.inner if root is None else root.shape[1]
        self._spans = spans
        self._executor = executor
        self._own_basis = basis
        self._basis = None if basis is None else executor.share(basis)

    @classmethod
    def held(cls, values: NDArray[Any], executor: Executor) -> "FeatureMatrix":
        """Features in memory, (N, k); passes run on threads of this process."""
        dtype = values.dtype.name
        return cls(of_features(values), len(values), executor, dtype=dtype, values=values)

    def map(
        self, function: Callable[..., Any], along: Sequence[NDArray[Any]], *shared: Any
    ) -> Iterator[Any]:
        """Make a pass.

        Parameters
        ----------
        function
            Called as ``function(blocks, *along, *shared)`` for each span, with `Span.blocks` of
            it; it must be importable by name.
        along
            Arrays of a row for each sample, (N, ...), cut like the spans.
        *shared
            What all calls are given.

        Yields
        ------
        Any
            What each call returns, in the order of the spans wherever they ran.
        """
        ready = self._executor.share(shared)
        tasks = (
            (function, span, self._basis, tuple(array[part] for array in along), ready)
            for part, span in self._spans()
        )
        yield from self._executor.run(_of_span, tasks, ordered=True)

    def whole(
        self,
        function: Callable[..., Any],
        along: tuple[NDArray[Any], ...],
        calls: Sequence[tuple[Any, ...]],
    ) -> Iterator[Any]:
        """Call a function on all samples, once with each of some arguments, side by side.

        Parameters
        ----------
        function, along
            As for `map`; the features must be in memory.
        calls
            What each call is given besides.

        Yields
        ------
        Any
            What each call returns, in their order.
        """
        assert self.values is not None
        span = HeldFeatures(self.values)
        tasks = ((function, span, None, along, shared) for shared in calls)
        yield from self._executor.run(_of_span, tasks, ordered=True)

    def into(self, V: Floats) -> Floats:
        """Coefficients of the spans' values that give the same function as V of the features.

        Parameters
        ----------
        V
            Coefficients, the last row of the constant feature 1, (width + 1, columns).
        """
        return V if self.root is None else np.vstack([self.root @ V[:-1], V[-1:]])

    def back(self, A: Floats) -> Floats:
        """Adjoint of `into`."""
        return A if self.root is None else np.vstack([self.root.T @ A[:-1], A[-1:]])

    def take(self, chosen: Indices) -> NDArray[Any]:
        """Features of some samples, (m, width), m ascending numbers."""
        found = np.empty((len(chosen), self.width), self.dtype)
        root = None if self.root is None else self.root.astype(self.dtype)
        done = 0
        for part, span in self._spans():
            inside = chosen[(chosen >= part.start) & (chosen < part.stop)] - part.start
            if len(inside):
                values = span.take(inside, self._own_basis)
                into = slice(done, done + len(inside))
                found[into] = values if root is None else values @ root
                done = into.stop
        return found

    def part(self, chosen: Indices, threads: int) -> "FeatureMatrix":
        """Features of some samples in memory, for passes on threads of this process.

        Parameters
        ----------
        chosen
            Ascending numbers of samples, (m,).
        threads
            Tasks at a time.
        """
        return FeatureMatrix.held(self.take(chosen), Threads(threads))


def _of_span(
    function: Callable[..., Any],
    span: Span,
    basis: Basis | None,
    along: tuple[NDArray[Any], ...],
    shared: tuple[Any, ...],
) -> Any:
    """The task of a span."""
    return function(span.blocks(basis), *along, *shared)
