"""Kernel principal component analysis on Gram matrices that may be larger than memory."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats
from dhsk.bars import Show
from dhsk.estimators.automatic import Auto
from dhsk.estimators.base import rows_of_fit
from dhsk.estimators.spectral import SpectralEstimator
from dhsk.gram.spectra import warn_unless_converged
from dhsk.gram.views import centred
from dhsk.kernels.base import whole_parameter
from dhsk.samples import SphereMap
from dhsk.solvers.eigenpairs import Multiply

SMALLEST = 1e-12
"""Eigenvalues below this share of the largest one are taken for 0, as in scikit-learn."""


@dataclass(eq=False, repr=False)
class HeatKernelPCA(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    SpectralEstimator,
):
    """Kernel PCA, by default with the exact heat kernel on the hypersphere.

    Components, signs and scores are those of `sklearn.decomposition.KernelPCA`. Leading eigenpairs
    of the centred kernel matrix come from a block Krylov space in few passes over the matrix, which
    is never in memory as a whole, and `residuals_` certifies them.

    Parameters
    ----------
    n_components
        Number of components; at most the number of samples are found.
    time_scale, sphere_map, zero_rows, kernel
    tol
        Upper bound on the residuals of the eigenpairs, relative to the largest eigenvalue.
    max_iter, dtype, memory, client, store, journal
    random_state
        Seed of the first vectors.

    Attributes
    ----------
    eigenvalues_
        Eigenvalues of the centred kernel matrix, descending, (k,).
    eigenvectors_
        Their eigenvectors in columns, (N, k).
    residuals_
        Residual of each eigenpair, relative to the largest eigenvalue, from a new pass.
    X_fit_, kernel_, time_scale_
    n_iter_
        Number of iterations.
    converged_
        Whether the residuals are at most `tol`.
    n_features_in_, feature_names_in_

    References
    ----------
    .. [1] B. Schölkopf, A. Smola and K.-R. Müller, "Nonlinear component analysis as a kernel
       eigenvalue problem", Neural Computation 10 (1998).

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> pca = dhsk.HeatKernelPCA(2).fit(X[:1000])
    >>> pca.eigenvalues_.round(1)
    array([60.1, 57.8])
    >>> pca.transform(X[1000:]).shape
    (797, 2)
    """

    _learnt = (
        "eigenvalues_", "eigenvectors_", "residuals_", "n_iter_", "converged_", "_rows", "_coef",
        "_offset",
    )  # fmt: skip

    X_fit_ = property(rows_of_fit)
    n_components: int = 2
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    _: KW_ONLY
    tol: float = 1e-8

    def fit(self, X: Any, y: Any = None, *, progress: Show = None) -> Self:
        """Fit to samples."""
        del y
        k = whole_parameter("n_components", self.n_components, 1)
        self._check("tol")
        X = self._validated(X)
        n = X.shape[0]
        means = np.empty(n)

        def operator(_: object, products: Multiply) -> Multiply:
            means[:] = products(np.ones(n)) / n
            return lambda V: centred(products(centred(V)))

        with self._begun(progress, reading=1, tiles=2, passes=10) as run:
            self._rows = self._map_to_fit(X, run)
            found = self._eigenpairs(X, self._rows, min(k, n), operator, run)
        warn_unless_converged(found)
        values = found.values
        self.eigenvalues_ = np.where(values > SMALLEST * max(values[0], 0.0), values, 0.0)
        self.eigenvectors_ = found.vectors
        with np.errstate(divide="ignore"):
            roots = np.where(self.eigenvalues_ > 0, self.eigenvalues_**-0.5, 0.0)
        self._coef = self.eigenvectors_ * roots
        self._coef -= self._coef.mean(axis=0)  # so that means of new rows drop out
        self._offset = means @ self._coef
        return self

    def fit_transform(self, X: Any, y: Any = None, *, progress: Show = None) -> Floats:
        """Fit to samples, and return their scores, (N, k), from the eigenvectors."""
        self.fit(X, y, progress=progress)
        scores: Floats = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        return scores

    def transform(self, X: Any) -> Floats:
        """Scores of samples on the components, (N, k)."""
        check_is_fitted(self)
        return self._sums(X, self._rows, self._coef) - self._offset

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
