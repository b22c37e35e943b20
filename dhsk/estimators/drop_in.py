"""What the drop-ins of scikit-learn's estimators share: its kernels, weights and attributes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import (
    Tags,
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Rows
from dhsk.bars import Show
from dhsk.errors import InputError
from dhsk.estimators.automatic import Auto, SamplePairs
from dhsk.estimators.base import HeatEstimator
from dhsk.estimators.kernel_names import (
    PRECOMPUTED,
    USES_GAMMA,
    check_shape,
    family_of,
    made_of,
    parse_name,
)
from dhsk.estimators.problem import random_numbers
from dhsk.gram.row_map import RowMap
from dhsk.kernels import GaussianKernel, Kernel, LinearKernel, PrecomputedKernel
from dhsk.kernels.base import Indefinite, flag_parameter, positive_parameter, whole_parameter
from dhsk.kernels.centre import with_all_entries
from dhsk.models.given import check_square
from dhsk.objects.places import Place
from dhsk.samples import Samples, ZeroRule
from dhsk.samples.looks import first_rows
from dhsk.samples.scan import in_blocks
from dhsk.samples.variance import mapped_gamma
from dhsk.samples.weighted import LEARNT, fixed_map

ALL_MASKED = "Invalid input - all samples have zero or negative weights."
"""scikit-learn's words."""


