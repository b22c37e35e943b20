"""Stored values of a matrix in memory, by pairs of classes, from which a grid derives its kernels.

Pairs of classes, folds, values of C and times all need entries of the same stored matrix. Where it
fits in memory each process reads the tiles once. The block of a class with itself serves all pairs
that the class is in, and a kernel is evaluated only at the entries that a task needs.
"""

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Codes, Floats, Indices
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import gathered

_Blocks: TypeAlias = dict[tuple[int, int], NDArray[Any]]
"""Stored values between the classes a <= b, (samples of a, samples of b)."""


KERNELS: Final = 2
"""Kernels whose matrices of single classes are kept: one ends while the next one begins."""


class ClassBlocks:
    """Values of a stored matrix between the samples of each two classes, read at the first use.

    `stored` is a matrix whose tiles are on disk, `codes` are the classes of the samples as integers
    from 0, (N,), and -1 for samples that are left out. An object that is sent to another process
    reads the tiles there.
    """

    def __init__(self, stored: GramMatrix, codes: Codes) -> None:
        self._stored = stored
        self.codes = codes
        self._classes = [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
        self._place = np.zeros(len(codes), np.intp)
        for members in self._classes:
            self._place[members] = np.arange(len(members))
        self._lock = Lock()
        self._found: tuple[_Blocks, Floats] | None = None
        self._squares: dict[Kernel, dict[int, NDArray[Any]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Where the tiles are, without their values."""
        return {"stored": self._stored, "codes": self.codes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # as it was made

    def load(self) -> None:
        """Read the values now, so that the passes of the call are told of it."""
        self._values()

    def whole(self, kernel: Kernel, members: Indices) -> NDArray[Any] | None:
        """Matrix of some whole classes, class by class, as `smo.ascend` takes it; else None."""
        classes = np.unique(self.codes[members]).tolist()
        ends = np.cumsum([len(self._classes[c]) for c in classes])
        n = len(members)
        if -1 in classes or ends[-1] != n:
            return None
        K = np.empty((n, padded(n)), self._stored.dtype)
        every = len(classes) == len(self._classes)
        if every:  # the plan has no memory for those of the pairs that were solved before
            with self._lock:
                self._squares.clear()
        parts = [
            slice(end - len(self._classes[c]), end) for c, end in zip(classes, ends, strict=True)
        ]
        for number, (a, rows) in enumerate(zip(classes, parts, strict=True)):
            # The matrix of all samples serves all problems: its parts are wanted once.
            K[rows, rows] = self._evaluated(kernel, a) if every else self._square(kernel, a)
            for b, columns in zip(classes[number + 1 :], parts[number + 1 :], strict=True):
                products = np.array(self._values()[0][a, b])  # a kernel is evaluated in place
                own = self._of_products(kernel, products, members[rows], members[columns])
                K[rows, columns], K[columns, rows] = own, own.T
        K[:, n:] = K[:, :1]
        return K

    def panels(
        self, kernel: Kernel, rows: Indices, groups: Sequence[Indices]
    ) -> Iterator[tuple[Indices, int, NDArray[Any]]]:
        """Values between some samples and groups of samples, each group of one class.

        They come as positions among the rows, number of the group, and values, which are valid
        until the next ones.
        """
        codes = self.codes[rows]
        own = [np.flatnonzero(codes == c) for c in np.unique(codes)]
        # Fresh memory of each panel takes longer than the panel.
        scratch = np.empty(max(map(len, own)) * max(map(len, groups)), self._stored.dtype)
        for places in own:
            for number, group in enumerate(groups):
                if len(group):
                    yield places, number, self._between(kernel, rows[places], group, scratch)

    def _between(
        self, kernel: Kernel, rows: Indices, columns: Indices, scratch: NDArray[Any]
    ) -> NDArray[Any]:
        """Values between some samples of one class and some of another, or of the same."""
        a, b = int(self.codes[rows[0]]), int(self.codes[columns[0]])
        if a > b:
            return self._between(kernel, columns, rows, scratch).T
        products = scratch[: len(rows) * len(columns)].reshape(len(rows), -1)
        block = self._values()[0][a, b]
        gathered(block, self._place[rows], self._place[columns], block.dtype, products)
        return self._of_products(kernel, products, rows, columns)

    def _square(self, kernel: Kernel, c: int) -> NDArray[Any]:
        """Values of a class, which serve all pairs that it is in, for the last kernels."""
        squares = self._squares.get(kernel)
        if squares is None:
            with self._lock:
                while len(self._squares) >= KERNELS:
                    self._squares.pop(next(iter(self._squares)), None)
                squares = self._squares.setdefault(kernel, {})
        if c not in squares:  # two threads may both compute it: the same values
            squares[c] = self._evaluated(kernel, c)
        return squares[c]

    def _evaluated(self, kernel: Kernel, c: int) -> NDArray[Any]:
        """Values of a class, evaluated now."""
        products, members = np.array(self._values()[0][c, c]), self._classes[c]
        return self._of_products(kernel, products, members, members)

    def _values(self) -> tuple[_Blocks, Floats]:
        """Blocks, and the diagonal of the matrix, (N,)."""
        with self._lock:  # the other tasks of a process wait for its blocks
            if self._found is None:
                self._found = self._read()
            return self._found

    def _read(self) -> tuple[_Blocks, Floats]:
        k = len(self._classes)
        keys = [(a, b) for a in range(k) for b in range(a, k)]
        wanted = [(self._classes[a], self._classes[b]) for a, b in keys]
        found = dict(zip(keys, self._stored.submatrices(wanted, self._stored.dtype), strict=True))
        diagonal = np.zeros(len(self.codes))
        for c, members in enumerate(self._classes):
            diagonal[members] = np.diagonal(found[c, c])
        return found, diagonal

    def _of_products(
        self, kernel: Kernel, products: NDArray[Any], rows: Indices, columns: Indices
    ) -> NDArray[Any]:
        """Values of a kernel as `TileSource` derives them from stored ones, which may change."""
        dtype = self._stored.dtype
        if kernel == self._stored.kernel:
            return products.astype(dtype, copy=False)
        norms2 = self._values()[1]
        if kernel.spherical:
            norms2 = np.ones(len(norms2))
        else:
            kernel.check_norms2(norms2, kernel.largest_norm2(str(dtype)), "the samples", 0)
        inner = np.ascontiguousarray(products, dtype=np.float64)
        return kernel.of_product(inner, norms2[rows], norms2[columns]).astype(dtype, copy=False)
