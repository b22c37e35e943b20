"""Base of all sources of samples, and the checks that readers share."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import ROWS, Rows, blocks
from dhsk.errors import InputError, SamplesChangedError
from dhsk.kernels.duplicates import row_hashes
from dhsk.samples.spectrum import AnyVectorizer

_UNREAD: Final = np.uint32(0)

ReadNames: TypeAlias = Callable[[], Iterable[str] | None]
"""Reads the names of all samples, one by one; None if they have none."""


@dataclass(frozen=True, eq=False)
class Samples(ABC):
    """Samples by row, read in consecutive blocks, any number of times."""

    source: str
    """Where the samples come from, for messages."""
    shape: tuple[int, int]
    """Number of samples and number of features."""
    nnz: int | None = field(default=None, kw_only=True)
    """Number of stored entries, with the duplicates and explicit zeros that `blocks` merges and
    drops; `None` when dense."""
    indptr: NDArray[Any] | None = field(default=None, repr=False, kw_only=True)
    """Row pointers, (n_samples + 1,), as in CSR; `None` when dense, or not known."""
    feature_names: tuple[str, ...] | None = field(default=None, repr=False, kw_only=True)
    """Names of the features, (dim,); `None` if the source has none."""
    vectorizer: AnyVectorizer | None = field(default=None, repr=False, kw_only=True)
    """How words or substrings of texts were counted; `None` if the source is no text."""
    names: Iterable[str] | ReadNames | None = field(default=None, repr=False, kw_only=True)
    """Names of the samples, or what reads them on demand."""
    has_gaps: bool | None = field(default=None, repr=False, kw_only=True)
    """Whether some values are NaN, which stands for gaps; None if nobody looked at all."""

    @property
    def is_sparse(self) -> bool:
        """Whether `blocks` yields CSR arrays."""
        return self.nnz is not None

    def most_entries(self, rows: int) -> float:
        """Largest number of entries of `rows` consecutive samples.

        All entries if dense; the average number if sparse without row pointers.
        """
        n_samples, dim = self.shape
        rows = min(rows, n_samples)
        if self.nnz is None:
            return float(rows * dim)
        if self.indptr is None:
            return rows * self.nnz / n_samples
        return float((self.indptr[rows:] - self.indptr[: len(self.indptr) - rows]).max())

    def row_parts(self, rows: int) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Consecutive rows, and the row pointers of each part, where they are known."""
        assert self.indptr is not None
        for part in blocks(self.shape[0], rows):
            yield part, self.indptr[part.start : part.stop + 1]

    def blocks(self, rows: int) -> Iterator[Rows]:
        """Yield consecutive row blocks, (rows, dim), each a fresh array that the caller may change.

        They are C-ordered float64 arrays, or CSR arrays with sorted indices, no duplicates and no
        explicit zeros; the last may have fewer rows. Each is compared with earlier readings of the
        same rows before it is yielded.

        Raises
        ------
        InputError
            If `rows` is below 1, or the source is damaged.
        SamplesChangedError
            If the source has changed since it was opened, or a row since it was first read.
        """
        if rows < 1:
            raise InputError(f"a block must have at least 1 row, got {rows}")
        # Not a field: equality of two objects does not depend on what was read.
        seen: SeenRows = vars(self).setdefault("_seen", SeenRows(self.shape[0]))
        first = 0
        for block in seen.readable(self._blocks(rows)):
            seen.check(self.source, block, first)
            first += block.shape[0]
            yield block
        if first != self.shape[0]:
            raise SamplesChangedError(
                f"{self.source} changed while it was read: it has {first} rows and had "
                f"{self.shape[0]}; run the same again when nothing writes to it"
            )

    @property
    def n_repeated(self) -> int:
        """Number of samples that equal others, as far as 32 bits tell; 0 until all were read."""
        seen = vars(self).get("_seen")
        return 0 if seen is None else seen.n_repeated

    @abstractmethod
    def _blocks(self, rows: int) -> Iterator[Rows]:
        """Yield row blocks as they are in the source now; `blocks` compares them."""

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the samples, in the blocks that `blocks` yields; None if they have none."""
        names = self.names() if callable(self.names) else self.names
        if names is None:
            return None
        left = iter(names)
        return iter(lambda: list(islice(left, rows)), [])

    def each_id(self) -> Iterator[str] | None:
        """Names of the samples, one by one; None if they have none."""
        found = self.ids(ROWS)
        return None if found is None else map(str, chain.from_iterable(found))


@dataclass(frozen=True, eq=False)
class WrappedSamples(Samples):
    """Other samples whose blocks are changed when they are read."""

    source: str = field(init=False)
    shape: tuple[int, int] = field(init=False)
    samples: Samples

    def __post_init__(self) -> None:
        for each in fields(Samples):
            if getattr(self, each.name, None) is None:
                object.__setattr__(self, each.name, getattr(self.samples, each.name))

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the samples, see `Samples.ids`."""
        return self.samples.ids(rows)


def as_read(samples: Samples) -> Samples:
    """Samples without what changes their blocks: those of a file have its table."""
    while isinstance(samples, WrappedSamples):
        samples = samples.samples
    return samples


