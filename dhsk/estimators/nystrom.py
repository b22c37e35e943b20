"""Nyström features of the heat kernel as a scikit-learn transformer."""

import os
from pathlib import Path
from typing import Any, Self

import dask.array as da
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.estimators.base import HeatEstimator, in_scikit_words
from dhsk.estimators.problem import random_numbers
from dhsk.estimators.renamed import RENAMED, parameter
from dhsk.estimators.selection import (
    check_choice,
    check_trace_error,
    numbered,
    usual_oversampling,
)
from dhsk.execution.limits import own_room
from dhsk.kernels import Kernel
from dhsk.kernels.centre import with_all_entries
from dhsk.nystrom.approximation import Approximation, approximate
from dhsk.nystrom.feature_blocks import store_features
from dhsk.nystrom.features import FeatureMap, lazy_features
from dhsk.nystrom.landmarks import require_room
from dhsk.progress import OnProgress, ignore
from dhsk.samples import Samples, SphereMap, ZeroRule, open_samples
from dhsk.samples.names import in_order


class NystromFeatures(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    HeatEstimator,
):
    """Features whose inner products approximate a kernel, by default the exact heat kernel.

    Z Z' = K(X, L) K(L, L)^+ K(L, X) with landmarks L among the samples, and the error of that is
    known: `trace_error_`. A linear model of Z, like scikit-learn's `LinearSVC`, is then one of the
    kernel.

    Parameters
    ----------
    n_components
        Most features; not used where `selection` names rows. There are fewer where there are
        fewer samples, where `landmark_tol` is reached, or where the matrix has no greater rank.
    kernel
        A positive semi-definite kernel; None for the heat kernel at `time_scale`; or a name as
        for `HeatSVC`.
    selection
        "rpcholesky": randomly pivoted Cholesky, which draws what the landmarks before it leave.
        "uniform": any samples. "kmeans": centres of groups of samples, by mini-batches. Or numbers
        of rows of X, (m,), counted from 0.
    oversampling
        Landmarks for each feature, at least 1: of the features of more landmarks the leading
        n_components components are kept. Not used where `selection` names rows. None for 1, but
        of "rpcholesky" for 3, up to 3,000 landmarks: their leading components leave little more
        of the kernel than the best n_components features that there are. With 1, a third of the
        kernel values are computed.
    time_scale
        Diffusion time in units of log(dim)/dim.
    sphere_map
        How rows become unit vectors: "hyperspherical", "projective" or "identity". None for the
        kernel's own: hyperspherical for heat, parametrix and cosine, identity for the others.
    zero_rows
        What becomes of samples of zeros, which have no image on the sphere. "center": the centre of
        the positive orthant, the limit of smoothed counts, with one warning that counts them.
        "error": an error that names the first.
    landmark_tol
        Relative trace error that is small enough: "rpcholesky" takes no more landmarks than it
        needs. Below 1; 0 for as many as there may be.
    dtype
        "float64" or "float32": type of rows, products and features; sums and factors are in
        float64.
    memory
        Most bytes that this process may hold: a number, or like "2GB". None for half of what is
        free. Where features, or even mapped samples, do not fit, they are computed in every pass.
    random_state
        Seed, or a `RandomState`: the same one gives the same landmarks.
    tol
        Former name of `landmark_tol`.

    Attributes
    ----------
    landmarks_
        Mapped rows of the landmarks, (m, dim).
    landmark_indices_
        Their numbers among the samples, (m,); None of "kmeans".
    n_components_
        Number of features, at most the rank of K(L, L): "rpcholesky" takes no pivot of which less
        than m eps is left, eps being that of `dtype`; else eigenvalues that rounding may have
        moved from 0 are dropped: those below m eps times the diagonal.
    normalization_
        R of Z = K(X, L) R, (m, n_components_), float64: a root of K(L, L)^+, or its leading part.
    trace_error_
        Trace norm of K - Z Z' as a part of the trace of K, of the samples fitted to: exact to
        rounding in `dtype`, with sums in float64, for a positive semi-definite kernel.
    kernel_
        The kernel.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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
    0.01
    """

    def __init__(
        self,
        n_components: int = 1000,
        kernel: Kernel | str | None = None,
        selection: str | ArrayLike = "rpcholesky",
        *,
        oversampling: float | None = None,
        time_scale: float = 1.0,
        sphere_map: SphereMap | None = None,
        zero_rows: ZeroRule = "center",
        landmark_tol: float = 0.0,
        dtype: str = "float64",
        memory: int | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        tol: float | str = RENAMED,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.selection = selection
        self.oversampling = oversampling
        self.time_scale = time_scale
        self.sphere_map = sphere_map
        self.zero_rows = zero_rows
        self.landmark_tol = landmark_tol
        self.dtype = dtype
        self.memory = memory
        self.random_state = random_state
        self.tol = tol

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks and factor their matrix.

        Parameters
        ----------
        X
            Samples by row, (N, dim), dense or sparse; a Dask array is read into memory.
        y
            Not used.

        Returns
        -------
        NystromFeatures
            Itself.

        Raises
        ------
        InputError
            A parameter or a row cannot be used; the message names the row.
        BudgetError
            Not even the landmarks and a block of samples fit the memory.
        """
        del y
        self._approximate(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any] | da.Array:
        """Fit, and give the features of the samples, which fitting makes where they fit.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        NDArray or da.Array
            Z, (N, n_components_), of `dtype`: those of `transform` to rounding.

        Raises
        ------
        InputError, BudgetError
            As `fit` and `transform`.
        """
        del y
        made = self._approximate(X).values
        return self._transform(X, warn=False) if made is None or isinstance(X, da.Array) else made

    def transform(self, X: Any) -> NDArray[Any] | da.Array:
        """Features of samples.

        Parameters
        ----------
        X
            Samples by row, (M, dim), dense or sparse; or a Dask array.

        Returns
        -------
        NDArray or da.Array
            Z, (M, n_components_), of `dtype`. Of a Dask array a lazy one in the same chunks of
            rows, whose errors come when it is computed, and which does not warn of samples of
            zeros.

        Raises
        ------
        InputError
            A row cannot be used; the message names it.
        BudgetError
            The features do not fit the memory.
        """
        check_is_fitted(self)
        return self._transform(X)

    def write(
        self, X: Any, path: str | os.PathLike[str], *, progress: OnProgress | None = None
    ) -> da.Array:
        """Write features of samples to a zarr array, block by block, on threads of this process.

        Interrupted at any moment, the same call computes only the blocks that are missing, and the
        finished array is the same to the last bit. On workers of Dask, ``transform(X).to_zarr()``
        of a Dask array does it, but begins anew.

        Parameters
        ----------
        X
            What `dhsk.open_samples` takes or returns, (M, dim); more than the memory holds, too.
            It is read twice: all rows are checked before anything is written.
        path
            Folder for the array. A missing block of an unfinished one is read as NaN.
        progress
            Called with a `Progress` after every block.

        Returns
        -------
        da.Array
            Z, (M, n_components_), of `dtype`, read from the folder as needed. `zarr.open_array`
            reads it too, and dhsk as samples.

        Raises
        ------
        InputError
            A row cannot be used; the message names it.
        BudgetError
            A block does not fit the memory, or the features the disk.
        StoreMismatchError
            The folder holds features of other samples, landmarks or kernels.
        StoreError
            The folder holds something else, cannot be written, or is being written by another.
        """
        check_is_fitted(self)
        samples, folder, features = self._opened(X), os.fspath(path), self._features
        with in_scikit_words(self):
            room = own_room(self._bytes())
            store_features(samples, features, folder, room, progress or ignore)
        features.row_map.warn(samples)
        return da.from_zarr(str(Path(folder).absolute()))

    @property
    def landmarks_(self) -> Rows:
        """Mapped rows of the landmarks, (n_landmarks, dim)."""
        check_is_fitted(self)
        return with_all_entries(self._landmarks)

    @property
    def _features(self) -> FeatureMap:
        row_map = self._fitted_map.anew()
        return FeatureMap(row_map, self._landmarks, self.normalization_, self._names)

    def _transform(self, X: Any, *, warn: bool = True) -> NDArray[Any] | da.Array:
        """Features of samples, now, or as a graph, which does not warn of samples of zeros."""
        if isinstance(X, da.Array):
            validate_data(self, X, reset=False, skip_check_array=True)
            return lazy_features(X, self._features)
        X = self._validated(X, reset=False)
        shape, dtype = (X.shape[0], self.n_components_), np.dtype(self.dtype)
        held = shape[0] * shape[1] * dtype.itemsize
        require_room(held, own_room(self._bytes()), f"features {shape}", "transform fewer samples")
        samples, features = open_samples(X), self._features
        with in_scikit_words(self):
            Z = features.of(samples)
        if warn:
            features.row_map.warn(samples)
        return Z

    def _opened(self, X: Any) -> Samples:
        """Samples of any source; those in memory as scikit-learn takes them."""
        in_memory = not (isinstance(X, str | os.PathLike | Samples) or hasattr(X, "chunks"))
        if in_memory:
            return self._samples(self._validated(X, reset=False))
        samples = in_order(open_samples(X), self._names, "NystromFeatures")
        if samples.shape[1] != self.n_features_in_:
            raise InputError(
                f"{samples.source} has {samples.shape[1]} features, but NystromFeatures is "
                f"fitted to {self.n_features_in_}: give samples of the same features"
            )
        return samples

    @property
    def _n_features_out(self) -> int:
        """Number of features, where scikit-learn looks for it."""
        return self.n_components_

    def _approximate(self, X: Any) -> Approximation:
        """Fit, and give what was made for it."""
        self._check()
        check_choice(self.n_components, self.selection, self.oversampling)
        landmark_tol = parameter(self, "landmark_tol", "tol")
        check_trace_error("landmark_tol", landmark_tol)
        samples = self._samples(self._validated(X))
        selection = numbered(self.selection, samples.shape[0])
        oversampling = self.oversampling
        if oversampling is None:
            oversampling = usual_oversampling(self.n_components, self.selection)
        row_map = self._row_map(samples)
        self._keep_map(row_map)
        with in_scikit_words(self):
            found = approximate(
                samples,
                row_map,
                k=self.n_components,
                selection=selection,
                tol=landmark_tol,
                oversampling=oversampling,
                seed=random_numbers(self.random_state).randint(np.iinfo(np.int32).max),
                memory=self._bytes(),
            )
        row_map.warn(samples)
        self._landmarks, self.landmark_indices_ = found.landmarks, found.indices
        self.normalization_, self.trace_error_ = found.root, found.trace_error
        self.n_components_: int = found.width
        return found
