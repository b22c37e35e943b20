"""Matrices that solvers read in parts: the protocol, and a matrix in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.compiled import compiled
from dhsk.execution.tasks import Executor
from dhsk.solvers.device_steps import WholeOnDevice
from dhsk.solvers.smo import padded

_EDGE: Final = 1024
"""Rows that are converted to float64 at a time."""

PANEL_ROWS: Final = 256
"""Rows that `ArraySource.panels` reads at a time."""

PRODUCT_BYTES: Final = 1 << 28
"""Bytes of the vectors that are multiplied with the matrix at a time, about."""

COLUMNS: Final = 16
"""Vectors are multiplied in multiples of 16, so that each product has the same bits whatever it is
computed with. Measured with OpenBLAS 0.3.31 on four kinds of processors, except for parts of seven
rows or fewer."""


class Panel(NamedTuple):
    """Entries of a matrix between some samples and a group of samples."""

    rows: Indices
    """Positions among the samples."""
    group: int
    """Number of the group."""
    columns: Indices
    """Positions in the group."""
    values: NDArray[Any]
    """(rows, columns), valid until the next part."""


@dataclass(frozen=True, eq=False)
class Combination:
    """A combination of some columns of a matrix, wanted at some rows: K[rows, columns] coef."""

    rows: Indices
    columns: Indices
    """Samples, each once, (a,) and (b,)."""
    coef: Floats
    """Coefficients of one or several combinations, (b, k). In float32, blocks of float32 entries
    are multiplied in it, and added up in float64."""
    ends: tuple[int, ...] = ()
    """Where groups of combinations end that have their coefficients at columns of their own."""

    @property
    def entries(self) -> int:
        """Number of entries of the matrix that are read."""
        return len(self.rows) * len(self.columns)


class Source(Protocol):
    """A symmetric matrix of N samples that is read in parts."""

    n: int
    """Number of samples."""
    dtype: "np.dtype[Any]"
    """Type of the entries."""

    @property
    def computes(self) -> bool:
        """Whether entries are computed when they are read: few columns then cost less than all."""

    @property
    def bilinear(self) -> bool:
        """Whether entries are inner products of rows in memory: then few are ever computed."""

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples, (n, padded(n)), as `smo.ascend` takes it."""

    def panels(self, rows: Indices, groups: Sequence[Indices]) -> Iterator["Panel"]:
        """Entries between some samples and each group of samples, in parts.

        The samples of a group are of one class. Each entry is in one part, in any order that
        depends on the arguments alone. Positions in a part ascend.
        """

    def row_parts(self, rows: Indices, most: int) -> list[Indices]:
        """Positions among some samples in parts, ascending, of about `most` or fewer samples.

        Reading the panels of each part takes about as long as reading those of all samples.
        """
        return parts_of(np.arange(len(rows)), most)

    def product(self, V: Floats) -> Floats:
        """Product of the matrix with V, (N, k)."""

    def combine(self, parts: Sequence[Combination]) -> list[Floats]:
        """Combinations of columns, each (a, k)."""

    def for_task(self, samples: Indices) -> tuple["Source", Indices]:
        """Source for a task that needs only some samples, and which of its samples they are."""
        return self, samples

    def in_single(self, samples: Indices) -> "Source | None":
        """Source of some samples alone whose entries are computed in float32, for a task.

        None where that is not safe, or saves nothing.
        """
        del samples
        return None

    def expect_columns(self, share: float) -> None:
        """Prepare for reading about this share of all columns, if there is anything to prepare."""
        del share

    def diagonal(self) -> Floats:
        """Diagonal entries, (N,)."""

    def linear_rows(self, samples: Indices) -> Rows | None:
        """Rows of some samples, whose inner products are the entries; None if not bilinear."""
        del samples
        return None

    def whole_on_device(self, samples: Indices) -> WholeOnDevice | None:
        """Matrix of some samples, if the device of the code in progress makes it and holds it."""
        del samples
        return None

    def approximate(self, room: int) -> "Source | None":
        """The matrix as fast as it can be computed, for steps that are corrected by this one.

        That takes at most `room` bytes, or none and is this source. None for a matrix in memory,
        and for one without samples, or whose samples take more.
        """
        del room
        return None


