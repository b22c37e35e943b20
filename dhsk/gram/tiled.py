"""Reading and multiplying a matrix of tiles, wherever its tiles come from."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from dhsk.arrays import Floats
from dhsk.bars import Show, passes_shown
from dhsk.caching import cached_value
from dhsk.errors import InputError
from dhsk.gram.array import TiledArray
from dhsk.gram.gather import gather
from dhsk.gram.passes import diagonal, multiply
from dhsk.gram.storage.indexing import Selector
from dhsk.gram.tiles import SourceOfTiles

if TYPE_CHECKING:
    import dask.array as da

_Matrix = TypeVar("_Matrix", bound="TiledMatrix")


class TiledMatrix(TiledArray):
    """Matrix that is read by tiles; subclasses set `source`, and `_store` for its attributes."""

    __array_priority__ = 100  # numpy defers `array @ G` to this class

    @cached_value
    def source(self) -> SourceOfTiles:
        """Source of the tiles, here or on a worker."""
        raise NotImplementedError

    @property
    def T(self) -> "Self | da.Array":
        """Transposed matrix: itself if symmetric, else a lazy Dask array."""
        return self if self.symmetric else self.to_dask().T

    @property
    def description(self) -> Any:
        """JSON value that tells the bits of this matrix from those of another."""
        raise NotImplementedError

    def with_tiles_held(self, room: int) -> Self:
        """Return this matrix for several passes, keeping tiles in so many bytes of memory."""
        raise NotImplementedError

    # Reading

    def _tile(self, i: int, j: int) -> NDArray[Any]:
        """Tile (i, j) of the values; i <= j if the matrix is symmetric."""
        (tile,) = self.source(((i, j),))
        return tile.values.astype(self.dtype, copy=False)

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
            As of a numpy array.
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
        return gather(self._tile, self.tiling, pairs, dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The whole matrix as a numpy array."""
        if copy is False:
            raise ValueError("a Gram matrix on disk cannot become an array without a copy")
        return self.submatrices([(slice(None), slice(None))], dtype or self.dtype)[0]

    def diagonal(self) -> NDArray[Any]:
        """Diagonal entries, (min(N, M),)."""
        return diagonal(self.source, self.tiling).astype(self.dtype, copy=False)

    # Products

    def __matmul__(self, V: NDArray[Any]) -> NDArray[Any]:
        """Product with a vector (M,) or matrix (M, k), in one pass, memory O((N + M) k).

        `dhsk.show_progress` shows its tiles, as it does for all operations.
        """
        return np.asarray(multiply(self.source, self.tiling, V, self.dtype)[0])

    def __rmatmul__(self, V: NDArray[Any]) -> NDArray[Any]:
        """Product ``V @ G`` of a vector (N,) or matrix (k, N), in one pass."""
        V = np.asarray(V).T
        product = multiply(self.source, self.tiling, V, self.dtype, transposed=True)[0]
        return np.asarray(product.T)

    def mean(self, axis: int | None = None, *, progress: Show = None) -> Any:
        """Mean of all entries, of each column (axis 0) or of each row (axis 1), in one pass.

        Parameters
        ----------
        axis
            As in numpy.
        progress
            Function that is called with a `Progress` after every group of tiles; True for bars.

        Returns
        -------
        ndarray or float
            float64; (M,) for axis 0, (N,) for axis 1.
        """
        if axis not in (None, 0, 1):
            raise InputError(f"axis must be None, 0 or 1, but it is {axis!r}")
        with passes_shown(progress):
            if axis == 0 and not self.symmetric:
                return (np.ones(self.shape[0]) @ self) / self.shape[0]
            return float(self._row_means.mean()) if axis is None else self._row_means.copy()

    @cached_value
    def _row_means(self) -> Floats:
        """Mean of each row, (N,), kept from the first pass that needs it."""
        means: Floats = (self @ np.ones(self.shape[1])) / self.shape[1]
        return means

    def as_linear_operator(self) -> "LinearOperator[Any]":
        """View for the iterative solvers of SciPy.

        Returns
        -------
        LinearOperator
            Its transpose is itself if the matrix is symmetric.
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

    def to_dask(self) -> "da.Array":
        """Lazy Dask array, with one chunk per tile.

        Returns
        -------
        dask.array.Array
            (N, M). Workers read the store, so they must have access to its disk.
        """
        import dask.array as da  # a tenth of what a command imports, and most need none of it

        meta = np.empty((0, 0), self.dtype)
        return da.map_blocks(_read_block, self, chunks=self.chunks, dtype=self.dtype, meta=meta)


def checked_matrix(G: _Matrix) -> _Matrix:
    """Give the matrix; InputError for anything else, such as an array."""
    if not isinstance(G, TiledMatrix):
        raise InputError(f"G must be a Gram matrix, as of compute_gram, but it is {type(G)}")
    return G


def _read_block(G: TiledMatrix, block_id: tuple[int, int] = (0, 0)) -> NDArray[Any]:
    """One chunk of `TiledMatrix.to_dask`."""
    i, j = block_id
    if G.symmetric and i > j:
        return np.ascontiguousarray(G._tile(j, i).T)
    return G._tile(i, j)
