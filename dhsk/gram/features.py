"""Geometry of the features behind a Gram matrix: norms, distances, neighbours, alignment."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Indices
from dhsk.bars import Show, passes_shown
from dhsk.caching import cached_value
from dhsk.errors import InputError
from dhsk.gram.moments import alignment
from dhsk.gram.neighbors import Side, check_mode, graph_of, nearest, squared_distances
from dhsk.gram.storage.indexing import Selector, to_indices
from dhsk.gram.tiled import TiledMatrix
from dhsk.kernels.base import whole_parameter


class FeatureGeometry(TiledMatrix):
    """Operations that compute numbers from a matrix of inner products of features."""

    def norms(self) -> Floats:
        """Norms of the features of the samples, the square roots of the diagonal.

        Returns
        -------
        ndarray
            (N,), float64.

        Raises
        ------
        InputError
            The matrix is rectangular; or K(x, x) < 0, as the kernel is indefinite.

        Examples
        --------
        >>> import numpy as np, dhsk
        >>> G = dhsk.compute_gram(np.array([[5.9, 3.0], [6.9, 3.1]]), "linear")
        >>> G.norms().round(4)
        array([6.6189, 7.5644])
        """
        self._square("asked for norms")
        return np.sqrt(np.maximum(self._norms2(), 0.0))

    def distances(self, rows: Selector = slice(None), cols: Selector = slice(None)) -> Floats:
        """Distances between the features of samples, sqrt(K(x, x) + K(y, y) - 2 K(x, y)).

        Equal samples have distance 0. Distances of samples that are nearly equal have the rounding
        errors of kernel values: about 1e-8 of the norms, and 3e-4 of them in float32.

        Parameters
        ----------
        rows, cols
            Samples of rows and of columns: slices, indices or booleans.

        Returns
        -------
        ndarray
            (rows, cols), float64.

        Examples
        --------
        >>> import numpy as np, dhsk
        >>> X = np.array([[5.9, 3.0], [6.9, 3.1]])
        >>> G = dhsk.compute_gram(X, "linear")
        >>> G.distances().round(4)
        array([[0.   , 1.005],
               [1.005, 0.   ]])
        """
        matrix = self._translated()
        of_rows, of_cols = matrix._sides
        chosen = to_indices(rows, self.shape[0]), to_indices(cols, self.shape[1])
        (values,) = matrix.submatrices([chosen], np.float64)
        distances2 = squared_distances(values, of_rows.take(chosen[0]), of_cols.take(chosen[1]))
        if self.symmetric:
            distances2[np.equal.outer(*chosen)] = 0.0
        return np.sqrt(distances2)

    def mean_norm2(self, *, progress: Show = None) -> float:
        """Squared norm of the mean of the features: the mean of all entries.

        Parameters
        ----------
        progress
            Function that is called with a `Progress` after every group of tiles; True for bars.

        Returns
        -------
        float
            From one pass over the matrix, which is kept.

        Raises
        ------
        InputError
            The matrix is rectangular.

        Examples
        --------
        >>> import numpy as np, dhsk
        >>> X = np.array([[5.9, 3.0], [6.9, 3.1]])
        >>> round(dhsk.compute_gram(X, "linear").mean_norm2(), 4), round(6.4**2 + 3.05**2, 4)
        (50.2625, 50.2625)
        """
        return float(self._square("asked for the norm of its mean").mean(progress=progress))

    def total_variance(self, *, progress: Show = None) -> float:
        """Mean squared distance of the features from their mean.

        Parameters
        ----------
        progress
            Function that is called with a `Progress` after every group of tiles; True for bars.

        Returns
        -------
        float
            Mean of the diagonal less the mean of all entries, from one pass, which is kept.

        Raises
        ------
        InputError
            The matrix is rectangular.

        Examples
        --------
        >>> import numpy as np, dhsk
        >>> X = np.array([[5.9, 3.0], [6.9, 3.1]])
        >>> round(dhsk.compute_gram(X, "linear").total_variance(), 4)  # 0.25 and 0.0025
        0.2525
        """
        self._square("asked for its variance")
        with passes_shown(progress):
            return float((self._exact_diagonal()[0] - self._row_means).mean())

    def neighbors(self, k: int, *, progress: Show = None) -> tuple[Indices, Floats]:
        """Nearest other samples of each sample, by the distance of their features.

        One pass over the matrix finds those of all rows, with memory for O(N k) numbers. Of a
        rectangular matrix they are the nearest columns of each row.

        Parameters
        ----------
        k
            Number of neighbours.
        progress
            Function that is called with a `Progress` after every group of tiles; True for bars.

        Returns
        -------
        indices, distances : ndarray
            Both (N, k), nearest first; equally distant ones in the order of their indices. A sample
            is not its own neighbour. Distances are as `distances` gives them.

        Examples
        --------
        >>> import dhsk
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> indices, distances = dhsk.compute_gram(X, "heat").neighbors(3)
        >>> indices[0], distances[0].round(3)
        (array([1167,  877,  464]), array([0.171, 0.194, 0.198]))
        >>> float((y[indices[:, 0]] == y).mean().round(3))  # part whose nearest is the same digit
        0.985

        Of new samples, among others:

        >>> R = dhsk.compute_gram(X[1000:], "heat", X[:1000])
        >>> nearest = R.neighbors(1)[0][:, 0]
        >>> float((y[nearest] == y[1000:]).mean().round(3))
        0.96
        """
        most = self.shape[1] - self.symmetric
        if whole_parameter("k", k, 1) > most:
            raise InputError(f"k must be at most {most}, the samples to choose from, but it is {k}")
        matrix = self._translated()
        with passes_shown(progress):
            found = nearest(matrix.source, matrix.tiling, matrix._sides, int(k), self.dtype)
        return found[1], found[0]

    def neighbors_graph(
        self,
        k: int,
        mode: Literal["connectivity", "distance"] = "connectivity",
        *,
        progress: Show = None,
    ) -> "csr_array[Any, tuple[int, int]]":
        """Graph of the nearest neighbours, as scikit-learn's `kneighbors_graph`.

        Parameters
        ----------
        k
            Number of neighbours of each sample.
        mode
            Whether edges have weight 1 or the distance.
        progress
            As for `neighbors`.

        Returns
        -------
        csr_array
            (N, M), with k entries a row, nearest first; duplicates have an explicit 0 as distance.

        Examples
        --------
        >>> import numpy as np, dhsk
        >>> G = dhsk.compute_gram(np.array([[0.0], [1.0], [3.0]]), "linear")
        >>> G.neighbors_graph(1, mode="distance").toarray()
        array([[0., 1., 0.],
               [1., 0., 0.],
               [0., 2., 0.]])
        """
        check_mode(mode)
        return graph_of(*self.neighbors(k, progress=progress), self.shape[1], mode)

    def alignment(self, y: ArrayLike, *, progress: Show = None) -> float:
        """Centred alignment of the kernel with labels.

        It is the cosine of the angle between the centred matrix and the centred matrix Y Y' of the
        labels, as inner products of all entries: 1 if one is a multiple of the other. It takes one
        pass over the matrix.

        Parameters
        ----------
        y
            Labels, (N,): classes, or floats that are not all whole numbers, as in a regression; or
            features of the labels, (N, columns).
        progress
            Function that is called with a `Progress` after every group of tiles; True for bars.

        Returns
        -------
        float
            From 0 to 1, or from -1 if the kernel is indefinite.

        Raises
        ------
        InputError
            The matrix is rectangular, or the labels or the kernel are constant.

        References
        ----------
        C. Cortes, M. Mohri, A. Rostamizadeh, "Algorithms for learning kernels based on centered
        alignment", Journal of Machine Learning Research 13 (2012).

        Examples
        --------
        >>> import dhsk
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> for scale in (0.5, 1.0, 2.0):
        ...     G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(64, scale))
        ...     print(round(G.alignment(y), 3))
        0.615
        0.528
        0.508
        """
        matrix = self._square("aligned with labels")._translated()
        with passes_shown(progress):
            return alignment(matrix.source, matrix.tiling, y)

    # What operations need of a matrix

    def _norms2(self) -> Floats:
        """Diagonal in float64, (N,), or InputError if an entry is below 0."""
        diagonal, error = self._exact_diagonal()
        wrong = np.flatnonzero(diagonal < -error)
        if wrong.size:
            raise InputError(
                f"sample {wrong[0]} (counted from 0) has K(x, x) = {diagonal[wrong[0]]:.3g} below "
                "0: a kernel that is not positive semi-definite has no norms and distances"
            )
        return diagonal

    @cached_value
    def _sides(self) -> tuple[Side, Side]:
        """What distances need of rows and columns, kept from the first time."""
        side = Side(self._norms2(), self._marks())
        return side, side

    def _marks(self) -> NDArray[np.uint64]:
        """Hashes of the samples; see `Side.marks`."""
        return np.empty(0, dtype=np.uint64)

    def _translated(self) -> "FeatureGeometry":
        """A matrix of the same features about another origin, of which less is to be computed."""
        return self

    def _exact_diagonal(self) -> tuple[Floats, Floats]:
        """Diagonal in float64, (N,), and a bound on what views have rounded in it."""
        diagonal = self.diagonal().astype(np.float64)
        return diagonal, np.zeros_like(diagonal)