class ArraySource(Source):
    """A symmetric matrix in memory, or memory-mapped, (N, N).

    An executor multiplies strips at a time. Where BLAS has one thread, products then have the same
    bits with any number of tasks at a time; those of many BLAS threads depend on their number.
    """

    computes = bilinear = False

    def __init__(self, K: NDArray[Any], executor: Executor | None = None) -> None:
        self.n = len(K)
        self.dtype = K.dtype
        self._K = K
        self._executor = executor

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples."""
        return gathered(self._K, members, repeat_to_padded(members), self.dtype)

    def panels(self, rows: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Entries between some samples and groups of samples."""
        columns = [np.arange(len(group)) for group in groups]
        for part in blocks(len(rows), PANEL_ROWS):
            strip, places = self._K[rows[part]], np.arange(part.start, part.stop)
            for number, group in enumerate(groups):
                yield Panel(places, number, columns[number], strip.take(group, axis=1))

    def product(self, V: Floats) -> Floats:
        """Product with V."""
        tasks = ((part, V) for part in blocks(self.n, _EDGE))
        if self._executor is None:
            return np.concatenate([self._strip(*task) for task in tasks])
        return np.concatenate(list(self._executor.run(self._strip, tasks, ordered=True)))

    def _strip(self, part: slice, V: Floats) -> Floats:
        """Product of some rows with V: the task of a thread."""
        found: Floats = self._K[part].astype(np.float64, copy=False) @ V
        return found

    def combine(self, parts: Sequence[Combination]) -> list[Floats]:
        """Combinations of columns."""
        return [
            self._K[np.ix_(part.rows, part.columns)].astype(np.float64, copy=False) @ part.coef
            for part in parts
        ]

    def diagonal(self) -> Floats:
        """Diagonal entries."""
        return np.diagonal(self._K).astype(np.float64)


def products(source: Source, vectors: Sequence[tuple[Indices, Floats]]) -> Iterator[Floats]:
    """Multiply the matrix with sparse vectors, each given by samples and values.

    Yields each product at the samples of its vector.
    """
    at_once = max(1, PRODUCT_BYTES // (8 * COLUMNS * source.n)) * COLUMNS
    for some in blocks(len(vectors), at_once):
        part = vectors[some]
        V = np.zeros((source.n, -(-len(part) // COLUMNS) * COLUMNS))
        for place, (members, values) in enumerate(part):
            V[members, place] = values
        found = source.product(V)
        for place, (members, _) in enumerate(part):
            yield found[members, place]


def parts_of(positions: Indices, most: int) -> list[Indices]:
    """Cut positions in parts of at most some number."""
    return [positions[some] for some in blocks(len(positions), most)]


def repeat_to_padded(members: Indices) -> Indices:
    """Pad indices with the first one to the solver's length; it never reads those columns."""
    return np.concatenate([members, np.repeat(members[:1], padded(len(members)) - len(members))])


def gathered(
    K: NDArray[Any], rows: Indices, columns: Indices, dtype: Any, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Entries of a matrix in memory at some rows and columns, in a type.

    Measured on 2,300 of 6,000 rows and columns: two fifths of the time of numpy's indexing.
    """
    found = np.empty((len(rows), len(columns)), dtype) if out is None else out
    _gather(K, rows, columns, found)
    return found


@compiled()
def _gather(K: NDArray[Any], rows: Indices, columns: Indices, out: NDArray[Any]) -> None:
    for i in range(len(rows)):
        row = K[rows[i]]
        for j in range(len(columns)):
            out[i, j] = row[columns[j]]


@compiled()
def fill_symmetric(K: NDArray[Any], values: NDArray[Any], rows: Indices, columns: Indices) -> None:
    """Write values at some rows and columns of a symmetric matrix, and at their transposes.

    Measured on blocks of 1,024 in a matrix of 9,000, float64: 6 ns an entry where rows and columns
    are one after the other and 10 where not, of which numpy's indexing takes 9 for each half.
    """
    edge = 32  # a square of entries and of their transposes stays in the first cache
    for i in range(0, values.shape[0], edge):
        for j in range(0, values.shape[1], edge):
            for k in range(i, min(i + edge, values.shape[0])):
                for m in range(j, min(j + edge, values.shape[1])):
                    K[rows[k], columns[m]] = values[k, m]
            for m in range(j, min(j + edge, values.shape[1])):
                for k in range(i, min(i + edge, values.shape[0])):
                    K[columns[m], rows[k]] = values[k, m]
