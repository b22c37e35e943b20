"""Marginal likelihood of a Gaussian process by time, noise and amplitude, and its maximum."""

import math
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, field
from typing import Any, Final, Literal

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from dhsk.arrays import Floats, Indices, Rows
from dhsk.errors import InputError
from dhsk.estimators.posterior import MatricesOfRows, preconditioner_of
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.kept_pass import KeptProducts
from dhsk.execution.limits import core_count
from dhsk.execution.run import Run
from dhsk.execution.workers import computing
from dhsk.kernels import HeatKernel, Kernel
from dhsk.kernels.heat import time_at_scale
from dhsk.models.gram_source import GramSource
from dhsk.nystrom.preconditioner import landmarks_for
from dhsk.progress import Progress
from dhsk.run_progress import passes_of_call
from dhsk.solvers.likelihood import (
    Likelihood,
    Probes,
    estimated_likelihood,
    exact_likelihood,
)
from dhsk.solvers.sources import ArraySource, Source

Solver = Literal["cholesky", "iterative"]

DENSE: Final = 4000
"""Most samples that are solved by Cholesky's factorisation unless asked: some seconds."""

DENSE_MATRICES: Final = 5
"""Matrices in memory at a time then, at most: K, its derivative, the inverse and copies."""

MOST_ITERATIONS: Final = 30

_USUAL: Final = 10
"""Likelihoods that a fit takes, about."""

_NOISES: Final = (1e-5, 1e3)
"""Bounds of a fitted noise. A matrix in float32 is positive definite from some 1e-6 on."""

_LARGEST_SCALE: Final = 5.0
"""Bound of a fitted time scale: beyond, the kernel is linear but for a share n^-4."""

_CLOSE: Final = 1e-3
"""Gain of log marginal likelihood at which a fit ends: far below what tells models apart."""


_SEARCHES: Final = 5
"""Most likelihoods of a line search on estimates, whose gradient is not quite that of the value."""


def is_dense(solver: str, n: int, run: Run) -> bool:
    """Whether n samples are solved by Cholesky's factorisation."""
    if solver != "auto":
        return solver == "cholesky"
    return n <= DENSE and DENSE_MATRICES * 8 * n * n <= run.room


def smallest_scale(dim: int) -> float:
    """Smallest time scale at which the heat kernel is proven, see `HeatKernel`."""
    if dim <= 50:
        return 1e-4 * dim / math.log(dim)
    return 0.05 if dim <= 10_000 else 0.2


@dataclass(frozen=True)
class EvidenceSettings:
    """How a likelihood is computed, and what is fitted."""

    fits_time: bool
    fits_noise: bool
    amplitude: float | None
    """None for the one that maximises the likelihood."""
    tol: float
    max_passes: int
    n_probes: int
    seed: int
    entries: Checkpoint
    """Products of the matrix."""

    @property
    def fits_any(self) -> bool:
        """Whether likelihoods are compared."""
        return self.fits_time or self.fits_noise


