"""The matrix of a kernel on rows in memory, of which those of classes are kept."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Codes, Floats, Indices, Rows, blocks
from dhsk.execution.limits import core_count
from dhsk.execution.threads import Threads
from dhsk.kernels import Kernel
from dhsk.models.sources import RowsSource
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import Combination, Panel, Source, fill_symmetric, gathered

KEEP_COLUMNS: Final = 0.5
"""Share of a class's columns, added up over its pairs, from which on its matrix is kept."""


class ClassesSource(RowsSource):
    """A `RowsSource` that can compute the matrix of each class once and keep it in memory.

    Each class is in a pair with every other: with ten classes, this takes a tenth of the bytes of
    the whole matrix and saves almost half of the products. Matrices of two whole classes use them,
    and all others do once many columns are expected. codes are classes from 0, (N,).
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        codes: Codes,
        threads: int = 1,
        edge: int | None = None,
    ) -> None:
        super().__init__(rows, kernel, threads, edge)
        self._codes = codes
        self._of_class = [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
        self._place = np.zeros(len(codes), np.intp)
        for own in self._of_class:
            self._place[own] = np.arange(len(own))
        self._kept: dict[int, NDArray[Any]] = {}
        self._keeps = False

    @staticmethod
    def bytes_of(sizes: Iterable[int], itemsize: int) -> int:
        """Bytes of the matrices of classes of these sizes."""
        return sum(n * padded(n) for n in sizes) * itemsize

    def expect_columns(self, share: float) -> None:
        """Compute the matrices of classes if their columns are read as often as that costs."""
        if self._keeps or share * (len(self._of_class) - 1) <= KEEP_COLUMNS:
            return
        self._keeps = True
        classes = ((c,) for c in range(len(self._of_class)))
        for _ in Threads(core_count()).run(self._square, classes):
            continue

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples, class by class."""
        ends = np.flatnonzero(np.diff(self._codes[members], append=-1)) + 1
        runs = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        if not self._keeps and any(not self._is_whole(members[run]) for run in runs):
            return super().block(members)
        K = np.empty((len(members), padded(len(members))), self.dtype)
        K[:, len(members) :] = 0.0
        for number, run in enumerate(runs):
            self._fill_within(K[run, run], members[run])
            for other in runs[number + 1 :]:
                self._fill_between(K, members, run, other)
        return K

    def _class(self, members: Indices) -> int:
        return int(self._codes[members[0]])

    def _is_whole(self, members: Indices) -> bool:
        """Whether some samples of one class are all of it."""
        return len(members) == len(self._of_class[self._class(members)])

    def _fill_within(self, K: NDArray[Any], members: Indices) -> None:
        """Copy the values between some samples of one class."""
        own = self._place[members]
        gathered(self._square(self._class(members)), own, own, K.dtype, K)

    def _fill_between(self, K: NDArray[Any], members: Indices, run: slice, other: slice) -> None:
        """Compute the values between two classes, above and below the diagonal."""
        above, left = self._rows[members[run]], self._rows[members[other]]
        down, across = blocks(above.shape[0], self._edge), list(blocks(left.shape[0], self._edge))
        parts, places = ((above, i, left, j) for i in down for j in across), np.arange(len(members))
        for i, j, values in self._executor.run(self._values, parts):
            fill_symmetric(K, values, places[run][i], places[other][j])

    def _square(self, c: int) -> NDArray[Any]:
        """Matrix of a class."""
        members = self._of_class[c]
        if c not in self._kept:  # two threads may both compute it: the same values
            self._kept[c] = super().block(members)
        return self._kept[c][:, : len(members)]

    def in_single(self, samples: Indices) -> Source | None:
        """None where matrices of classes are kept, in float64."""
        return None if self._keeps else super().in_single(samples)

    def panels(self, rows: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Entries between some samples and groups of samples of one class each."""
        if not self._keeps:
            yield from super().panels(rows, groups)
            return
        for number, group in enumerate(groups):
            if not len(group):
                continue
            same = self._codes[rows] == self._class(group)
            inside, outside = np.flatnonzero(same), np.flatnonzero(~same)
            square, columns = self._square(self._class(group)), np.arange(len(group))
            own = gathered(square, self._place[rows[inside]], self._place[group], self.dtype)
            yield Panel(inside, number, columns, own)
            for panel in super().panels(rows[outside], [group]):
                yield Panel(outside[panel.rows], number, panel.columns, panel.values)

    def _combined(self, part: Combination, columns: Any, some: slice) -> Floats:
        """Combinations at some rows, from the matrix of their class if it is kept."""
        own = self._class(part.rows)
        samples = np.concatenate([part.rows[some], part.columns])
        if not self._keeps or (self._codes[samples] != own).any():
            return super()._combined(part, columns, some)
        rows, places = self._place[part.rows[some]], self._place[part.columns]
        kept = gathered(self._square(own), rows, places, np.float64)
        return np.asarray(kept @ part.coef)
