"""Gram matrices that are read from a store, derived from stored products or computed on demand."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import ROWS, Floats, Rows, blocks
from dhsk.bars import Show, passes_shown
from dhsk.caching import cached_value
from dhsk.errors import IncompleteStoreError
from dhsk.execution.folder import TemporaryPlace
from dhsk.gram.derive import check_derivable, check_digits
from dhsk.gram.device_passes import computes_on_device
from dhsk.gram.neighbors import Side, marks_of, side_of
from dhsk.gram.operations import Operations
from dhsk.gram.passes import diagonal, multiply
from dhsk.gram.storage.indexing import Selector, to_indices
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tiles import HeldTiles, TileSource
from dhsk.kernels import Kernel, parse_kernel
from dhsk.kernels.centre import with_all_entries
from dhsk.objects.places import Place, parse_place
from dhsk.samples.variance import gamma_of_scale, usual_width


class GramMatrix(Operations):
    """Gram matrix in a store, or computed on demand; it is never in memory as a whole.

    `compute_gram` and `open_gram` return it. Products and means run on the workers of the current
    Dask client, or on threads of this process if there is none.

    Parameters
    ----------
    store
        A complete store, or one of samples only if `compute`.
    kernel
        Kernel of the entries: one of the store, or one that stored products determine.
    compute
        Whether to compute tiles from the samples on demand.
    folder
        Temporary folder of the store, which is removed with the last matrix on it.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> G = dhsk.compute_gram(X, "heat", store="digits.gram")
    >>> G.shape, G.nbytes
    ((1797, 1797), 25833672)
    >>> G[:2, :3].round(4)
    array([[1.    , 0.686 , 0.7226],
           [0.686 , 1.    , 0.8694]])
    >>> (G @ np.ones(1797)).shape
    (1797,)
    >>> round(G.mean(), 4)
    0.7819
    """

    def __init__(
        self,
        store: GramStore,
        kernel: Kernel,
        *,
        compute: bool = False,
        folder: TemporaryPlace | None = None,
    ) -> None:
        self.kernel = kernel
        self.path = store.path.absolute()
        self._store = store
        self._compute = compute
        self._folder = folder

    def __getstate__(self) -> dict[str, Any]:
        """Path of the store: a worker opens it when it reads."""
        kept = ("path", "kernel", "_compute")
        return {name: getattr(self, name) for name in kept} | {"_folder": None}

    @cached_value
    def _store(self) -> GramStore:
        return GramStore.open(self.path)

    @cached_value
    def source(self) -> TileSource:
        """Source of the tiles, here or on a worker."""
        derived = not self._compute and self._store.index_of(self.kernel) is None
        norms2 = None if not derived or self.kernel.spherical else self._stored_norms2()
        return TileSource(self.path, [self.kernel], compute=self._compute, norms2=norms2)

    @property
    def computed(self) -> bool:
        """Whether tiles are computed on demand."""
        return self._compute

    @property
    def description(self) -> Any:
        """JSON value that tells the bits of this matrix from those of another."""
        return [self.header.to_json(), self.kernel.to_spec(), self._compute]

    def with_tiles_held(self, room: int) -> "GramMatrix":
        """Return the same matrix for several passes, keeping tiles in so many bytes of memory.

        It is this one where a device computes tiles sooner than they are read from memory.
        """
        if computes_on_device(self.source):
            return self
        held = GramMatrix(self._store, self.kernel, compute=self._compute, folder=self._folder)
        held.__dict__["source"] = HeldTiles(self.source, self.tiling, self.dtype.itemsize, room)
        return held

    def __repr__(self) -> str:
        """One line with shape, type, kernel and path."""
        n, m = self.shape
        return f"<GramMatrix {n} x {m} {self.dtype} of {self.kernel.label}, {self.path}>"

    def _repr_html_(self) -> str:
        """Shape, kernel and store for notebooks, and a picture of some values where it is cheap."""
        from dhsk.gram.notebook import notebook_html  # with the pages of reports

        origin = "computed on demand" if self.computed else "stored"
        return notebook_html(self, self.kernel, self.path, origin, self.samples)

    # Kernels

    def with_kernel(self, kernel: Kernel | str) -> "GramMatrix":
        """Matrix of another kernel on the same samples, without a new store.

        Stored cosines determine every spherical kernel, and stored inner products the Gaussian and
        polynomial kernels. A matrix that is computed on demand can have any kernel of samples that
        are mapped in the same way.

        Parameters
        ----------
        kernel
            The other kernel, or its name as for `compute_gram`.

        Returns
        -------
        GramMatrix
            A view of the same store, evaluated when it is read.

        Raises
        ------
        InputError
            The store does not determine this kernel.

        Examples
        --------
        >>> import dhsk
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> cosines = dhsk.compute_gram(X, "cosine", store="digits.gram")
        >>> for time_scale in (0.5, 1.0):
        ...     G = cosines.with_kernel(dhsk.HeatKernel.at_scale(64, time_scale))
        ...     print(round(G.mean(), 4))
        0.2103
        0.7819
        """
        kernel = parse_kernel(kernel, self.dim, width=lambda: width_of_matrix(self))
        if kernel not in self._store.kernels:
            check_derivable(self.header, self._store.kernels[0], kernel, computed=self._compute)
        return GramMatrix(self._store, kernel, compute=self._compute, folder=self._folder)

    def stored(self) -> "GramMatrix | None":
        """Matrix of the stored values that this one is read or derived from, if there are any."""
        kernel = self.kernel if self.kernel in self._store.kernels else self._store.kernels[0]
        return None if self._compute else GramMatrix(self._store, kernel, folder=self._folder)

    def _stored_norms2(self) -> tuple[Floats, Floats]:
        """Squared norms of the samples, the diagonal of their inner products."""
        stored = TileSource(self.path, self._store.kernels[:1])
        norms2 = diagonal(stored, self.tiling).astype(np.float64)
        return (check_digits(self.header, self.kernel, norms2),) * 2

    def diagonal(self) -> NDArray[Any]:
        """Diagonal entries, (min(N, M),)."""
        if self.symmetric and self.kernel.unit_diagonal:
            return np.ones(self.shape[0], self.dtype)
        return super().diagonal()

    @cached_value
    def _sides(self) -> tuple[Side, Side]:
        if self.symmetric:
            return super()._sides
        rows, cols = (side_of(self._store.samples, s, self.kernel) for s in ("rows", "cols"))
        return rows, cols

    def _marks(self) -> NDArray[np.uint64]:
        return marks_of(self._store.samples, "rows", self.kernel)

    # Samples and checksums

    def samples(self, rows: Selector = slice(None)) -> Rows:
        """Samples after the map, in the type of the inner products.

        Parameters
        ----------
        rows
            Rows of the matrix: a slice, indices or booleans.

        Returns
        -------
        Rows
            (rows, dim), dense or CSR.
        """
        return with_all_entries(self.staged_rows(rows))

    def staged_rows(self, rows: Selector = slice(None)) -> Rows:
        """Samples as kernels take them: a CSR row may stand for the centre."""
        return self._store.samples.take("rows", to_indices(rows, self.shape[0]))

    def verify(self, *, progress: Show = None) -> int:
        """Check the checksums of all stored tiles.

        Parameters
        ----------
        progress
            Function that is called with a `Progress` after every tile; True for bars.

        Returns
        -------
        int
            Number of tiles; 0 if they are computed on demand.

        Raises
        ------
        CorruptTileError
            Tiles are damaged; the message names them.
        """
        if self._compute:
            return 0
        with passes_shown(progress):
            self._store.check_sound()
        return self.tiling.n_tiles


class GramMatrices(Sequence[GramMatrix]):
    """Gram matrices of several kernels on the same samples, with products in one pass.

    `compute_gram` returns them for a list of kernels.

    Parameters
    ----------
    matrices
        Matrices on one store.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> grams = dhsk.compute_gram(np.eye(4), ["heat", "cosine"])
    >>> [G.kernel.label for G in grams]
    ['heat t=0.3466', 'cosine']
    >>> (grams @ np.ones(4)).round(4)
    array([[1.7948, 1.7948, 1.7948, 1.7948],
           [1.    , 1.    , 1.    , 1.    ]])
    """

    __array_priority__ = 100  # numpy defers `array @ grams` to this class

    def __init__(self, matrices: Sequence[GramMatrix]) -> None:
        self._matrices = list(matrices)

    def __len__(self) -> int:
        """Number of kernels."""
        return len(self._matrices)

    @overload
    def __getitem__(self, index: int) -> GramMatrix: ...
    @overload
    def __getitem__(self, index: slice) -> list[GramMatrix]: ...
    def __getitem__(self, index: int | slice) -> GramMatrix | list[GramMatrix]:
        """Matrix of one kernel, or a list of matrices."""
        return self._matrices[index]

    def __matmul__(self, V: ArrayLike) -> NDArray[Any]:
        """Product of each matrix with V, (M,) or (M, k): (kernels, N) or (kernels, N, k).

        Matrices that are computed on demand share the inner products of the samples.
        """
        first, sources = self._matrices[0], [matrix.source for matrix in self._matrices]
        return multiply(TileSource.joined(sources), first.tiling, V, first.dtype)


def open_gram(path: str | Place) -> GramMatrix:
    """Open a complete Gram store.

    Parameters
    ----------
    path
        Folder of the store, or its ``s3://`` URL.

    Returns
    -------
    GramMatrix
        The matrix, read as needed. If the store has several kernels, it is that of the first;
        `GramMatrix.with_kernel` gives the others.

    Raises
    ------
    IncompleteStoreError
        Tiles are missing.
    StoreError
        There is no store at the path.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> _ = dhsk.compute_gram(np.eye(4), "cosine", store="eye.gram")
    >>> G = dhsk.open_gram("eye.gram")
    >>> G[:, :]
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 0., 1.]])
    """
    store = GramStore.open(parse_place("path", path))
    if store.header.layout == "none":
        raise IncompleteStoreError(f"{path} holds samples but no tiles: compute it with a store")
    store.check_complete()
    return GramMatrix(store, store.kernels[0])


def width_of_matrix(G: GramMatrix) -> float:
    """Width of the Gaussian kernel of a matrix's samples that is given by its name."""
    parts = blocks(G.shape[0], ROWS)
    return usual_width(gamma_of_scale(G.staged_rows(part) for part in parts))
