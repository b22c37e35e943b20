"""The few array types that cross the borders between rooms, and how rows are cut into blocks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, Union

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array, vstack

Floats: TypeAlias = NDArray[np.float64]
"""A float64 array of any shape."""

Indices: TypeAlias = NDArray[np.intp]
"""An integer index array."""

Codes: TypeAlias = NDArray[np.signedinteger[Any]]
"""Classes of samples as integers from 0, -1 for none, of any type."""

# Union and a string, because csr_array takes no type parameters when the program runs.
Rows: TypeAlias = Union[NDArray[np.float64], "csr_array[np.float64, tuple[int, int]]"]
"""Samples by row, (rows, dim), float64: a C-ordered array or a canonical CSR array."""

ROWS: Final = 1024
SUPPORT: Final = 1024
"""Rows and support vectors in a block of kernel values: 8 MiB in float64, most of which is used
again from the caches. Measured on 10 features: four times the support vectors took 1.3 times as
long."""


def blocks(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover `range(n)`."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def numbered(parts: Iterable[Rows]) -> Iterator[tuple[int, Rows]]:
    """Consecutive blocks of rows with the indices of their first rows."""
    first = 0
    for part in parts:
        yield first, part
        first += part.shape[0]


def stacked(parts: Sequence[Any]) -> Rows:
    """Blocks of rows, all dense or all CSR, as one."""
    sparse = isinstance(parts[0], csr_array)
    rows: Rows = vstack(parts, format="csr") if sparse else np.concatenate(parts)
    return rows


class Marked(NamedTuple):
    """Ascending indices as they travel, a bit for each number from the first to the last.

    Those of all samples of a span take a bit each, of every eighth one byte, where an integer takes
    eight.
    """

    first: int
    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, indices: Indices) -> "Marked":
        """Mark indices, ascending, each once."""
        if not len(indices):
            return cls(0, np.empty(0, np.uint8))
        first = int(indices[0])
        marks = np.zeros(int(indices[-1]) + 1 - first, dtype=bool)
        marks[indices - first] = True
        return cls(first, np.packbits(marks))

    @property
    def indices(self) -> Indices:
        """The indices."""
        return self.first + np.flatnonzero(np.unpackbits(self.bits))


def as_type(vector: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """A vector, (n,), of another type; of one value that stands for all, still that one."""
    if vector.strides == (0,):
        return np.broadcast_to(vector[:1].astype(dtype), vector.shape)
    return vector.astype(dtype)


def union(groups: Sequence[Indices], n: int) -> Indices:
    """Indices below n that are in any of some groups, ascending: without sorting."""
    found = np.zeros(n, dtype=bool)
    for group in groups:
        found[group] = True
    return np.flatnonzero(found)


def arrays_of_rows(name: str, rows: Rows) -> dict[str, NDArray[Any]]:
    """Arrays of rows, dense or CSR, in a file."""
    if isinstance(rows, np.ndarray):
        return {name: rows}
    return {
        f"{name}_data": rows.data,
        f"{name}_indices": rows.indices,
        f"{name}_indptr": rows.indptr,
        f"{name}_shape": np.array(rows.shape),
    }


def rows_of_arrays(name: str, arrays: Mapping[str, NDArray[Any]]) -> Rows:
    """Rows of `arrays_of_rows`; KeyError or ValueError if they are damaged."""
    if name in arrays:
        return arrays[name]
    parts = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    rows = csr_array(parts, shape=tuple(arrays[f"{name}_shape"].tolist()))
    rows.check_format(full_check=True)
    return rows