@dataclass(eq=False, repr=False, kw_only=True)
class DropIn(HeatEstimator):
    """Base of estimators with the parameters, attributes and results of scikit-learn's.

    A matrix that is given, or that a function makes, counts as samples: each is its row of kernel
    values with the samples of the fit.
    """

    _headings: ClassVar[Mapping[str, str]] = {
        **HeatEstimator._headings,
        "overflow": "The dual coefficients or intercepts are not finite",
    }
    kernel: Kernel | str | Callable[[Any, Any], Any] = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    tol: float = 1e-3
    shrinking: bool = True
    cache_size: float = 200
    verbose: bool = False
    max_iter: int = -1
    time_scale: float | Auto = "auto"
    zero_rows: ZeroRule = "center"
    dtype: str = "float64"
    memory: int | str | None = None
    indefinite: Indefinite = "error"
    _X_fit: Any = field(init=False)
    """Samples of a fit whose kernel is a function."""
    _shape: Any = field(init=False)
    """Shape of the samples of a fit."""
    _sparse: bool = field(init=False)
    """Whether they are sparse, and so are coefficients and support vectors."""
    _support_rows: Rows = field(init=False)
    """Support vectors as kernels take them."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernel, str) and self.kernel == PRECOMPUTED
        tags.input_tags.pairwise, tags.input_tags.sparse = given, not given
        return tags

    @property
    def _family(self) -> Kernel | type[Kernel]:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        try:
            return family_of(parse_name(self.kernel) or PRECOMPUTED)
        except InputError:  # `fit` raises it
            return LinearKernel

    @property
    def _is_function(self) -> bool:
        """Whether the kernel is a function, which makes matrices of whatever samples it knows."""
        return callable(self.kernel) and not isinstance(self.kernel, Kernel)

    def _check_kernel(self) -> None:
        check_shape(self.gamma, self.degree, self.coef0)
        whole_parameter("max_iter", self.max_iter, -1)
        positive_parameter("cache_size", self.cache_size)
        flag_parameter("shrinking", self.shrinking)
        random_numbers(getattr(self, "random_state", None))
        if parse_name(self.kernel) == PRECOMPUTED and self.sphere_map is not None:
            raise InputError(
                f"sphere_map={self.sphere_map!r} maps samples, but kernel values are given: leave "
                "it out"
            )
        if parse_name(self.kernel) in (None, PRECOMPUTED, *USES_GAMMA):
            return
        super()._check_kernel()

    @property
    def _most_steps(self) -> int | None:
        return None if self.max_iter == -1 else int(self.max_iter)

    def _shows(self, progress: Show) -> Show:
        return super()._shows(True if progress is None and self.verbose else progress)

    def _kernel_at(self, few: SamplePairs, time_scale: float) -> Kernel:
        name = parse_name(self.kernel)
        gamma = self._gamma_of(few.samples) if name in USES_GAMMA else 1.0
        made = made_of(name, gamma, self.degree, self.coef0) if name else None
        return made or super()._kernel_at(few, time_scale)

    def _gamma_of(self, samples: Samples) -> float:
        """The number of `gamma` for some samples, all of which count alike."""
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto":
            return 1.0 / samples.shape[1]
        return mapped_gamma(samples, fixed_map(self.sphere_map))

    @property
    def _gamma(self) -> float:
        """scikit-learn's gamma of the fit; 0 for a kernel without it."""
        check_is_fitted(self)
        sigma = getattr(self.kernel_, "sigma", None)
        return float(getattr(self.kernel_, "scale", 0.0) if sigma is None else 0.5 / sigma**2)

    # Samples

    def _row_map(self, few: SamplePairs) -> RowMap:
        row_map = super()._row_map(few)
        if row_map.sphere_map != "identity" or self.sphere_map in LEARNT:
            return row_map
        return replace(row_map, weights=centre_if_far(few.samples, row_map.kernel))

    @property
    def _centre(self) -> Floats | None:
        """What is subtracted of far samples, (dim,); None for nothing."""
        weights = None if self.sphere_map in LEARNT else self._fitted_map.weights
        return None if weights is None else weights[0]

    def _validated(self, X: Any, **options: Any) -> Any:
        fits = options.get("reset", True)
        if self._is_function:
            found = self._compared(X, options.get("y"), fits=fits)
            if options.get("y_numeric"):
                assert_all_finite(np.asarray(found[1], np.float64), input_name="y")
        elif self.kernel == PRECOMPUTED:
            if issparse(X):
                raise TypeError("Sparse precomputed kernels are not supported.")
            found = super(HeatEstimator, self)._validated(X, **options)  # finite too
            if fits:
                check_square(_first(found))
        else:
            found = super()._validated(X, **options)
        if fits:
            shape = np.shape(X) if self._is_function else _first(found).shape
            self._shape = np.array(shape)
            self._sparse = issparse(_first(found))
        elif self._centre is not None:  # gaps would become 0
            assert_all_finite(found, input_name="X")
        return found

    def _samples(self, X: Any) -> Samples:
        # Full rows take less memory as an array, and their products less time.
        return super()._samples(X.toarray() if _is_full(X) else X)

    def _compared(self, X: Any, y: Any, *, fits: bool) -> Any:
        """The matrix that the function makes of samples and those of the fit, and labels."""
        if y is not None:
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
        fitted = X if fits else self._X_fit
        K: Any = self.kernel(X, fitted)  # type: ignore[operator]  # it is a function
        K = check_array(_dense(K), dtype=np.float64)
        wanted = _count(X), _count(fitted)
        if K.shape != wanted:
            found, right = ("x".join(map(str, shape)) for shape in (K.shape, wanted))
            raise InputError(f"the kernel made a {found} matrix of samples whose matrix is {right}")
        if fits:
            self._X_fit = X
        return K if y is None else (K, y)

    def _factors(self, sample_weight: Any, n: int) -> Floats:
        """Weights of samples; those of negative weight are not used, as in LIBSVM."""
        if sample_weight is None:
            return super()._factors(None, n)
        given = np.asarray(sample_weight, dtype=np.float64)
        if given.size and not (given > 0).any() and not np.isnan(given).any():
            raise InputError(ALL_MASKED)
        return super()._factors(np.maximum(given, 0.0), n)

    def _write(self, path: str | Place) -> None:
        if self._is_function:
            raise InputError(
                "a kernel that is a function cannot be written to a file: fit the matrix that it "
                'makes, with kernel="precomputed"'
            )
        super()._write(path)

    # Attributes

    @property
    def shape_fit_(self) -> tuple[int, ...]:
        """Shape of the samples of the fit."""
        check_is_fitted(self)
        return tuple(map(int, self._shape))

    @property
    def fit_status_(self) -> int:
        """0 if the fit has converged, else 1."""
        check_is_fitted(self)
        return int(not self.converged_)

    @property
    def support_vectors_(self) -> Any:
        """Support vectors, (n_sv, n_features), as samples are, or mapped; none of given values."""
        check_is_fitted(self)
        if isinstance(self.kernel_, PrecomputedKernel):
            return np.empty((0, 0))
        rows = with_all_entries(self._support_rows)
        if self._centre is not None:
            rows = np.asarray(rows + self._centre)
        return csr_matrix(rows) if self._sparse else rows

    def _weights_of(self, pairs: Floats) -> Any:
        """Weights of the features, (pairs, n_features), of coefficients, (pairs, n_sv)."""
        if not isinstance(self.kernel_, LinearKernel):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights: Any = (csr_matrix(pairs) if self._sparse else pairs) @ self.support_vectors_
        values = weights.data if self._sparse else weights
        values.flags.writeable = False  # as a change of it would change no decision
        return weights

    def _as_samples_are(self, coef: Floats) -> Any:
        """Coefficients, sparse if the samples are: with an entry for each."""
        if not self._sparse:
            return coef
        rows, n = coef.shape
        places = np.tile(np.arange(n, dtype=np.int32), rows)
        return csr_matrix((coef.ravel(), places, np.arange(rows + 1) * n), shape=coef.shape)


