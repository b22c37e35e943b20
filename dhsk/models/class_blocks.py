"""Stored values of a matrix in memory, by pairs of classes, from which a grid derives its kernels.

Pairs of classes, folds, values of C and times all need entries of the same stored matrix. Where it
fits in memory each process reads the tiles once. The block of a class with itself serves all pairs
that the class is in, and a kernel is evaluated only at the entries that a task needs.
"""

from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel
from dhsk.solvers.smo import padded

_Blocks: TypeAlias = dict[tuple[int, int], NDArray[Any]]
"""Stored values between the classes a <= b, (samples of a, samples of b)."""


class ClassBlocks:
    """Values of a stored matrix between the samples of each two classes, read at the first use.

    `stored` is a matrix whose tiles are on disk, `codes` are the classes of the samples as integers
    from 0, (N,), and -1 for samples that are left out. An object that is sent to another process
    reads the tiles there.
    """

    def __init__(self, stored: GramMatrix, codes: Indices) -> None:
        self._stored = stored
        self._codes = codes
        self._classes = [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
        self._place = np.zeros(len(codes), np.intp)
        for members in self._classes:
            self._place[members] = np.arange(len(members))
        self._lock = Lock()
        self._found: tuple[_Blocks, Floats] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Where the tiles are, without their values."""
        return {"stored": self._stored, "codes": self._codes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # as it was made

    def pair(self, kernel: Kernel, members: Indices) -> NDArray[Any] | None:
        """Matrix of two whole classes, (n, padded(n)), as `smo.ascend` takes it; else None."""
        a, b = (int(self._codes[members[end]]) for end in (0, -1))
        if not 0 <= a < b or len(members) != len(self._classes[a]) + len(self._classes[b]):
            return None
        blocks, _ = self._values()
        n, cut = len(members), len(self._classes[a])
        K = np.empty((n, padded(n)))
        K[:cut, :cut], K[:cut, cut:n] = blocks[a, a], blocks[a, b]
        K[cut:, :cut], K[cut:, cut:n] = blocks[a, b].T, blocks[b, b]
        K[:, n:] = K[:, :1]
        columns = np.concatenate([members, np.repeat(members[:1], padded(n) - n)])
        return self._of_products(kernel, K, members, columns)

    def between(self, kernel: Kernel, rows: Indices, columns: Indices) -> NDArray[Any]:
        """Kernel values between some samples of one class and some of another, or of the same."""
        blocks, _ = self._values()
        a, b = int(self._codes[rows[0]]), int(self._codes[columns[0]])
        if a > b:
            return self.between(kernel, columns, rows).T
        products = blocks[a, b][self._place[rows]].take(self._place[columns], axis=1)
        return self._of_products(kernel, products, rows, columns)

    def by_class(self, samples: Indices) -> list[Indices]:
        """Positions of some samples in each of the classes that they are of."""
        codes = self._codes[samples]
        return [np.flatnonzero(codes == c) for c in np.unique(codes)]

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
        diagonal = np.zeros(len(self._codes))
        for c, members in enumerate(self._classes):
            diagonal[members] = np.diagonal(found[c, c])
        return found, diagonal

    def _of_products(
        self, kernel: Kernel, products: NDArray[Any], rows: Indices, columns: Indices
    ) -> NDArray[Any]:
        """Values of a kernel as `TileSource` derives them from stored ones."""
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
