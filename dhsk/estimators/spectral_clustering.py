"""Spectral clustering with Gram matrices that may be larger than memory."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.linalg import qr, svd
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from dhsk.arrays import Floats, Indices
from dhsk.bars import Show
from dhsk.errors import InputError
from dhsk.estimators.automatic import Auto
from dhsk.estimators.spectral import SpectralEstimator
from dhsk.execution.settings import one_blas_thread
from dhsk.gram.embeddings import checked_degrees
from dhsk.gram.spectra import warn_unless_converged
from dhsk.kernels.base import chosen_parameter, whole_parameter
from dhsk.progress import OnProgress, counter
from dhsk.samples import SphereMap
from dhsk.solvers.eigenpairs import Multiply

ASSIGN = ("kmeans", "cluster_qr")
"""Ways from eigenvectors to labels."""


@dataclass(eq=False, repr=False)
class HeatSpectralClustering(ClusterMixin, SpectralEstimator):  # type: ignore[misc]
    """Spectral clustering, by default with the exact heat kernel on the hypersphere.

    The embedding is that of `sklearn.cluster.SpectralClustering` with a precomputed affinity:
    leading eigenvectors of D^(-1/2) K D^(-1/2) divided by the square roots of the degrees D, the
    row sums of K. As there, the affinity of a sample with itself does not count. The kernel matrix
    is never in memory as a whole, and `residuals_` certifies the eigenvectors.

    Parameters
    ----------
    n_clusters
        Number of clusters, and of eigenvectors.
    time_scale
        Diffusion time in units of log(dim)/dim; "auto" for the one at which the mean of 1 - K over
        pairs of samples is 0.6. Used by heat and parametrix kernels alone. A shorter time makes
        the affinity more local.
    sphere_map, zero_rows
    kernel
        A kernel of dhsk without negative values; None for the heat kernel at `time_scale`; or a
        name as for `HeatSVC`.
    assign_labels
        "kmeans" for scikit-learn's `KMeans` on the embedding, or "cluster_qr" for a pivoted QR
        factorization of the eigenvectors [2]_, which has no parameters and no random start.
    n_init
        Number of starts of `KMeans`.
    tol
        Upper bound on the residuals of the eigenvectors; the largest eigenvalue is 1.
    max_iter, dtype, memory
    client
        Dask client whose workers compute the matrix. Clones share it, and it is not pickled.
    store, journal
    random_state
        Seed of the first vectors and of `KMeans`.

    Attributes
    ----------
    labels_
        Cluster of each sample, (N,).
    eigenvalues_
        Leading eigenvalues of D^(-1/2) K D^(-1/2), descending, (n_clusters,). The first one is 1,
        and a gap after the last one speaks for this number of clusters.
    embedding_
        Coordinates of the samples, (N, n_clusters).
    residuals_
        Residual of each eigenpair, from a new pass.
    kernel_, time_scale_
    n_iter_
        Number of iterations of the eigenvectors.
    converged_
        Whether the residuals are at most `tol`.
    n_features_in_, feature_names_in_

    References
    ----------
    .. [1] A. Ng, M. Jordan and Y. Weiss, "On spectral clustering: analysis and an algorithm",
       NIPS 14 (2001).
    .. [2] A. Damle, V. Minden and L. Ying, "Simple, direct and efficient multi-way spectral
       clustering", Information and Inference 8 (2019).

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, y = load_digits(return_X_y=True)
    >>> clustering = dhsk.HeatSpectralClustering(10).fit(X)
    >>> round(adjusted_rand_score(y, clustering.labels_), 2)
    0.63
    """

    _learnt = ("labels_", "eigenvalues_", "embedding_", "residuals_", "n_iter_", "converged_")

    n_clusters: int = 8
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    _: KW_ONLY
    assign_labels: str = "kmeans"
    n_init: int = 10
    tol: float = 1e-6

    def fit(self, X: Any, y: Any = None, *, progress: Show = None) -> Self:
        """Cluster samples.

        Raises
        ------
        InputError
            A parameter or a row is invalid, or a sample has no affinity with others; the message
            names the row.
        BudgetError
        """
        del y
        k = whole_parameter("n_clusters", self.n_clusters, 1)
        n_init = whole_parameter("n_init", self.n_init, 1)
        chosen_parameter("assign_labels", self.assign_labels, ASSIGN)
        self._check("tol")
        X = self._validated(X, ensure_min_samples=2)
        n = X.shape[0]
        if k > n:
            raise InputError(f"n_clusters={k} is above the number of samples, n_samples={n}")
        roots = np.empty(n)
        with self._begun(progress, reading=1, tiles=2, passes=10, clusterings=3) as run:
            rows = self._map_to_fit(X, run)
            found = self._eigenpairs(X, rows, k, partial(_laplacian, roots), run)
            warn_unless_converged(found)
            self.eigenvalues_ = found.values
            self.embedding_ = found.vectors / roots[:, None]
            if self.assign_labels == "kmeans":
                rng = check_random_state(self.random_state)
                self.labels_ = _best_labels(self.embedding_, k, n_init, rng, run.report)
            else:
                self.labels_ = cluster_qr(self.embedding_)
        return self


def _best_labels(
    points: Floats, k: int, starts: int, rng: np.random.RandomState, report: OnProgress
) -> Indices:
    """Labels of scikit-learn's `KMeans` of several starts, one at a time, so that each is told."""
    advance = counter(report, "clusterings", starts)
    best = None
    with one_blas_thread():
        for _ in range(starts):
            found = KMeans(k, n_init=1, random_state=rng).fit(points)
            if best is None or found.inertia_ < best.inertia_:
                best = found
            advance(1)
    assert best is not None  # there is at least one start
    labels: Indices = best.labels_
    return labels


def _laplacian(roots: Floats, diagonal: Callable[[], Floats], products: Multiply) -> Multiply:
    """Products with D^(-1/2) (K - diag K) D^(-1/2); the square roots of D go to `roots`."""
    own = diagonal().astype(np.float64)
    roots[:] = np.sqrt(checked_degrees(products(np.ones(len(own))) - own))
    scale, each = 1 / roots[:, None], own[:, None]

    def multiply(V: Floats) -> Floats:
        scaled = scale * V
        return scale * (products(scaled) - each * scaled)

    return multiply


def cluster_qr(vectors: Floats) -> Indices:
    """Labels by a pivoted QR factorization of eigenvectors, (N, k), see `HeatSpectralClustering`.

    The pivots are k samples that represent the clusters; a rotation then takes each of them to an
    axis, and every sample belongs to its largest coordinate.
    """
    pivots = qr(vectors.T, pivoting=True, mode="r")[1][: vectors.shape[1]]
    left, _, right = svd(vectors[pivots].T)
    labels: Indices = np.abs(vectors @ (left @ right)).argmax(axis=1)
    return labels