class SeenRows:
    """Hashes of `n` rows at their first reading, four bytes per row.

    A row whose hash differs later has changed; of changed rows, one in 2^32 is missed. Each row has
    its own hash, because passes may end early and have blocks of any size, and so that a changed
    row is found before it is used. Rejected: the fingerprint once more after staging (SHA-256 takes
    three times as long, and sees a change when tiles of mixed rows exist); times of files
    (`rsync -t`, arrays).
    """

    def __init__(self, n: int) -> None:
        self._seen: NDArray[np.uint32] = np.zeros(n, np.uint32)  # pages take memory once written

    @property
    def n_repeated(self) -> int:
        """Number of rows that equal others; 0 until all were read."""
        hashes, counts = np.unique(self._seen, return_counts=True)
        return 0 if hashes[0] == _UNREAD else int(counts[counts > 1].sum())

    def readable(self, blocks: Iterator[Rows]) -> Iterator[Rows]:
        """Yield the same blocks; `SamplesChangedError` if they cannot be read any more."""
        before = bool(self._seen[-1] != _UNREAD)
        try:
            yield from blocks
        except InputError as error:
            if not before:
                raise
            raise SamplesChangedError(
                f"{error}: it changed while it was read; run the same again when nothing writes to "
                "it"
            ) from error

    def check(self, source: str, block: Rows, first: int) -> None:
        """Record the hashes of rows that are read for the first time, and compare the others.

        `block`, dense or canonical CSR, begins with row `first`. Raises `SamplesChangedError` if a
        row has changed.
        """
        seen = self._seen[first : first + block.shape[0]]
        hashes: Any = row_hashes(block)
        now = np.maximum((hashes ^ (hashes >> np.uint64(32))).astype(np.uint32), np.uint32(1))
        new = seen == _UNREAD
        other = np.flatnonzero((seen != now) & ~new)
        if other.size:
            raise SamplesChangedError(
                f"{source} changed while it was read: row {first + other[0]} (counted from 0) is "
                "not what it was before; run the same again when nothing writes to it"
            )
        seen[new] = now[new]


def flat_shape(source: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (n_samples, dim) of an array whose trailing axes are flattened; refuse empty ones."""
    if len(shape) < 2:
        raise InputError(
            f"{source} has shape {shape}, but samples need two dimensions (samples by features): "
            "for one sample use x.reshape(1, -1), for one feature x.reshape(-1, 1)"
        )
    n_samples, dim = shape[0], math.prod(shape[1:])
    if n_samples == 0 or dim == 0:
        raise InputError(
            f"{source} is empty: it has {n_samples} samples of {dim} features, "
            "and at least one of each is needed"
        )
    return n_samples, dim


def check_real(source: str, dtype: np.dtype[Any]) -> None:
    """Refuse a dtype that is not boolean, integer or real."""
    if dtype.kind not in "biuf":
        convert = ": convert it with X.astype(float)" if dtype.kind in "SUTO" else ""
        raise InputError(f"{source} has dtype {dtype}, but samples must be real numbers{convert}")


def dense_block(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return a fresh C-ordered float64 copy, (rows, dim), with trailing axes flattened."""
    return np.array(values, dtype=np.float64, order="C").reshape(len(values), -1)


def csr_block(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], dim: int
) -> "csr_array[np.float64, tuple[int, int]]":
    """Return a canonical CSR block, which may share and modify `data` and `indices`."""
    index_dtype = np.int32 if max(dim, data.size) < 2**31 else np.int64
    block = csr_array(
        (
            data.astype(np.float64, copy=False),
            indices.astype(index_dtype, copy=False),
            (indptr - indptr[0]).astype(index_dtype),
        ),
        shape=(indptr.size - 1, dim),
    )
    block.sum_duplicates()
    block.eliminate_zeros()
    return block


def check_csr(
    source: str, shape: NDArray[Any], data: Any, indices: Any, indptr: NDArray[Any]
) -> tuple[tuple[int, int], NDArray[np.int64]]:
    """Return shape and row pointers, (n_samples + 1,), of a stored CSR matrix as integers.

    Raises `InputError` if two of its parts contradict each other, or the matrix is empty. The
    values and columns, (nnz,), are known by shape and dtype, and not read.
    """
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise InputError(
            f"{source}: 'shape' must be two non-negative integers (samples, features), "
            f"got {shape.tolist()}"
        )
    n_samples, dim = flat_shape(source, (int(shape[0]), int(shape[1])))
    for name, dtype in [("indices", indices.dtype), ("indptr", indptr.dtype)]:
        if dtype.kind not in "iu":
            raise InputError(f"{source}:{name} has dtype {dtype}, but a CSR matrix needs integers")
    if data.shape != indices.shape or len(data.shape) != 1:
        raise InputError(
            f"{source}: 'data' has shape {data.shape} and 'indices' {indices.shape}, "
            "but a CSR matrix needs one of each per entry"
        )
    _check_indptr(source, indptr, n_samples, data.shape[0])
    return (n_samples, dim), indptr.astype(np.int64)


def _check_indptr(source: str, indptr: NDArray[Any], n_samples: int, nnz: int) -> None:
    if indptr.shape != (n_samples + 1,):
        raise InputError(
            f"{source}: 'indptr' has shape {indptr.shape}, but {n_samples} rows need "
            f"({n_samples + 1},)"
        )
    if indptr[0] != 0 or indptr[-1] != nnz:
        raise InputError(
            f"{source}: 'indptr' runs from {indptr[0]} to {indptr[-1]}, but {nnz} entries need "
            f"0 to {nnz}"
        )
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falls.size:
        row = falls[0]
        raise InputError(
            f"{source}: 'indptr' falls from {indptr[row]} to {indptr[row + 1]} at row {row} "
            "(counted from 0), but it must never fall"
        )


def check_columns(
    source: str, indices: NDArray[Any], indptr: NDArray[np.int64], first_row: int, dim: int
) -> None:
    """Refuse rows, counted from `first_row`, with an entry outside the columns."""
    outside = np.flatnonzero((indices < 0) | (indices >= dim))
    if outside.size:
        row = first_row + np.searchsorted(indptr - indptr[0], outside[0], side="right") - 1
        raise InputError(
            f"{source}: row {row} (counted from 0) has an entry in column "
            f"{indices[outside[0]]}, but 'shape' gives {dim} columns"
        )
