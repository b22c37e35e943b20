"""The linear classifier on Nyström features, as a scikit-learn classifier."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
from distributed import Client
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from dhsk.arrays import Floats, Rows
from dhsk.estimators.classifier import HeatClassifier
from dhsk.estimators.problem import make_problem, random_numbers, warn_unless_solved
from dhsk.estimators.selection import check_choice, check_trace_error, numbered
from dhsk.gram.prepare import takes_float32
from dhsk.kernels import Kernel
from dhsk.kernels.centre import with_all_entries
from dhsk.models.low_rank import LowRankModel
from dhsk.models.problem import RunOptions
from dhsk.models.train_low_rank import LossName, LowRankOptions, check_loss, train_low_rank
from dhsk.progress import OnProgress, ignore
from dhsk.samples import Samples, SphereMap, ZeroRule

MOST_IN_DOUBLE: Final = 1 << 22
"""Entries of features, 32 MB, up to which float64 costs nothing that one would notice."""


class NystromSVC(HeatClassifier[LowRankModel]):
    """Support vector machine on a low-rank approximation of a kernel, by default the heat kernel.

    For more samples than an exact machine can take: a linear classifier, one class against the
    rest, on Nyström features of landmarks [1]_, whose error is known: `trace_error_`. Minimised is
    what `sklearn.svm.LinearSVC` minimises [4]_, |w|^2/2 + C sum_i s_i loss_i, the intercept
    counted in |w|; all classes are solved together by Newton's method [5]_, with a bound of what
    is missing: `duality_gap_`. Passes over the features need not have them in memory.

    Parameters
    ----------
    n_components
        Most features, and landmarks if `oversampling` is 1; there are fewer where there are fewer
        samples, where `landmark_tol` is reached, or where the matrix has no greater rank.
    C
        Factor of the losses.
    kernel
        A positive semi-definite kernel; None for the heat kernel at `time_scale`; or a name as
        for `HeatSVC`.
    selection
        "rpcholesky": randomly pivoted Cholesky [2]_, [3]_, which draws what the landmarks before
        it leave. "uniform": any samples. "kmeans": centres of groups of samples [6]_. Or numbers
        of samples, (m,), counted from 0.
    oversampling
        Landmarks for each feature, at least 1: of more landmarks than features the leading
        components are kept.
    time_scale
        Diffusion time in units of log(dim)/dim; not used if `kernel` is given.
    sphere_map
        How samples become unit vectors: "hyperspherical" (for counts), "projective" or "identity"
        (they are used as they are). None for the kernel's own: hyperspherical for heat, parametrix
        and cosine, identity for the others.
    zero_rows
        What becomes of samples of zeros, which have no image on the sphere. "center": the centre of
        the positive orthant, the limit of smoothed counts, with one warning that counts them.
        "error": an error that names the first.
    loss
        "squared_hinge", or "logistic", which gives probabilities.
    tol
        Part of the gradient at 0 that may be left, times the part of the samples that is in the
        smaller class, as in LIBLINEAR.
    landmark_tol
        Relative trace error that is small enough: "rpcholesky" takes no more landmarks than it
        needs. Below 1; 0 for as many as there may be.
    class_weight
        Factors of C by label, or "balanced"; None for 1. Every sample has that of its own class,
        also where it stands for the rest: there `LinearSVC` has 1.
    dtype
        Type of products, kernel values and features: "float32", or "float64", which kernels that
        are neither spherical nor linear need. None for "float32" where the kernel takes it and
        features have more than four million entries, else for "float64". Sums and factors of
        landmarks are in float64.
    memory
        Most bytes that this process, or with a client all processes, may hold: a number, or like
        "2GB". None for half of what is free, or what the workers have.
    client
        Dask client on whose workers to make the passes. It stays one and the same in clones, and
        is not pickled.
    random_state
        Of the landmarks: the same seed gives the same model.

    Attributes
    ----------
    classes_
        Labels, (k,).
    landmarks_, landmark_indices_
        Mapped rows of the landmarks, (m, dim); their numbers among the samples, (m,), or None if
        landmarks are no samples.
    landmark_coef_, intercept_
        Decisions are ``landmark_coef_ @ kernel_(landmarks_, x) + intercept_``: (J, m) and (J,), J
        being 1 for two classes, above 0 for the second, and else k.
    n_components_
        Number of features.
    trace_error_
        Trace norm of what they leave of the kernel matrix of the samples, as a part of its trace.
    gradient_norm_
        Greatest length of a column's gradient.
    duality_gap_
        Greatest bound of how far an objective is above its least value, as a part of it: half the
        squared length of the gradient, as the objective is strongly convex.
    objective_
        Of each column, (J,).
    n_iter_
        Most Newton steps of a column.
    converged_
        Whether all columns reached `tol`.
    kernel_
        The kernel.
    model_
        All of it as `LowRankModel`.
    n_features_in_, feature_names_in_
        Number of features of a sample; their names, if the samples had names.

    References
    ----------
    .. [1] C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
       NIPS 13 (2001).
    .. [2] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky",
       arXiv 2207.06503.
    .. [3] E. N. Epperly, J. A. Tropp and R. J. Webber, "Embrace rejection: kernel matrix
       approximation by accelerated randomly pivoted Cholesky", arXiv 2410.03969.
    .. [4] R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang and C.-J. Lin, "LIBLINEAR: a library for
       large linear classification", JMLR 9 (2008).
    .. [5] S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of large
       scale linear SVMs", JMLR 6 (2005).
    .. [6] K. Zhang, I. Tsang and J. Kwok, "Improved Nyström low-rank approximation and error
       analysis", ICML 2008.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = dhsk.NystromSVC(300, C=10.0, time_scale=0.5, random_state=0).fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2)
    0.96
    >>> round(model.trace_error_, 2)
    0.12
    """

    _kept = (
        "n_components", "C", "oversampling", "time_scale", "sphere_map", "zero_rows", "loss",
        "tol", "landmark_tol", "class_weight", "dtype",
    )  # fmt: skip
    _model_type = LowRankModel
    _dtypes = ("float32", "float64", None)

    def __init__(
        self,
        n_components: int = 1000,
        C: float = 1.0,
        *,
        kernel: Kernel | str | None = None,
        selection: str | ArrayLike = "rpcholesky",
        oversampling: float = 1.0,
        time_scale: float = 1.0,
        sphere_map: SphereMap | None = None,
        zero_rows: ZeroRule = "center",
        loss: LossName = "squared_hinge",
        tol: float = 1e-4,
        landmark_tol: float = 0.0,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        dtype: str | None = None,
        memory: int | str | None = None,
        client: Client | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.kernel = kernel
        self.selection = selection
        self.oversampling = oversampling
        self.time_scale = time_scale
        self.sphere_map = sphere_map
        self.zero_rows = zero_rows
        self.loss = loss
        self.tol = tol
        self.landmark_tol = landmark_tol
        self.class_weight = class_weight
        self.dtype = dtype
        self.memory = memory
        self.client = client
        self.random_state = random_state

    def fit_samples(
        self,
        samples: Any,
        y: ArrayLike,
        progress: OnProgress | None = None,
        journal: str | Path | None = None,
    ) -> Self:
        """Train on a file, of which only what fits is held in memory.

        Parameters
        ----------
        samples
            What `dhsk.open_samples` takes or returns, (N, dim).
        y
            Labels, (N,).
        progress
            Called with a `Progress` now and then.
        journal
            Folder for what is finished: the same call goes on where it was killed, to the same
            model, if `random_state` is a number. It can be removed afterwards.

        Returns
        -------
        Self
            This estimator.

        Raises
        ------
        InputError
            Parameters or samples cannot be used; a row is named.
        BudgetError
            It does not fit the memory.
        """
        opened, labels, weights = self._opened(samples, y)
        return self._fit(opened, labels, weights, progress or ignore, journal)

    def _product_dtype(self, kernel: Kernel, n_samples: int) -> str:
        if self.dtype is not None:
            return self.dtype
        many = n_samples * min(n_samples, self.n_components) > MOST_IN_DOUBLE
        return "float32" if many and takes_float32(kernel) else "float64"

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each sample, that of the greatest decision, (N,).

        Parameters
        ----------
        X
            Samples by row, (N, dim).
        """
        return self._by_blocks(X, self._fitted.predict)

    def decision_function(self, X: Any) -> Floats:
        """Decisions, one class against the rest.

        Parameters
        ----------
        X
            Samples by row, (N, dim).

        Returns
        -------
        Floats
            (N, k); for two classes (N,), above 0 for the second.
        """
        return self._fitted.scores_of(self._by_blocks(X, self._fitted.decisions))

    def _has_probabilities(self) -> bool:
        if self.loss != "logistic":
            raise AttributeError(f"predict_proba is not available when loss={self.loss!r}")
        return True

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn's
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, (N, k), of the logistic loss.

        Of several classes, each one's against the rest, scaled to sum to 1, as in a one-vs-rest
        `LogisticRegression`.

        Parameters
        ----------
        X
            Samples by row, (N, dim).
        """
        if not self._fitted.has_probabilities:
            raise NotFittedError("predict_proba needs a fit with loss='logistic'")
        return self._by_blocks(X, self._fitted.probabilities)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn's
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`, (N, k).

        Parameters
        ----------
        X
            Samples by row, (N, dim).
        """
        logarithms: Floats = np.log(self.predict_proba(X))
        return logarithms

    def _check(self, *positive: str) -> None:
        super()._check(*positive)
        check_loss(self.loss)
        check_choice(self.n_components, self.selection, self.oversampling)
        check_trace_error("landmark_tol", self.landmark_tol)

    def _fit(
        self,
        samples: Samples,
        y: NDArray[Any],
        sample_weights: Floats,
        report: OnProgress,
        journal: str | Path | None = None,
    ) -> Self:
        problem = make_problem(
            y, sample_weights, self.class_weight, C=float(self.C), tol=float(self.tol)
        )
        how = LowRankOptions(
            rank=int(self.n_components),
            selection=numbered(self.selection, samples.shape[0]),
            oversampling=float(self.oversampling),
            landmark_tol=float(self.landmark_tol),
            loss=self.loss,
            seed=int(random_numbers(self.random_state).randint(np.iinfo(np.int32).max)),
        )
        folder = None if journal is None else Path(journal)
        options = RunOptions(self._bytes(), self.client, journal=folder, report=report)
        row_map = self._row_map(samples)
        model = train_low_rank(problem, samples, row_map, how, options)
        row_map.warn(samples)
        self._learned(replace(model, notes={**model.notes, **self._notes()}))
        warn_unless_solved(model.certificates)
        return self

    @property
    def landmarks_(self) -> Rows:
        """Mapped rows of the landmarks, (n_landmarks, dim)."""
        return with_all_entries(self._fitted.rows)

    def _take(self, model: LowRankModel) -> None:
        found = model.certificates
        self.landmark_indices_ = model.indices
        self.landmark_coef_ = model.coef.T
        self.intercept_ = model.intercepts
        self.n_components_ = found.width
        self.trace_error_ = found.trace_error
        self.gradient_norm_ = float(found.gradient_norm.max())
        self.duality_gap_ = float((found.gap / found.objective).max())
        self.objective_ = found.objective
        self.n_iter_ = found.steps
        self.converged_ = bool(found.converged.all())
