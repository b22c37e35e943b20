"""Reading and multiplying a matrix of tiles, wherever its tiles come from."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from dhsk.arrays import Floats
from dhsk.bars import Show, passes_shown
from dhsk.caching import cached_value
from dhsk.errors import InputError
from dhsk.gram.passes import diagonal, multiply
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.indexing import Part, Selector, by_block, grid, sides_of, to_indices
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import SourceOfTiles
from dhsk.run_progress import passes_of_call
from dhsk.samples import AnyVectorizer, vectorizer_of

if TYPE_CHECKING:
    import dask.array as da

_Matrix = TypeVar("_Matrix", bound="TiledMatrix")


class TiledMatrix:
    """Matrix that is read by tiles; subclasses set `source`, and `_store` for its attributes."""

    __array_priority__ = 100  # numpy defers `array @ G` to this class

    _store: GramStore

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

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self._store.header.n_rows, self._store.header.n_cols

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the entries."""
        return np.dtype(self._store.header.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes: 2."""
        return 2

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes as an array in memory; a store of the upper tiles takes about half."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Numbers of rows and columns of the tiles, as `dask.array.Array.chunks`."""
        return self.tiling.chunks

    @property
    def dim(self) -> int:
        """Number of features of the samples."""
        return self._store.header.dim

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, in the order of the columns; None if they have none."""
        return self._store.feature_names

    @property
    def vectorizer(self) -> AnyVectorizer | None:
        """How words were counted, if the samples are texts."""
        return vectorizer_of(self._store.header.vectorizer, self.feature_names)

    @property
    def sphere_map(self) -> str:
        """Map of the samples to the sphere."""
        return self._store.header.sphere_map

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same samples."""
        return self._store.header.symmetric

    @property
    def header(self) -> Header:
        """Description of the store."""
        return self._store.header

    @property
    def tiling(self) -> Tiling:
        """Partition into tiles."""
        return self._store.header.tiling

    def _square(self, what: str) -> Self:
        """The matrix itself, or InputError if rows and columns are not the same samples."""
        if not self.symmetric:
            n, m = self.shape
            raise InputError(
                f"only a matrix of samples with themselves can be {what}, but this one is of {n} "
                f"samples with {m} others: compute it without Y"
            )
        return self

    # Reading

    def _tile(self, i: int, j: int) -> NDArray[Any]:
        """Tile (i, j) of the values; i <= j if the matrix is symmetric."""
        (tile,) = self.source(((i, j),))
        return tile.values.astype(self.dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        """Entries by row and column: integers, slices, or one array of indices.

        Parameters
        ----------
        key
            ``G[i]``, ``G[i, j]``, ``G[..., j]``, ``G[rows, cols]`` with slices or, on one side, a
            1-D array of indices or booleans. For arrays on both sides use `submatrix`.

        Returns
        -------
        ndarray or scalar
            As of a numpy array.
        """
        rows, cols = sides_of(key)
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
        tiling, edge = self.tiling, self.tiling.tile
        n, m = self.shape
        chosen = [(to_indices(rows, n), to_indices(cols, m)) for rows, cols in pairs]
        results = [np.empty((len(rows), len(cols)), dtype=dtype) for rows, cols in chosen]
        groups = [(by_block(rows, edge), by_block(cols, edge)) for rows, cols in chosen]
        needed = []
        for i, j in tiling.tiles():
            wanted = [
                (result, a[i], b[j], transposed)
                for result, (rows, cols) in zip(results, groups, strict=True)
                for a, b, transposed in _sides(tiling.symmetric and i != j, rows, cols)
                if i in a and j in b
            ]
            if wanted:
                needed.append((i, j, wanted))
        passes = passes_of_call()
        for done, (i, j, wanted) in enumerate(needed, 1):
            _put(self._tile(i, j), wanted)
            passes.part(done, len(needed))
        return results

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


def _put(values: NDArray[Any], wanted: list[tuple[NDArray[Any], Part, Part, bool]]) -> None:
    """Write the entries of a tile that are wanted to where each result has them."""
    for result, row, col, transposed in wanted:
        if transposed:
            result[grid(col.place, row.place)] = values[grid(row.inside, col.inside)].T
        else:
            result[grid(row.place, col.place)] = values[grid(row.inside, col.inside)]


def _sides(
    mirrored: bool, rows: dict[int, Part], cols: dict[int, Part]
) -> Iterator[tuple[dict[int, Part], dict[int, Part], bool]]:
    """Parts of a selection on a tile and, if it is mirrored, on its mirror image."""
    yield rows, cols, False
    if mirrored:
        yield cols, rows, True
