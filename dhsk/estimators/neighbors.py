"""Nearest neighbours by the distance of a kernel, and the graph that scikit-learn takes for it."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Indices
from dhsk.bars import Show, passes_shown
from dhsk.errors import InputError
from dhsk.estimators.automatic import Auto
from dhsk.estimators.base import KernelEstimator, rows_of_fit
from dhsk.execution.run import Run
from dhsk.gram.compute import gram_of_rows
from dhsk.gram.neighbors import (
    NEIGHBOR,
    check_mode,
    graph_of,
    nearest_of_rows,
    side_of_rows,
)
from dhsk.kernels.base import whole_parameter
from dhsk.samples import SphereMap


@dataclass(eq=False, repr=False)
class HeatKernelNeighbors(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # see its base
    TransformerMixin,  # type: ignore[misc]
    KernelEstimator,
):
    """Graph of nearest neighbours, by default by the exact heat kernel on the hypersphere.

    It is scikit-learn's `KNeighborsTransformer` with the distance of the features of a kernel,
    sqrt(K(x, x) + K(y, y) - 2 K(x, y)): a first step before estimators that take
    ``metric="precomputed"``. Neighbours of all samples come from one pass over the kernel matrix,
    which is never in memory as a whole. The heat kernel falls with the angle at any time, so the
    time changes distances, but not which samples are nearest.

    `HDBSCAN` takes a symmetric, connected graph. SciPy drops distances of 0 on the way, by which
    a sample counts itself and equal ones, so raise them first:
    ``graph.data.clip(1e-9, out=graph.data)``, then ``graph.maximum(graph.T)``. UMAP takes
    neighbours as ``precomputed_knn``, the sample itself the first of its `n_neighbors`, which are
    one more than here: ``(graph.indices.reshape(N, -1), graph.data.reshape(N, -1))``.

    Parameters
    ----------
    n_neighbors
        Number of neighbours of each sample.
    time_scale, sphere_map
    mode
        "distance" for a graph of distances, or "connectivity" for edges of weight 1. As in
        scikit-learn, a graph of distances has one neighbour more, as a sample is its own.
    zero_rows, kernel, dtype, memory
    client
        Dask client whose workers find the neighbours. Clones share it, and it is not pickled.

    Attributes
    ----------
    n_samples_fit_
        Number of samples of the fit.
    X_fit_, kernel_, time_scale_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> last = KNeighborsClassifier(5, metric="precomputed")
    >>> model = make_pipeline(dhsk.HeatKernelNeighbors(5), last).fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 3)
    0.959
    """

    _learnt = ("_rows",)

    X_fit_ = property(rows_of_fit)
    n_neighbors: int = 5
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    _: KW_ONLY
    mode: str = "distance"

    def fit(self, X: Any, y: Any = None, *, progress: Show = None) -> Self:
        """Keep samples, mapped to the sphere, as those to choose neighbours from."""
        del y
        whole_parameter("n_neighbors", self.n_neighbors, 1)
        check_mode(self.mode)
        self._check()
        X = self._validated(X)
        with self._begun(progress, reading=1) as run:
            self._rows = self._map_to_fit(X, run)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, progress: Show = None) -> Any:
        """Fit to samples, and return the graph of their neighbours.

        Returns
        -------
        csr_array
            (N, N), that of `transform`, in about half of its time.
        """
        with passes_shown(self._shows(progress), reading=1, search=20) as told:
            self.fit(X, y, progress=told.report)
            k = self._number(None, self._more)
            with told.report.part("search", 1.0):
                others, far = self._among_themselves(min(k, self.n_samples_fit_ - 1), told.report)
        itself = np.arange(self.n_samples_fit_)[:, None]
        indices, distances = np.hstack([itself, others]), np.hstack([np.zeros(itself.shape), far])
        order = np.lexsort((indices, distances), axis=1)[:, :k]
        indices, distances = (np.take_along_axis(x, order, axis=1) for x in (indices, distances))
        return graph_of(indices, distances, self.n_samples_fit_, self.mode)

    def transform(self, X: Any) -> Any:
        """Graph of the neighbours of samples, among those of the fit.

        Returns
        -------
        csr_array
            (M, N), of each sample its neighbours, nearest first: `n_neighbors`, and one more in
            mode "distance". Equally distant ones are in the order of their indices. A sample of the
            fit is a neighbour of itself, with an explicit 0 as distance.
        """
        check_is_fitted(self)
        found = self._among_fitted(X, self._number(None, self._more))
        return graph_of(*found, self.n_samples_fit_, self.mode)

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Floats, Indices] | Indices:
        """Nearest neighbours of samples, among those of the fit.

        Parameters
        ----------
        X
            Samples by row, (M, dim), dense or sparse; None for those of the fit, none of which is
            its own neighbour.
        n_neighbors
            Number of neighbours; None for that of the estimator.
        return_distance
            Whether to return distances too.

        Returns
        -------
        distances, indices : ndarray
            Both (M, n_neighbors), nearest first; or the indices alone.
        """
        indices, distances = self._nearest(X, n_neighbors)
        return (distances, indices) if return_distance else indices

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> Any:
        """Graph of the neighbours that `kneighbors` gives.

        Parameters
        ----------
        X, n_neighbors
            As for `kneighbors`.
        mode
            "connectivity" for edges of weight 1, or "distance".

        Returns
        -------
        csr_array
            (M, N), nearest first.
        """
        check_mode(mode)
        return graph_of(*self._nearest(X, n_neighbors), self.n_samples_fit_, mode)

    @property
    def n_samples_fit_(self) -> int:
        """Number of samples of the fit."""
        check_is_fitted(self)
        return int(self._rows.shape[0])

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    @property
    def _more(self) -> int:
        """Neighbours of a row of the graph beside `n_neighbors`, as in scikit-learn."""
        return int(self.mode == "distance")

    def _number(self, n_neighbors: int | None, more: int, but: int = 0) -> int:
        """Number of neighbours, with some more, of the samples of the fit but so many."""
        given = self.n_neighbors if n_neighbors is None else n_neighbors
        k, most = whole_parameter("n_neighbors", given, 1), self.n_samples_fit_ - but
        if k + more > most:
            reason = " in mode 'distance', as a sample is its own neighbor too" if more else ""
            raise InputError(
                f"n_neighbors must be at most {most - more}{reason}, but it is {k}: "
                f"n_samples_fit={self.n_samples_fit_}"
            )
        return k + more

    def _nearest(self, X: Any, n_neighbors: int | None) -> tuple[Indices, Floats]:
        """What `kneighbors` finds."""
        check_is_fitted(self)
        k = self._number(n_neighbors, 0, int(X is None))
        return self._among_themselves(k) if X is None else self._among_fitted(X, k)

    def _among_themselves(self, k: int, progress: Show = None) -> tuple[Indices, Floats]:
        """Nearest other samples of those of the fit."""
        if k == 0:  # of a single sample
            return np.empty((1, 0), dtype=np.intp), np.empty((1, 0))
        begun = Run.begun(progress, memory=self.memory, client=self.client, staging=1, tiles=10)
        with begun as (run, told):
            return gram_of_rows(self._rows, self.kernel_, run).neighbors(k, progress=told)

    def _among_fitted(self, X: Any, k: int) -> tuple[Indices, Floats]:
        """Nearest samples of the fit of others."""
        side = side_of_rows(self._rows, self.kernel_)
        function = partial(nearest_of_rows, self.kernel_, self._rows, side, k)
        found = self._predicted(X, self._rows, function, k, k * NEIGHBOR.itemsize)
        return np.ascontiguousarray(found["index"]), np.ascontiguousarray(found["distance"])
