"""Nyström features of a kernel, as a transformer."""

import os
import sys
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dhsk.arrays import Rows
from dhsk.bars import Show, shown
from dhsk.errors import warn
from dhsk.estimators.automatic import Auto, SamplePairs
from dhsk.estimators.base import HeatEstimator, in_scikit_words
from dhsk.estimators.problem import random_numbers
from dhsk.execution.limits import own_room
from dhsk.execution.memory import require_room
from dhsk.execution.run import Run
from dhsk.kernels import Kernel
from dhsk.kernels.base import whole_parameter
from dhsk.kernels.centre import with_all_entries
from dhsk.nystrom.approximation import Approximation, approximate
from dhsk.nystrom.feature_blocks import store_features
from dhsk.nystrom.features import FeatureMap, lazy_features
from dhsk.objects.places import Place, parse_place, scratch_in
from dhsk.results.low_rank import LowRank, usual_oversampling
from dhsk.samples import Samples, SphereMap, ZeroRule, open_samples
from dhsk.samples.names import in_order

if TYPE_CHECKING:
    import dask.array as da


@dataclass(eq=False, repr=False)
class NystromFeatures(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    HeatEstimator,
):
    """Features whose inner products approximate a kernel, by default the exact heat kernel.

    With landmarks L, Z Z' = K(X, L) K(L, L)^+ K(L, X). The error of this approximation is
    `trace_error_`. A linear model on Z, such as `sklearn.svm.LinearSVC`, then approximates a
    kernel model.

    Parameters
    ----------
    n_components
        Number of features; not used if `selection` is indices. There are fewer if there are fewer
        samples, if `landmark_tol` is reached, or if the rank of the kernel matrix is lower.
    kernel
        A positive semi-definite kernel; None for the heat kernel at `time_scale`; or a name as
        for `HeatSVC`.
    selection
        How landmarks are chosen. "rpcholesky": randomly pivoted Cholesky [2]_, which draws samples
        that the earlier landmarks approximate badly; of more than some 200,000 it searches a random
        part, of 65,536 or 16 for each landmark. "uniform": random samples. "kmeans": centres of
        clusters of the samples, by mini-batches. Or indices of rows of X, (m,).
    oversampling
        Number of landmarks per feature, at least 1; not used if `selection` is indices. With more
        landmarks than features, the features are the leading n_components components. None for 3
        with "rpcholesky", up to 3,000 landmarks, whose error is little larger than that of the
        best n_components features, and for 1 with the others. With 1, a third of the kernel values
        are computed.
    time_scale, sphere_map, zero_rows, landmark_tol
    dtype
        Type of mapped rows, inner products and features, "float64" or "float32"; sums and
        factorizations are in float64.
    memory
        Upper bound on the memory of this process: a number of bytes, or a string like "2GB". None
        for half of the free memory. Features, or mapped samples, that do not fit are computed again
        in every pass.
    random_state

    Attributes
    ----------
    landmarks_, landmark_indices_
    n_components_
        Number of features, at most the numerical rank of K(L, L): "rpcholesky" takes no pivot
        below m eps, where eps is that of `dtype`; the others drop eigenvalues below m eps times
        the diagonal.
    normalization_
        R in Z = K(X, L) R, (m, `n_components_`), float64: a root of K(L, L)^+, or its leading part.
    trace_error_
        Trace norm of K - Z Z' over the trace of K, for the samples of the fit. It is exact up to
        rounding in `dtype` if the kernel is positive semi-definite.
    kernel_, time_scale_, n_features_in_, feature_names_in_

    References
    ----------
    .. [1] C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
       NIPS 13 (2000).
    .. [2] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky",
       arXiv 2207.06503.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> features = dhsk.NystromFeatures(100, random_state=0)
    >>> features.fit_transform(X).shape
    (1797, 100)
    >>> round(features.trace_error_, 2)
    0.09
    """

    _learnt = (
        "landmark_indices_", "n_components_", "normalization_", "trace_error_", "_landmarks",
    )  # fmt: skip

    n_components: int = 1000
    kernel: Kernel | str | None = None
    selection: str | ArrayLike = "rpcholesky"
    _: KW_ONLY
    oversampling: float | None = None
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    zero_rows: ZeroRule = "center"
    landmark_tol: float = 0.0
    dtype: str = "float64"
    memory: int | str | None = None
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: Any, y: Any = None, *, progress: Show = None) -> Self:
        """Choose landmarks and factor their matrix.

        Parameters
        ----------
        X
            Samples by row, (N, dim), dense or sparse; a Dask array is read into memory.
        y, progress
        """
        del y
        self._fit(X, progress)
        return self

    def fit_samples(
        self, samples: Any, progress: Show = None, journal: str | Place | None = None
    ) -> Self:
        """Fit to samples in a file, which may be larger than memory.

        Parameters
        ----------
        samples
        progress
        journal
            Folder or ``s3://`` prefix for checkpoints. The same call resumes after an interruption
            and ends with the same features, if `random_state` is a number; remove the folder when
            the features are written. None for no checkpoints.
        """
        self._check()
        opened = open_samples(samples)
        names = None if opened.vectorizer else opened.feature_names
        self._keep_features(opened.shape[1], names)
        self._takes_any_order = False
        kept = None if journal is None else parse_place("journal", journal)
        with shown(progress) as report:
            run = replace(self._run(report), journal=kept, scratch=scratch_in(kept))
            self._approximate(opened, run)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, progress: Show = None
    ) -> "NDArray[Any] | da.Array":
        """Fit to samples, and return their features.

        Parameters
        ----------
        X
            As for `fit`.
        y, progress

        Returns
        -------
        NDArray or da.Array
            Z, (N, `n_components_`), of `dtype`: equal to those of `transform` up to rounding.
        """
        del y
        made = self._fit(X, progress).features.values
        return self._transform(X, warn=False) if made is None or _is_lazy(X) else made

    def transform(self, X: Any) -> "NDArray[Any] | da.Array":
        """Features of samples.

        Parameters
        ----------
        X
            Samples by row, (M, dim), dense or sparse; or a Dask array.

        Returns
        -------
        NDArray or da.Array
            Z, (M, `n_components_`), of `dtype`. For a Dask array it is lazy, with the same chunks
            of rows: errors are raised when it is computed, without warnings of all-zero
            samples or values below 0.

        Raises
        ------
        InputError
        BudgetError
            The features need more memory than there is.
        """
        check_is_fitted(self)
        return self._transform(X)

    def write(self, X: Any, path: str | Place, *, progress: Show = None) -> "da.Array":
        """Write features of samples to a zarr array, block by block, on threads of this process.

        If this call is interrupted, the same call computes only the missing blocks, and the
        finished array is the same to the last bit. ``transform(X).to_zarr()`` of a Dask array
        writes on Dask workers, but does not resume.

        A model that was fitted again on another processor has the same landmarks, and another
        `normalization_` by rounding, which may turn the features. An array that the first one began
        holds its landmarks and normalization: it goes on with these, and this model takes them,
        with a warning.

        Parameters
        ----------
        X
            Argument or result of `dhsk.open_samples`, (M, dim); it may be larger than memory. It is
            read twice: all rows are checked before the first is written.
        path
            Folder or ``s3://`` prefix for the array. Missing blocks of an unfinished array are read
            as NaN.
        progress
            Function that is called with a `Progress` after every block; True for bars.

        Returns
        -------
        da.Array
            Z, (M, `n_components_`), of `dtype`, read from the store as needed. `zarr.open_array`
            reads it too, and dhsk as samples.

        Raises
        ------
        InputError
        BudgetError
            A block needs more memory, or the features more disk space, than there is.
        StoreMismatchError
            The folder holds features of other samples, landmarks or kernels.
        StoreError
            The folder has other content, cannot be written, or another process writes to it.
        """
        check_is_fitted(self)
        place, features = parse_place("path", path), self._features
        samples = features.row_map.to_predict(self._opened(X))
        words = nullcontext() if isinstance(X, Samples) else in_scikit_words(self)
        with words, shown(progress, reading=1, features=5) as report:
            run = self._run(report)
            stored, held = store_features(samples, features, place, run)
        features.row_map.warn(samples)
        self._take(held, features, place)
        return stored

    def _take(self, held: FeatureMap, own: FeatureMap, place: Place) -> None:
        """Have the landmarks and the normalization of a store, and warn if they were others."""
        if not np.array_equal(held.root, own.root):
            warn(
                f"{place} was begun on another machine, whose rounding gave another normalization_ "
                "with the same landmarks: the array goes on with that one, and so does this model; "
                "transform again what it transformed before",
                UserWarning,
            )
        self._landmarks, self.normalization_ = held.landmarks, held.root

    @property
    def landmarks_(self) -> Rows:
        """Landmarks, mapped to the sphere, (m, dim)."""
        check_is_fitted(self)
        return with_all_entries(self._landmarks)

    @property
    def _features(self) -> FeatureMap:
        row_map = self._fitted_map.anew()
        return FeatureMap(row_map, self._landmarks, self.normalization_, self._names)

    def _transform(self, X: Any, *, warn: bool = True) -> "NDArray[Any] | da.Array":
        """Features of samples; lazy for a Dask array, without warnings."""
        if _is_lazy(X):
            validate_data(self, X, reset=False, skip_check_array=True)
            return lazy_features(X, self._features)
        X = self._validated(X, reset=False)
        shape, dtype = (X.shape[0], self.n_components_), np.dtype(self.dtype)
        held = shape[0] * shape[1] * dtype.itemsize
        require_room(held, own_room(self._bytes()), f"features {shape}", "transform fewer samples")
        features = self._features
        samples = features.row_map.to_predict(open_samples(X))
        with in_scikit_words(self):
            Z = features.of(samples)
        if warn:
            features.row_map.warn(samples)
        return Z

    def _opened(self, X: Any) -> Samples:
        """Open samples of any source; scikit-learn validates those in memory."""
        in_memory = not (isinstance(X, str | os.PathLike | Samples) or hasattr(X, "chunks"))
        if in_memory:
            return self._samples(self._validated(X, reset=False))
        name, dim = type(self).__name__, self.n_features_in_
        return in_order(open_samples(X), self._names, name, dim)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _low_rank(self) -> LowRank:
        """What is asked for; InputError if it cannot be used."""
        rank = whole_parameter("n_components", self.n_components, 1)
        selection: Any = self.selection
        oversampling = self.oversampling
        if oversampling is None:
            oversampling = usual_oversampling(rank, selection)
        return LowRank(rank, selection, oversampling, landmark_tol=self.landmark_tol).checked()

    def _check(self, *positive: str) -> None:
        super()._check(*positive)
        self._low_rank()

    def _fit(self, X: Any, progress: Show) -> Approximation:
        """Fit to an array, and return the approximation."""
        self._check()
        samples = self._samples(self._validated(X))
        with self._begun(progress) as run:
            return self._approximate(samples, run)

    def _approximate(self, samples: Samples, run: Run) -> Approximation:
        """Fit to opened samples, with checked parameters, and return the approximation."""
        how = self._low_rank().among(samples.shape[0])
        seed = random_numbers(self.random_state).randint(np.iinfo(np.int32).max)
        row_map = self._row_map(SamplePairs(samples))
        self._keep_map(row_map)
        found = approximate(samples, row_map, how, run, seed=seed)
        row_map.warn(samples)
        self._landmarks, self.landmark_indices_ = found.landmarks, found.indices
        self.normalization_, self.trace_error_ = found.root, found.trace_error
        self.n_components_: int = found.width
        return found


def _is_lazy(X: Any) -> bool:
    """Whether an array is Dask's, which only then is loaded."""
    lazy = sys.modules.get("dask.array")
    return lazy is not None and isinstance(X, lazy.Array)
