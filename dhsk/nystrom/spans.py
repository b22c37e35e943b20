"""Features of all samples, span by span, for the passes of solvers and of Cholesky.

Features are computed anew rather than read: k values of 100 numbers each take less time than k
numbers from a disk of 300 MB/s. On a device they are computed in every pass, and only sums come
back: copying features would take longer than computing them. Rejected: futures that hold features
(lost with a worker, copied by a scheduler that balances).
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.devices import Device, current_device, fetched, moved
from dhsk.execution.tasks import Executor, told_as
from dhsk.execution.threads import Threads
from dhsk.gram.row_map import RowMap
from dhsk.gram.storage.staged import StagedSamples
from dhsk.kernels import Kernel
from dhsk.kernels.on_device import DeviceRows, blocks_from_device
from dhsk.samples import Samples

_LEAST_SPANS: Final = 8
_SPAN_ROWS: Final = (1024, 65536)
"""Least and most rows of a span: enough for a product, few enough for one span a thread."""

_SPAN_BYTES: Final = 128 * 2**20
"""Most bytes of the mapped rows of a span."""

_ON_DEVICE: Final = 16
"""Times larger are spans of a device, whose sums, of features by features, are copied back."""

BLOCK_BYTES: Final = 8 * 2**20
"""Bytes of the kernel values that a task computes at a time. Measured with 1,000 landmarks: passes
take as long as with four times as many, or up to a sixth less."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Basis functions of the features: the kernel with each landmark, mapped rows (k, dim)."""

    kernel: Kernel
    landmarks: Rows
    on_device: bool = False
    """Whether a device computes them in passes, if there is one."""

    @property
    def marked(self) -> tuple[Kernel, Rows]:
        """What tells it from others, for array jobs."""
        return self.kernel, self.landmarks

    def of(self, rows: Rows) -> NDArray[Any]:
        """Kernel values of rows and landmarks, (rows, k)."""
        return self.kernel.of_rows(rows, self.landmarks)


@dataclass(frozen=True, eq=False)
class InMemoryFeatures:
    """A span whose features are in memory, (rows, k)."""

    values: NDArray[Any]

    def blocks(self, basis: Basis | None) -> Iterator[tuple[slice, NDArray[Any]]]:  # noqa: ARG002
        """Slices of the span's rows, and their features, (rows, k)."""
        for part in blocks(len(self.values), block_rows(self.values[:1].nbytes)):
            yield part, self.values[part]

    def take(self, inside: Indices, basis: Basis | None) -> NDArray[Any]:  # noqa: ARG002
        """Features of some rows."""
        return self.values[inside]


@dataclass(frozen=True, eq=False)
class ComputedFeatures:
    """A span whose features are computed in every pass."""

    rows: Any
    """Mapped samples, (rows, dim), or those in a folder that every worker reads."""
    part: slice | None = None
    """The span among the samples in a folder."""

    def read(self) -> Rows:
        """Mapped samples, (rows, dim)."""
        rows: Rows = self.rows if self.part is None else self.rows.read("rows", self.part)
        return rows

    def blocks(self, basis: Basis | None) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Slices of the span's rows, and kernel values, (rows, k)."""
        assert basis is not None  # only features in memory need none
        rows = self.read()
        row_bytes = basis.landmarks.shape[0] * rows.dtype.itemsize
        for part in blocks(rows.shape[0], block_rows(row_bytes)):
            yield part, basis.of(rows[part])

    def take(self, inside: Indices, basis: Basis | None) -> NDArray[Any]:
        """Kernel values of some of the span's rows."""
        assert basis is not None
        return basis.of(self.read()[inside])

    def computed_on(self, device: Device, basis: Basis, use: Callable[[Any], Any]) -> Any:
        """What a function returns of blocks as in `blocks`, which are on a device."""
        sides = [basis.kernel.prepared(rows) for rows in (self.read(), basis.landmarks)]
        one = basis.kernel.device_pass(sides[0][0].dtype)
        assert one is not None  # or the device would not have been chosen
        with device.turn():
            rows, landmarks = (DeviceRows.put(device, *side) for side in sides)
            found = use(blocks_from_device(device, one, rows, landmarks, rows.rows.dtype))
            return fetched(device, found)


