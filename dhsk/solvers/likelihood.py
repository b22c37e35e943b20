"""Marginal likelihood of a Gaussian process and its gradient: exact, or estimated from products."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dhsk.arrays import Floats
from dhsk.solvers.conjugate_gradients import Preconditioner, dots
from dhsk.solvers.lanczos import log_quadrature
from dhsk.solvers.ridge import Means, Products, solve_ridge


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log marginal likelihood of columns Y, (N, k), under N(0, amplitude (K + noise I)), summed."""

    value: float
    gradient: Floats
    """Derivatives by the parameter of K and by the noise, (2,); NaN where not computed."""
    value_error: float
    """Standard error of the value; 0 if it is exact."""
    gradient_error: Floats
    """Standard errors of the gradient, (2,)."""
    coef: Floats
    """(K + noise I)^-1 Y, (N, k)."""
    fits: Floats
    """Sums of Y' coef and of coef' A' coef for both derivatives A' of K + noise I, (3,)."""
    amplitude: float = 1.0
    residual: float = 0.0
    """Largest relative residual of all systems that were solved, recomputed."""
    converged: bool = True
    passes: int = 0
    """Products with K."""
    cholesky: NDArray[Any] | None = None
    """Lower triangular factor of K + noise I; None if it was not computed."""

    def at_amplitude(self, amplitude: float | None) -> "Likelihood":
        """The likelihood, of amplitude 1, at another one; None for the one that maximises it.

        That is y' (K + noise I)^-1 y / n, so derivatives there need none of the amplitude.
        """
        a = self.fits[0] / self.coef.size if amplitude is None else amplitude
        if a <= 0:  # of targets that are all 0
            return self
        change = 1 / a - 1
        return replace(
            self,
            value=self.value - 0.5 * (self.fits[0] * change + self.coef.size * math.log(a)),
            gradient=self.gradient + 0.5 * change * self.fits[1:],
            amplitude=float(a),
        )


