"""A Gram matrix that is read from its store by tiles, and kernels derived from stored products."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.gram.header import Header
from dhsk.gram.indexing import Part, Selector, by_block, grid, to_indices
from dhsk.gram.plan import Tiling
from dhsk.gram.store import GramStore
from dhsk.kernels import CosineKernel, Kernel, LinearKernel, RowKernel, kernel_from_spec


class GramMatrix:
    """Gram matrix in a store; nothing of it is held in memory.

    Get one from `compute_gram` or `open_gram`.

    Parameters
    ----------
    store
        A complete store.
    kernel
        Kernel of the entries: the store's own, or one derived from stored products.
    cleanup
        Called when the matrix is no longer used.
    """

    __array_priority__ = 100  # numpy leaves `array @ G` to this class

    def __init__(
        self, store: GramStore, kernel: Kernel, cleanup: Callable[[], None] | None = None
    ) -> None:
        self.kernel = kernel
        self.path = store.path.absolute()
        self._store = store
        self._parent: GramMatrix | None = None
        if cleanup is not None:
            weakref.finalize(self, cleanup)

    def __getstate__(self) -> dict[str, Any]:
        """Where the store is, not its open handles: a worker opens it when it reads."""
        return {"path": self.path, "kernel": self.kernel}

    @cached_property
    def _store(self) -> GramStore:
        return GramStore.open(self.path)

    @cached_property
    def _stored_kernel(self) -> Kernel:
        return kernel_from_spec(self.header.kernel)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._store.header.n_rows, self._store.header.n_cols

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the entries."""
        return np.dtype(self._store.header.dtype)

    @property
    def dim(self) -> int:
        """Number of features of the samples."""
        return self._store.header.dim

    @property
    def sphere_map(self) -> str:
        """How the samples were mapped before the product."""
        return self._store.header.sphere_map

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same samples."""
        return self._store.header.symmetric

    @property
    def header(self) -> Header:
        """What the store holds, and of which samples."""
        return self._store.header

    @property
    def tiling(self) -> Tiling:
        """The cut into tiles."""
        return self._store.header.tiling

    def __repr__(self) -> str:
        """One line: shape, type, kernel, place."""
        n, m = self.shape
        return f"<GramMatrix {n} x {m} {self.dtype} of {self.kernel.label}, {self.path}>"

    # Kernels

    def with_kernel(self, kernel: Kernel) -> "GramMatrix":
        """Derive the matrix of another kernel from stored products, entry by entry on reading.

        Stored cosines serve every spherical kernel at every time; stored inner products serve
        the Gaussian and polynomial kernels.

        Parameters
        ----------
        kernel
            The other kernel.

        Returns
        -------
        GramMatrix
            A view on the same store.

        Raises
        ------
        InputError
            The store holds no products, or products that do not determine this kernel.
        """
        own = kernel == self._stored_kernel
        if not own and isinstance(kernel, RowKernel):
            raise InputError(
                f"a {kernel.name} kernel cannot be derived from stored values, it needs the "
                "samples: compute its matrix with compute_gram"
            )
        needed = "cosine" if kernel.spherical else "linear"
        if not own and self._stored_kernel.name != needed:
            raise InputError(
                f"a {kernel.name} matrix cannot be derived from stored {self._stored_kernel.name} "
                f"values: compute the store with the {needed} kernel"
            )
        dim = getattr(kernel, "dim", None)
        if dim is not None and dim != self.dim:
            raise InputError(f"the kernel is for dim {dim}, the samples have dim {self.dim}")
        if not own and needed == "linear" and not self.symmetric:
            raise InputError(
                "only the stored inner products of samples with themselves determine distances: "
                f"compute the {kernel.name} kernel directly"
            )
        derived = GramMatrix(self._store, kernel)
        derived._parent = self  # a temporary store lives as long as its views
        return derived

    @cached_property
    def _norms2(self) -> tuple[Floats, Floats] | None:
        """Squared norms of row and column samples where a kernel is derived; None if stored."""
        if self.kernel == self._stored_kernel:
            return None
        n, m = self.shape
        if self._stored_kernel.name == "cosine":
            return np.ones(n), np.ones(m)
        norms2 = self._stored_diagonal().astype(np.float64)
        return norms2, norms2

    def _tile(self, i: int, j: int) -> NDArray[Any]:
        """Tile (i, j) of the kernel's values; of a symmetric matrix only i <= j."""
        stored = self._store.read_tile(i, j)
        if self._norms2 is None:
            return stored
        tiling = self.tiling
        rows, cols = self._norms2[0][tiling.rows(i)], self._norms2[1][tiling.cols(j)]
        values = self.kernel.of_product(stored.astype(np.float64), rows, cols)
        return values.astype(self.dtype, copy=False)

    # Reading

    def __getitem__(self, key: tuple[Selector, Selector] | Selector) -> Any:
        """Entries by row and column: integers, slices, or one array of indices.

        Parameters
        ----------
        key
            ``G[i]``, ``G[i, j]``, ``G[rows, cols]`` with slices or, on one side, a 1-D array of
            indices or booleans. For arrays on both sides use `submatrix`.

        Returns
        -------
        ndarray or scalar
            As numpy would give.
        """
        rows, cols = key if isinstance(key, tuple) else (key, slice(None))
        if np.ndim(rows) == 1 and np.ndim(cols) == 1:
            raise InputError("index arrays on both sides: use G.submatrix(rows, cols)")
        block = self.submatrix(rows, cols)
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            block = block[0]
        if np.ndim(cols) == 0 and not isinstance(cols, slice):
            block = block[..., 0]
        return block

    def submatrix(self, rows: Selector, cols: Selector) -> NDArray[Any]:
        """Entries of all pairs of chosen rows and columns.

        Parameters
        ----------
        rows, cols
            Slices, index arrays (any order, repeats allowed) or boolean arrays.

        Returns
        -------
        ndarray
            (rows, cols), of the matrix's dtype.
        """
        return self.submatrices([(rows, cols)], self.dtype)[0]

    def submatrices(
        self, pairs: Sequence[tuple[Selector, Selector]], dtype: Any = np.float64
    ) -> list[NDArray[Any]]:
        """Several submatrices in one pass over the tiles.

        Parameters
        ----------
        pairs
            Rows and columns of each, as for `submatrix`.
        dtype
            Type of the results.

        Returns
        -------
        list of ndarray
            Each (rows, cols), C-ordered.
        """
        n, m = self.shape
        chosen = [(to_indices(rows, n), to_indices(cols, m)) for rows, cols in pairs]
        results = [np.empty((len(r), len(c)), dtype=dtype) for r, c in chosen]
        groups = [(by_block(r, self.tiling.tile), by_block(c, self.tiling.tile)) for r, c in chosen]
        for i, j in self.tiling.tiles():
            wanted = [
                (result, a[i], b[j], transposed)
                for result, (rows, cols) in zip(results, groups, strict=True)
                for a, b, transposed in self._sides(i, j, rows, cols)
                if i in a and j in b
            ]
            if not wanted:
                continue
            tile = self._tile(i, j)
            for result, row, col, transposed in wanted:
                if transposed:
                    result[grid(col.place, row.place)] = tile[grid(row.inside, col.inside)].T
                else:
                    result[grid(row.place, col.place)] = tile[grid(row.inside, col.inside)]
        return results

    def _sides(
        self, i: int, j: int, rows: dict[int, Part], cols: dict[int, Part]
    ) -> Iterator[tuple[dict[int, Part], dict[int, Part], bool]]:
        """Where tile (i, j) lands: as it is, and mirrored across the diagonal."""
        yield rows, cols, False
        if self.symmetric and i != j:
            yield cols, rows, True

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Whole matrix in memory, for numpy."""
        if copy is False:
            raise ValueError("a Gram matrix on disk cannot become an array without a copy")
        return self.submatrices([(slice(None), slice(None))], dtype or self.dtype)[0]

    def diagonal(self) -> NDArray[Any]:
        """Diagonal entries, (min(N, M),)."""
        return self._collect_diagonal(self._tile)

    def _stored_diagonal(self) -> NDArray[Any]:
        return self._collect_diagonal(self._store.read_tile)

    def _collect_diagonal(self, read: Callable[[int, int], NDArray[Any]]) -> NDArray[Any]:
        blocks = min(self.tiling.row_blocks, self.tiling.col_blocks)
        return np.concatenate([np.diagonal(read(i, i)) for i in range(blocks)])

    # Products

    def __matmul__(self, V: NDArray[Any]) -> NDArray[Any]:
        """Product with a vector (M,) or matrix (M, k), in one pass, memory O((N + M) k)."""
        V = np.asarray(V)
        if V.ndim not in (1, 2) or V.shape[0] != self.shape[1]:
            raise InputError(f"cannot multiply {self.shape} by {V.shape}")
        result = np.zeros((self.shape[0], *V.shape[1:]), np.result_type(self.dtype, V.dtype))
        for i, j in self.tiling.tiles():
            tile, rows, cols = self._tile(i, j), self.tiling.rows(i), self.tiling.cols(j)
            result[rows] += tile @ V[cols]
            if self.symmetric and i != j:
                result[cols] += tile.T @ V[rows]
        return result

    def __rmatmul__(self, V: NDArray[Any]) -> NDArray[Any]:
        """Product ``V @ G``."""
        V = np.asarray(V)
        if self.symmetric:
            return np.asarray((self @ V.T).T)
        return np.asarray(self.to_dask().__rmatmul__(V).compute())

    def as_linear_operator(self) -> "LinearOperator[Any]":
        """View for the iterative solvers of scipy.

        Returns
        -------
        LinearOperator
            Symmetric matrices only know themselves as their transpose.
        """
        transpose = self.__matmul__ if self.symmetric else lambda V: self.__rmatmul__(V.T).T
        return LinearOperator(
            self.shape,
            matvec=self.__matmul__,
            rmatvec=transpose,
            matmat=self.__matmul__,
            rmatmat=transpose,
            dtype=self.dtype,
        )

    def to_dask(self) -> da.Array:
        """Lazy Dask array, one chunk a tile.

        Returns
        -------
        dask.array.Array
            (N, M); workers read the store, so its disk must be theirs too.
        """
        tiling = self.tiling
        chunks = tuple(
            tuple(part(k).stop - part(k).start for k in range(count))
            for part, count in ((tiling.rows, tiling.row_blocks), (tiling.cols, tiling.col_blocks))
        )
        return da.map_blocks(
            _read_block, self, chunks=chunks, dtype=self.dtype, meta=np.empty((0, 0), self.dtype)
        )

    def verify(self) -> int:
        """Read every tile and test its checksum.

        Returns
        -------
        int
            Number of tiles, all sound.

        Raises
        ------
        CorruptTileError
            Some are damaged; the message names them.
        """
        self._store.check_sound()
        return self.tiling.n_tiles


def open_gram(path: str | Path) -> GramMatrix:
    """Open a finished Gram store.

    Parameters
    ----------
    path
        Folder of the store.

    Returns
    -------
    GramMatrix
        The matrix, read as needed.

    Raises
    ------
    IncompleteStoreError
        Tiles are missing.
    StoreError
        There is no store at the path.
    """
    store = GramStore.open(Path(path))
    store.check_complete()
    return GramMatrix(store, kernel_from_spec(store.header.kernel))


def product_kernel(kernel: Kernel) -> Kernel:
    """Kernel whose stored values determine a given one: cosines, inner products, or itself."""
    if isinstance(kernel, RowKernel):
        return kernel
    return CosineKernel() if kernel.spherical else LinearKernel()


def _read_block(G: GramMatrix, block_id: tuple[int, int] = (0, 0)) -> NDArray[Any]:
    """One chunk of `GramMatrix.to_dask`."""
    i, j = block_id
    if G.symmetric and i > j:
        return np.ascontiguousarray(G._tile(j, i).T)
    return G._tile(i, j)