Span: TypeAlias = InMemoryFeatures | ComputedFeatures
"""Consecutive samples."""


def block_rows(row_bytes: int) -> int:
    """Rows of features that a task computes at a time, of row_bytes each."""
    return max(256, BLOCK_BYTES // max(1, row_bytes) // 256 * 256)


def span_rows(n: int, row_bytes: float, *, on_device: bool = False) -> int:
    """Rows of a span, from the number of samples, the bytes of a mapped one and the device."""
    (least, most), times = _SPAN_ROWS, _ON_DEVICE if on_device else 1
    rows = min(times * most, int(times * _SPAN_BYTES / max(1.0, row_bytes)), -(-n // _LEAST_SPANS))
    return max(least, rows)


SpanSource = Callable[[], Iterator[tuple[slice, Any]]]
"""Begins a pass: an iterator of slices of the samples, and their spans."""


def of_rows(rows: Rows, *, on_device: bool = False) -> SpanSource:
    """Spans of mapped samples in memory, (N, dim)."""
    n = rows.shape[0]
    size = span_rows(n, _bytes_of(rows) / n, on_device=on_device)
    return lambda: ((part, ComputedFeatures(rows[part])) for part in blocks(n, size))


def of_features(values: NDArray[Any]) -> SpanSource:
    """Spans of features in memory, (N, k)."""
    n = len(values)
    size = span_rows(n, 0)
    return lambda: ((part, InMemoryFeatures(values[part])) for part in blocks(n, size))


def of_samples(samples: Samples, row_map: RowMap) -> SpanSource:
    """Spans of samples that are read and mapped in every pass."""
    n, dim = samples.shape
    item = np.dtype(row_map.dtype).itemsize
    each = item * dim if samples.nnz is None else (item + 4) * samples.nnz / n
    size = span_rows(n, each)

    def spans() -> Iterator[tuple[slice, ComputedFeatures]]:
        for first, rows in row_map.blocks(samples, size):
            yield slice(first, first + rows.shape[0]), ComputedFeatures(rows)

    return spans


def of_staged(
    staged: StagedSamples, n: int, row_bytes: float, *, on_device: bool = False
) -> SpanSource:
    """Spans of samples in a folder that every worker reads."""
    size = span_rows(n, row_bytes, on_device=on_device)
    return lambda: ((part, ComputedFeatures(staged, part)) for part in blocks(n, size))


def _bytes_of(rows: Any) -> int:
    return int(rows.data.nbytes + rows.indices.nbytes if hasattr(rows, "indptr") else rows.nbytes)


@dataclass(eq=False)
class FeatureMatrix:
    """Features Z of all samples, (N, k), which passes read from memory or compute."""

    spans: SpanSource
    """Begins a pass."""
    n: int
    """Number of samples."""
    executor: Executor
    """Runs passes."""
    _: KW_ONLY
    dtype: "np.dtype[Any]"
    """Type of the spans' values."""
    basis: Basis | None = None
    """Basis of computed features; None for features in memory."""
    root: Floats | None = None
    """R, (k, r), float64, if Z = K R with the values K of the basis; None if those are Z."""
    values: NDArray[Any] | None = None
    """Z, (N, k), if it is in memory."""

    def __post_init__(self) -> None:
        across = self.values if self.basis is None else self.basis.landmarks.T
        assert across is not None  # one of both is given
        self.inner = int(across.shape[1])
        self.width = self.inner if self.root is None else self.root.shape[1]
        self._shared = None if self.basis is None else self.executor.share(self.basis)

    @classmethod
    def in_memory(cls, values: NDArray[Any], executor: Executor) -> "FeatureMatrix":
        """Features in memory, (N, k); passes must run on threads of this process."""
        spans = of_features(values)
        return cls(spans, len(values), executor, dtype=values.dtype, values=values)

    def map(
        self, function: Callable[..., Any], along: Sequence[NDArray[Any]], *shared: Any
    ) -> Iterator[Any]:
        """Call ``function(blocks, *parts of along, *shared)`` for each span; results in order.

        The blocks are `Span.blocks`, and `along` arrays of a row for each sample, (N, ...). The
        function must be importable by name. Where a device computes the blocks, all arrays are on
        it, which numpy's functions take; what is returned is copied back.
        """
        ready = self.executor.share(shared)
        tasks = (
            (function, span, self._shared, tuple(array[part] for array in along), ready)
            for part, span in self.spans()
        )
        yield from self.executor.run(_of_span, tasks, ordered=True)

    def after(self, first: int) -> "FeatureMatrix":
        """The same features, of which passes read the spans from sample `first` on."""
        rest, spans = copy(self), self.spans
        rest.spans = lambda: (own for own in spans() if own[0].start >= first)
        return rest

    def whole(
        self,
        function: Callable[..., Any],
        along: tuple[NDArray[Any], ...],
        calls: Sequence[tuple[Any, ...]],
    ) -> Iterator[Any]:
        """Call ``function(blocks, *along, *shared)`` on all features for each shared of calls.

        The features must be in memory. Calls run concurrently; results come in order.
        """
        assert self.values is not None
        span = InMemoryFeatures(self.values)
        tasks = ((function, span, None, along, shared) for shared in calls)
        yield from self.executor.run(_of_span, tasks, ordered=True)

    def into(self, V: Floats) -> Floats:
        """Coefficients of the spans' values, for coefficients V of the features, (width + 1, J).

        The last row is that of the constant feature 1.
        """
        return V if self.root is None else np.vstack([self.root @ V[:-1], V[-1:]])

    def back(self, A: Floats) -> Floats:
        """Adjoint of `into`."""
        return A if self.root is None else np.vstack([self.root.T @ A[:-1], A[-1:]])

    def take(self, chosen: Indices) -> NDArray[Any]:
        """Features of some samples, (m, width); chosen are ascending indices, (m,)."""
        found = np.empty((len(chosen), self.width), self.dtype)
        root = None if self.root is None else self.root.astype(self.dtype)
        done = 0
        for part, span in self.spans():
            inside = chosen[(chosen >= part.start) & (chosen < part.stop)] - part.start
            if len(inside):
                values = span.take(inside, self.basis)
                into = slice(done, done + len(inside))
                found[into] = values if root is None else values @ root
                done = into.stop
        return found

    def part(self, chosen: Indices, threads: int) -> "FeatureMatrix":
        """Features of some samples in memory, by `take`; passes run on threads of this process."""
        return FeatureMatrix.in_memory(self.take(chosen), Threads(threads))


def _words_of(_function: Callable[..., Any], span: Span, *_: Any) -> str:
    """Samples of a span, in words."""
    part = getattr(span, "part", None)
    return "a span" if part is None else f"the span of samples {part.start} to {part.stop - 1}"


@told_as(_words_of)
def _of_span(
    function: Callable[..., Any],
    span: Span,
    basis: Basis | None,
    along: tuple[NDArray[Any], ...],
    shared: tuple[Any, ...],
) -> Any:
    device = current_device() if basis is not None and basis.on_device else None
    if device is None or basis is None:
        return function(span.blocks(basis), *along, *shared)
    assert isinstance(span, ComputedFeatures)  # as it has a basis

    def use(parts: Iterator[tuple[slice, Any]]) -> Any:
        return function(parts, *moved(device, along), *moved(device, shared))

    return span.computed_on(device, basis, use)