@dataclass(eq=False)
class Evidence:
    """Likelihood of targets at a kernel and a noise, which a fit moves to the maximum."""

    rows: Rows
    """Mapped samples, (N, dim)."""
    columns: Floats
    """Targets, (N, k)."""
    kernel: Kernel
    noise: float
    """Those of the best likelihood so far, at first those to begin with."""
    settings: EvidenceSettings
    """How it is computed."""
    source: InitVar[Source | None]
    """The matrix of the first kernel; None for Cholesky's factorisation."""
    rank: int
    """Upper bound on the columns of the preconditioner, later their number."""
    best: Likelihood = field(init=False)
    count: int = 0
    """Likelihoods that were computed."""
    passes: int = 0
    ended: bool = True
    """Whether a fit ended at a maximum."""
    why: str = ""
    """Words of the optimiser on its end."""
    matrices: MatricesOfRows = field(init=False)
    landmarks: Indices = field(init=False)
    """Those of the preconditioner, among the rows, (rank,)."""
    _probes: Probes = field(init=False)

    def __post_init__(self, source: Source | None) -> None:
        """Choose landmarks and probes, which all kernels and noises share."""
        self.solver: Solver = "cholesky" if source is None else "iterative"
        gram = source.G if isinstance(source, GramSource) else None
        held = (self.kernel, source) if isinstance(source, ArraySource) else None
        self.matrices = MatricesOfRows(self.rows, held is not None, gram, held)
        self.landmarks = np.zeros(0, np.intp)
        if source is None:
            self.rank = 0
            return
        self._digest = digest_of(self.rows)
        n, count, least = self.rows.shape[0], self.settings.n_probes, self.noise / 100
        self.landmarks = landmarks_for(self.rows, self.kernel, least, self.rank, core_count())
        self.rank = len(self.landmarks)
        self._probes = Probes.seeded(self.settings.seed, n, self.rank, count)

    @property
    def gradient(self) -> Floats:
        """Derivatives of the best likelihood by log time and log noise, (2,)."""
        return self.best.gradient * self._units

    @property
    def gradient_error(self) -> Floats:
        """Their standard errors, (2,)."""
        return self.best.gradient_error * self._units

    @property
    def _units(self) -> Floats:
        time = self.kernel.time if isinstance(self.kernel, HeatKernel) else math.nan
        return np.array([time, self.noise])

    def fit(self) -> None:
        """Compute the likelihood, at its maximum in what is fitted."""
        free = np.array([self.settings.fits_time, self.settings.fits_noise])
        # With one BLAS thread bits do not depend on the number of cores; a factorisation needs all.
        dense = self.solver == "cholesky"
        with nullcontext() if dense else computing():
            if free.any():
                self._maximise(free)
            else:
                self.best = self._at(self.kernel, self.noise)
        if dense:
            passes_of_call().report(Progress("likelihoods", self.count, self.count))
        self.settings.entries.remove()

    def _maximise(self, free: Any) -> None:
        """Move free logarithms of time and noise by a quasi-Newton method."""
        start = np.log(self._units)
        bounds = [(-math.inf, math.inf), (math.log(_NOISES[0]), math.log(_NOISES[1]))]
        if free[0]:
            dim = self.rows.shape[1]
            scales = (smallest_scale(dim), _LARGEST_SCALE)
            least, most = (math.log(time_at_scale(dim, scale)) for scale in scales)
            bounds[0] = least, most
        best, n = -math.inf, self.columns.size

        def loss(free_logs: Floats) -> tuple[float, Floats]:
            nonlocal best
            logs = start.copy()
            logs[free] = free_logs
            kernel, noise = self.kernel, float(np.exp(logs[1]))
            if free[0]:
                kernel = HeatKernel(self.rows.shape[1], float(np.exp(logs[0])))
            found = self._at(kernel, noise)
            if found.value > best:
                best, self.best, self.kernel, self.noise = found.value, found, kernel, noise
            return -found.value / n, -(found.gradient * np.exp(logs))[free] / n

        own = [bound for bound, used in zip(bounds, free, strict=True) if used]
        options = {"maxiter": MOST_ITERATIONS, "ftol": _CLOSE / n, "gtol": _CLOSE / n}
        if self.solver == "iterative":
            options["maxls"] = _SEARCHES
        end: Any = minimize(  # type: ignore[call-overload]  # its types know no loss with gradient
            loss, start[free], jac=True, method="L-BFGS-B", bounds=own, options=options
        )
        # What a further step would gain, by the curvature that the steps have shown.
        gain = n * float(end.jac @ end.hess_inv.dot(end.jac)) / 2
        self.ended = bool(end.success) or gain <= max(_CLOSE, self.best.value_error)
        self.why = str(end.message)

    def _at(self, kernel: Kernel, noise: float) -> Likelihood:
        dense, told = self.solver == "cholesky", passes_of_call()
        told.solve = f"likelihood {self.count + 1}"
        told.report.expect("fit", max(self.count + 1, _USUAL if self.settings.fits_any else 1))
        with told.report.part("fit", 1.0):
            found = self._exact(kernel, noise) if dense else self._estimate(kernel, noise)
            found = found.at_amplitude(self.settings.amplitude)
        self.count += 1
        self.passes += found.passes
        if dense:
            most = max(self.count, MOST_ITERATIONS if self.settings.fits_any else 1)
            words = f"log likelihood {found.value:,.1f}, noise {noise:.3g}"
            told.report(Progress("likelihoods", self.count, most, words))
        return found

    def _exact(self, kernel: Kernel, noise: float) -> Likelihood:
        slope = None
        if isinstance(kernel, HeatKernel):
            slope = _float64(kernel.time_derivative().of_rows(self.rows))
        try:
            return exact_likelihood(_float64(kernel.of_rows(self.rows)), noise, self.columns, slope)
        except LinAlgError as error:
            raise InputError(
                f"the matrix of the {kernel.label} kernel with noise={noise:g} is not positive "
                "definite: raise noise, or choose a positive definite kernel"
            ) from error

    def _estimate(self, kernel: Kernel, noise: float) -> Likelihood:
        slope = None
        if isinstance(kernel, HeatKernel):
            derivative = kernel.time_derivative()
            slope = self._kept(self.matrices.computed(derivative), derivative).product
        return estimated_likelihood(
            self._kept(self.matrices.of(kernel), kernel),
            noise,
            self.columns,
            self._probes,
            preconditioner_of(self.rows, kernel, noise, self.landmarks),
            slope,
            {"tol": self.settings.tol, "max_passes": self.settings.max_passes},
        )

    def _kept(self, source: Source, kernel: Kernel) -> "_KeptProducts":
        """Products with a matrix that a killed fit finds again."""
        name = [self._digest, kernel.to_spec(), type(source).__name__]
        products = KeptProducts(self.settings.entries, source.product, name)
        return _KeptProducts(source.n, products)


@dataclass(frozen=True)
class _KeptProducts:
    """A matrix of which products are kept."""

    n: int
    product: KeptProducts


def _float64(values: Floats) -> Floats:
    return values.astype(np.float64, copy=False)