class SampledPreconditioner(Preconditioner, Protocol):
    """A preconditioner P from which probes are drawn."""

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of P."""

    @property
    def inverse_trace(self) -> float:
        """Trace of P^-1."""

    def draw(self, first: Floats, second: Floats) -> Floats:
        """Vectors of covariance P, (N, m), of normal numbers, (r, m) and (N, m)."""


class NoisePreconditioner:
    """P = noise I, where there is no better one."""

    rank = 0

    def __init__(self, n: int, noise: float) -> None:
        self._noise = noise
        self.log_determinant = n * float(np.log(noise))
        self.inverse_trace = n / noise

    def solve(self, R: Floats) -> Floats:
        """P^-1 R."""
        return R / self._noise

    def draw(self, first: Floats, second: Floats) -> Floats:  # noqa: ARG002
        """Vectors of covariance P."""
        found: Floats = np.sqrt(self._noise) * second
        return found


@dataclass(frozen=True, eq=False)
class Probes:
    """Normal numbers of which probes are made: common ones make estimates smooth functions."""

    first: Floats
    """(most columns of a factor, m)."""
    second: Floats
    """(N, m)."""

    @classmethod
    def seeded(cls, seed: int, n: int, rank: int, count: int) -> "Probes":
        """Normal numbers of a seed; those of samples do not depend on the rank."""
        rng = np.random.default_rng(seed)
        second = rng.standard_normal((n, count))
        return cls(rng.standard_normal((rank, count)), second)


def exact_likelihood(
    K: Floats, noise: float, Y: Floats, derivative: Floats | None = None
) -> Likelihood:
    """Likelihood by Cholesky's factorisation [1]_.

    Parameters
    ----------
    K
        Kernel matrix, (N, N), which is overwritten.
    noise
        Variance of the noise.
    Y
        Targets, (N, k).
    derivative
        Derivative of K by its parameter, (N, N); None for none.

    Raises
    ------
    LinAlgError
        K + noise I is not positive definite to rounding.

    References
    ----------
    .. [1] C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT
       Press (2006), algorithm 2.1 and equation 5.9.
    """
    n, k = Y.shape
    K[np.diag_indices(n)] += noise
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    coef = cho_solve(factor, Y)
    log_determinant = 2 * float(np.log(np.diagonal(factor[0])).sum())
    inverse = cho_solve(factor, np.eye(n))
    fits, traces = _fits(Y, coef), np.array([np.nan, np.trace(inverse)])
    if derivative is not None:
        fits[1] = np.einsum("ij,ij->", coef, derivative @ coef)
        traces[0] = np.einsum("ij,ij->", inverse, derivative)
    return Likelihood(
        value=_value(Y, fits, log_determinant),
        gradient=0.5 * (fits[1:] - k * traces),
        value_error=0.0,
        gradient_error=np.zeros(2),
        coef=coef,
        fits=fits,
        cholesky=factor[0],
    )


def estimated_likelihood(
    source: Products,
    noise: float,
    Y: Floats,
    probes: Probes,
    preconditioner: SampledPreconditioner,
    derivative: Callable[[Floats], Floats] | None,
    solving: dict[str, Any],
) -> Likelihood:
    """Likelihood from products with K; all targets and probes share them.

    The log determinant is that of the preconditioner P and a stochastic Lanczos quadrature of the
    rest [1]_, traces are Hutchinson's, with probes of covariance P [2]_. The better P is, the
    smaller are the standard errors. That of the noise has the trace of P^-1 as control variate.

    Parameters
    ----------
    source, noise, Y
        As for `exact_likelihood`.
    probes
        At least two.
    preconditioner
        P, near K + noise I.
    derivative
        Product with the derivative of K by its parameter; None for none.
    solving
        Arguments `tol`, `max_passes` and `progress` of `solve_ridge`.

    References
    ----------
    .. [1] S. Ubaru, J. Chen and Y. Saad, "Fast estimation of tr(f(A)) via stochastic Lanczos
       quadrature", SIAM J. Matrix Anal. Appl. 38 (2017).
    .. [2] J. R. Gardner, G. Pleiss, D. Bindel, K. Q. Weinberger and A. G. Wilson, "GPyTorch:
       Blackbox matrix-matrix Gaussian process inference with GPU acceleration", NeurIPS 31 (2018).
    """
    k = Y.shape[1]
    Z = preconditioner.draw(probes.first[: preconditioner.rank], probes.second)
    W = preconditioner.solve(Z)
    both = np.concatenate([Y, Z], axis=1)
    found = solve_ridge(source, both, noise, means=Means(preconditioner), block=False, **solving)
    coef, U = found.coef[:, :k], found.coef[:, k:]
    logs = log_quadrature(found.steps, both.shape[1])[k:] * dots(Z, W)
    log_determinant, log_error = _mean(logs)
    trace, trace_error = _mean(dots(W, U - W))
    trace += preconditioner.inverse_trace
    fits, traces = _fits(Y, coef), np.array([np.nan, trace])
    errors = np.array([np.nan, k / 2 * trace_error])
    if derivative is not None:
        products = derivative(np.concatenate([coef, U], axis=1))
        traces[0], trace_error = _mean(dots(W, products[:, k:]))
        fits[1] = dots(coef, products[:, :k]).sum()
        errors[0] = k / 2 * trace_error
    return Likelihood(
        value=_value(Y, fits, preconditioner.log_determinant + log_determinant),
        gradient=0.5 * (fits[1:] - k * traces),
        value_error=k / 2 * log_error,
        gradient_error=errors,
        coef=coef,
        fits=fits,
        residual=float(found.residual.max()),
        converged=bool(found.converged.all()),
        passes=found.passes + (derivative is not None),
    )


def _fits(Y: Floats, coef: Floats) -> Floats:
    """Sums of Y' coef and, by the noise, of coef' coef; NaN by the parameter of K."""
    return np.array([np.einsum("ij,ij->", Y, coef), np.nan, (coef**2).sum()])


def _value(Y: Floats, fits: Floats, log_determinant: float) -> float:
    n, k = Y.shape
    value: float = -0.5 * (fits[0] + k * (log_determinant + n * math.log(2 * math.pi)))
    return value


def _mean(values: Floats) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
