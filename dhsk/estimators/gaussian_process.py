"""Gaussian process regression on Gram matrices that may be larger than memory."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats
from dhsk.bars import Show, passes_shown
from dhsk.errors import InputError, warn
from dhsk.estimators.automatic import Auto, check_auto, is_auto
from dhsk.estimators.base import KernelEstimator, rows_of_fit
from dhsk.estimators.evidence import (
    Evidence,
    EvidenceSettings,
    Solver,
    is_dense,
)
from dhsk.estimators.posterior import MatricesOfRows, Posterior
from dhsk.estimators.problem import random_numbers
from dhsk.estimators.regression import MANY, Rank, check_rank, most_columns, source_of
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.run import Run
from dhsk.kernels import HeatKernel
from dhsk.kernels.base import chosen_parameter, whole_parameter
from dhsk.objects.places import Place
from dhsk.samples import SphereMap

PREFIX: Final = "gaussian-process-"
"""Begins the names of checkpoint files of a fit."""
STD_PREFIX: Final = "standard-deviations-"
"""Begins those of standard deviations: a fit removes only its own."""

_FIRST_NOISE: Final = 0.1
"""Noise with which a fit begins."""


@dataclass(eq=False, repr=False)
class HeatGaussianProcessRegressor(
    MultiOutputMixin,  # type: ignore[misc]  # scikit-learn has no types
    RegressorMixin,  # type: ignore[misc]
    KernelEstimator,
):
    """Gaussian process regression, by default with the exact heat kernel on the hypersphere.

    The model is y = f(x) + e with covariances a K of f and a `noise` of e, a being `amplitude`. Up
    to 4,000 samples are solved by Cholesky's factorisation, with the answers of
    `sklearn.gaussian_process.GaussianProcessRegressor`. More are solved by preconditioned conjugate
    gradients [1]_: log determinant and traces of the marginal likelihood are then estimated from
    random probes, and have standard errors. Time, noise and amplitude are fitted by maximising it.
    Beyond 100,000 samples fit it to some thousand of them, and `HeatKernelRidge` with its time and
    noise to all, which has the mean of the whole process; standard deviations from fewer samples
    are upper bounds.

    Parameters
    ----------
    time_scale
        Diffusion time in units of log(dim)/dim; "auto" fits it, from the one at which the mean of
        1 - K over pairs of samples is 0.6. Used by heat and parametrix kernels alone.
    noise
        Variance of the noise by `amplitude`, above 0: added to the diagonal of K. "auto" fits it.
    sphere_map, zero_rows, kernel
    amplitude
        Variance of f where K is 1, above 0; "auto" takes the one of largest likelihood.
    normalize_y
        Whether the model is of y less its mean, divided by its standard deviation.
    solver
        "cholesky", "iterative", or "auto": the first up to 4,000 samples if it fits in memory.
    n_probes
        Random vectors of the iterative solver, at least 2. Standard errors fall like its root.
    tol
        Tolerance of the residuals of the iterative solver, relative to each right-hand side.
    max_iter
        Largest number of passes over the matrix of each solve.
    preconditioner_rank
        Columns of the low-rank preconditioner of the iterative solver, see `HeatKernelRidge`.
    dtype, memory
    client
        Dask client whose workers compute the matrix in passes if it does not fit in memory, and
        predict means of many samples. Clones share it, and it is not pickled.
    journal
        Folder or ``s3://`` prefix for checkpoints of the iterative solver: every product of a fit,
        and the systems of standard deviations. The same call resumes after an interruption, and
        ends with the same bits; a finished one removes them. None for no checkpoints.
    random_state
        Seed of the probes, which are the same for all times and noises of a fit.

    Attributes
    ----------
    kernel_, time_scale_
    noise_
        Variance of the noise by `amplitude_`.
    amplitude_
        Variance of f where K is 1, of the normalised targets.
    dual_coef_
        Coefficients (K + noise I)^-1 y of the normalised targets, (N,) or (N, k).
    X_fit_
    log_marginal_likelihood_value_, log_marginal_likelihood_error_
        Log marginal likelihood, summed over targets, and its standard error, 0 if exact.
    gradient_, gradient_error_
        Derivatives of the log marginal likelihood by log time and log noise, (2,), and their
        standard errors. The first is NaN for other kernels than heat.
    solver_
        "cholesky" or "iterative".
    residual_
        Largest relative residual of all systems, from recomputed products; 0 for "cholesky".
    n_iter_
        Likelihoods that were computed.
    n_passes_
        Passes over the matrix.
    rank_
        Columns of the preconditioner's approximation; 0 for none.
    converged_
        Whether residuals are at most `tol`, and the fit of time and noise ended at a maximum.
    n_features_in_, feature_names_in_

    References
    ----------
    .. [1] J. R. Gardner, G. Pleiss, D. Bindel, K. Q. Weinberger and A. G. Wilson, "GPyTorch:
       Blackbox matrix-matrix Gaussian process inference with GPU acceleration", NeurIPS 31 (2018).
    .. [2] C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT
       Press (2006), chapters 2 and 5.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = dhsk.HeatGaussianProcessRegressor()
    >>> model = model.fit(X[:200], y[:200])
    >>> 0.1 < model.time_scale_ < 1
    True
    >>> mean, std = model.predict(X[200:300], return_std=True)
    >>> bool((abs(mean - y[200:300]) < 3 * std).mean() > 0.9)
    True
    """

    X_fit_ = property(rows_of_fit)
    _learnt = (
        "noise_", "amplitude_", "dual_coef_", "log_marginal_likelihood_value_",
        "log_marginal_likelihood_error_", "gradient_", "gradient_error_", "solver_", "residual_",
        "n_iter_", "n_passes_", "rank_", "converged_", "_rows", "_mean", "_scale", "_cholesky",
        "_landmarks", "_in_memory",
    )  # fmt: skip

    time_scale: float | Auto = "auto"
    noise: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    _: KW_ONLY
    amplitude: float | Auto = "auto"
    normalize_y: bool = True
    solver: Solver | Auto = "auto"
    n_probes: int = 16
    tol: float = 1e-6
    max_iter: int = 1000
    preconditioner_rank: Rank = "auto"
    journal: str | Place | None = None
    random_state: Any = 0

    def fit(self, X: Any, y: Any, *, progress: Show = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X
        y
            Targets, (N,) or (N, k), which share time and noise.
        progress
        """
        self._check_parameters()
        X, y = self._validated(X, y=y, multi_output=True, y_numeric=True)
        _warn_of_many(X.shape[0])
        targets = np.asarray(y, dtype=np.float64)
        columns = self._normalised(targets.reshape(len(targets), -1))
        with self._begun(progress, reading=1, fit=2) as run, self._current():
            self._rows = self._map_to_fit(X, run)
            evidence = self._evidence(X, columns, run)
            evidence.fit()
        self._take(evidence, targets.shape)
        return self

    def predict(self, X: Any, return_std: bool = False, *, progress: Show = None) -> Any:
        """Predict the mean of f, and its standard deviation.

        The iterative solver solves a system for each sample, in blocks that share passes over the
        matrix: some ten passes for each block of 512 samples, or of fewer in less memory.

        Parameters
        ----------
        X
        return_std
            Whether standard deviations are returned too. They are those of f, without the noise.
        progress

        Returns
        -------
        mean
            (N,) or (N, k) as y.
        std
            Of the shape of the mean, if `return_std`.
        """
        check_is_fitted(self)
        with passes_shown(progress):
            return self._predictions(X, return_std=return_std)

    def _predictions(self, X: Any, *, return_std: bool) -> Any:
        """Means, and standard deviations if they are asked for."""
        coef = self.dual_coef_
        means = self._sums(X, self._rows, coef.reshape(len(coef), -1)) * self._scale + self._mean
        shape = (-1, *coef.shape[1:])
        if not return_std:
            return means.reshape(shape)
        X = self._validated(X, reset=False)
        row_map, run = self._fitted_map.anew(), self._run()
        rows = row_map.all_of(row_map.to_predict(self._samples(X)), run)
        with self._current():
            deviation = np.sqrt(self.amplitude_ * self._posterior(run).variances(rows))
        return means.reshape(shape), (deviation[:, None] * self._scale).reshape(shape)

    def _posterior(self, run: Run) -> Posterior:
        return Posterior(
            self._matrices,
            self.kernel_,
            self.noise_,
            self._cholesky,
            self._landmarks,
            run,
            float(self.tol),
            self.max_iter,
            Checkpoint(run.journal, STD_PREFIX),
        )

    @classmethod
    def _read(cls, path: str | Place) -> Self:
        made = super()._read(path)
        made._matrices = MatricesOfRows(made._rows, made._in_memory)
        return made

    def _evidence(self, X: Any, columns: Floats, run: Run) -> Evidence:
        """Likelihood of normalised targets, before it is computed."""
        rows, kernel = self._rows, self.kernel_
        if kernel.positive_semidefinite is False:
            raise InputError(
                f"the {kernel.label} kernel is not positive semi-definite, so it is no covariance"
            )
        dense = is_dense(self.solver, rows.shape[0], run)
        source = None if dense else source_of(rows, kernel, run, lambda: self._gram(X))
        noise: Any = _FIRST_NOISE if is_auto(self.noise) else self.noise
        amplitude: Any = None if is_auto(self.amplitude) else self.amplitude
        settings = EvidenceSettings(
            fits_time=self._fits_time,
            fits_noise=is_auto(self.noise),
            amplitude=amplitude,
            tol=float(self.tol),
            max_passes=self.max_iter,
            n_probes=self.n_probes,
            seed=int(random_numbers(self.random_state).randint(2**31)),
            entries=Checkpoint(run.journal, PREFIX),
        )
        rank = 0
        if source is not None:
            rank = most_columns(self.preconditioner_rank, rows, kernel, source, run)
        return Evidence(rows, columns, kernel, float(noise), settings, source, rank)

    def _check_parameters(self) -> None:
        self._check("tol")
        check_rank(self.preconditioner_rank)
        chosen_parameter("solver", self.solver, ("auto", "cholesky", "iterative"))
        whole_parameter("max_iter", self.max_iter, 2)
        whole_parameter("n_probes", self.n_probes, 2)
        check_auto("noise", self.noise)
        check_auto("amplitude", self.amplitude)

    @property
    def _fits_time(self) -> bool:
        return is_auto(self.time_scale) and self.kernel in (None, HeatKernel.name)

    def _normalised(self, columns: Floats) -> Floats:
        """Targets less their mean, by their standard deviation, if asked to."""
        self._mean, self._scale = np.zeros(columns.shape[1]), np.ones(columns.shape[1])
        if self.normalize_y:
            self._mean, spread = columns.mean(axis=0), columns.std(axis=0)
            self._scale = np.where(spread > 0, spread, 1.0)
        return np.asarray((columns - self._mean) / self._scale)

    def _take(self, evidence: Evidence, shape: tuple[int, ...]) -> None:
        """Set all fitted attributes, and warn of what did not converge."""
        found, kernel = evidence.best, evidence.kernel
        self.kernel_, self.noise_, self.amplitude_ = kernel, evidence.noise, found.amplitude
        self._fitted_map = replace(self._fitted_map, kernel=kernel)
        self._matrices, self._in_memory = evidence.matrices, evidence.matrices.in_memory
        self._cholesky, self._landmarks = found.cholesky, evidence.landmarks
        self.dual_coef_ = found.coef.reshape(shape)
        self.log_marginal_likelihood_value_ = found.value
        self.log_marginal_likelihood_error_ = found.value_error
        self.gradient_, self.gradient_error_ = evidence.gradient, evidence.gradient_error
        self.solver_, self.residual_ = evidence.solver, found.residual
        self.n_iter_, self.n_passes_ = evidence.count, evidence.passes
        self.rank_, self.converged_ = evidence.rank, found.converged and evidence.ended
        if not found.converged:
            warn(
                f"systems did not converge: relative residual {found.residual:.3g}, "
                f"tol={self.tol:g}; raise max_iter, noise or tol",
                ConvergenceWarning,
            )
        elif not evidence.ended:
            warn(
                f"the fit of time and noise ended before a maximum: {evidence.why}",
                ConvergenceWarning,
            )


def _warn_of_many(n: int) -> None:
    """Name the way to a process of many samples that takes hours less."""
    if n > MANY:
        warn(
            f"a process of {n:,} samples computes their matrix hundreds of times: fit it to some "
            "thousand of them, then HeatKernelRidge(alpha=process.noise_, "
            "time_scale=process.time_scale_) to all"
        )