def centre_if_far(samples: Samples, kernel: Kernel) -> Floats | None:
    """Means to subtract, and factors of 1, (2, dim), where a Gaussian kernel loses distances.

    Squared distances are computed from norms, and those of dense samples far from 0 cancel. Only
    columns within a factor of two of their mean have one: the differences from it are exact.
    """
    if samples.is_sparse or not isinstance(kernel, GaussianKernel):
        return None
    if kernel.lost_distances(first_rows(samples)) is None:
        return None
    sums, extremes = np.zeros(samples.shape[1]), list[Floats]()
    for _, block in in_blocks(samples):
        rows = np.asarray(block)
        sums += rows.sum(axis=0)
        extremes += [rows.min(axis=0), rows.max(axis=0)]
    means = sums / samples.shape[0]
    if not np.isfinite(means).all():  # the map refuses them
        return None
    ratios = np.array(extremes) / np.where(means == 0, 1.0, means)
    exact = (ratios >= 0.5).all(axis=0) & (ratios <= 2.0).all(axis=0)
    return np.array([np.where(exact, means, 0.0), np.ones_like(means)])


def _count(X: Any) -> int:
    """Number of samples of any kind."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _dense(K: Any) -> Any:
    """A matrix without the sparse formats."""
    found: Any = K
    return found.toarray() if issparse(K) else K


def _is_full(X: Any) -> bool:
    """Whether sparse samples take less memory as an array."""
    if not issparse(X):
        return False
    sparse: Any = X
    each: int = sparse.data.itemsize + sparse.indices.itemsize
    return bool(sparse.nnz * each >= 8 * sparse.shape[0] * sparse.shape[1])


def terminated_early(max_iter: int, complaint: str) -> str:
    """What a fit that did not converge says, in scikit-learn's words if it was to end early."""
    if max_iter == -1:
        return complaint
    return (
        f"Solver terminated early (max_iter={max_iter}).  Consider pre-processing your data with "
        f"StandardScaler or MinMaxScaler. Raise max_iter: {complaint}"
    )


def _first(found: Any) -> Any:
    """Samples, of samples or of samples and labels."""
    return found[0] if isinstance(found, tuple) else found
