"""Table of the heat kernel of hyperbolic space as a function of distance.

With z = cosh rho, the closed forms of odd dimensions d = 2m + 1 are m derivatives -d/dz of
exp(-rho²/4t), and those of even ones are integrals of the next odd one. Since q(z) = rho²/2 has
derivatives of alternating sign (q' = rho/sinh rho is the integral of 1/(z + cosh u) over u > 0),
all terms of both are positive, and nothing cancels.

Rejected: ball arithmetic, which has nothing to repair; the substitution s = rho + u² in the
integrals, whose branch points are near the path at small rho.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import hyp2f1

from dhsk.arrays import Floats
from dhsk.errors import AccuracyError

TOLERANCE: Final = 1e-11
"""Largest error of the logarithm in the check of a table."""

_SMALL: Final = 1.5
"""Distance up to which a power series gives the derivatives of q; a recurrence does beyond."""

_DEGREE: Final = 15  # of the polynomial on each piece: 12^-15 for a piece of length 1
_PIECES: Final = 32  # at least, to resolve log K near distance 0
_SMALLEST_LOG: Final = -746.0  # below, exp underflows to 0
_STEPS: Final = 256  # of the trapezoidal rule
_CUT: Final = 45.0  # the rule ends where the integrand has fallen by exp(-45), 3e-20


@dataclass(frozen=True, eq=False)
class HyperbolicProfile:
    """log K(rho)/K(0) as a piecewise polynomial, on pieces of equal length."""

    coefficients: Floats
    """Coefficients of the powers of u in [-1, 1] on each piece, (degree + 1, pieces)."""
    length: float
    """Length of a piece, in units of rho."""
    log_peak: float
    """log K(0) of the density."""

    def evaluate(self, rho: Floats, *, normalize: bool) -> Floats:
        """K(rho)/K(0), or the density K(rho), for distances (size,)."""
        log = self.log_ratio(rho)
        if not normalize:
            log += self.log_peak
        return np.asarray(np.exp(log, out=log))

    def log_ratio(self, rho: Floats) -> Floats:
        """Logarithm of K(rho)/K(0) for distances (size,); -inf beyond the table."""
        n_pieces = self.coefficients.shape[1]
        end = n_pieces * self.length
        scaled = np.minimum(rho, end) / self.length
        piece = np.minimum(scaled.astype(np.intp), n_pieces - 1)
        scaled -= piece
        scaled *= 2.0
        scaled -= 1.0
        log = self.coefficients[-1][piece]
        for row in self.coefficients[-2::-1]:
            log *= scaled
            log += row[piece]
        np.minimum(log, 0.0, out=log)
        log[rho == 0.0] = 0.0
        log[rho >= end] = -np.inf
        return np.asarray(log)


@lru_cache(maxsize=32)  # every task of a worker needs the same kernel
def hyperbolic_profile(dim: int, time: float) -> HyperbolicProfile:
    """Tabulate the heat kernel of H^dim at one time, up to the distance at which it underflows.

    Raises `AccuracyError` if the error of the table is above `TOLERANCE` at a point between nodes.
    """
    peak = float(log_shape(np.zeros(1), dim, time)[0])
    log_peak = peak + _log_scale(dim, time)

    def log_ratio(rho: Floats) -> Floats:
        return log_shape(rho, dim, time) - peak

    end = _end(log_ratio, _SMALLEST_LOG - max(log_peak, 0.0))
    n_pieces = max(_PIECES, math.ceil(end))
    length = end / n_pieces
    nodes = np.cos(math.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    rho = length * (np.arange(n_pieces) + (nodes[:, None] + 1.0) / 2.0)
    fitted = chebyshev.chebfit(nodes, log_ratio(rho.reshape(-1)).reshape(rho.shape), _DEGREE)
    profile = HyperbolicProfile(_powers_of_chebyshev() @ fitted, length, log_peak)
    _check(profile, log_ratio)
    return profile


def _powers_of_chebyshev() -> Floats:
    """Coefficients of the Chebyshev polynomials, one per column."""
    table = np.zeros((_DEGREE + 1, _DEGREE + 1))
    for k in range(_DEGREE + 1):
        table[: k + 1, k] = chebyshev.cheb2poly(np.eye(k + 1)[k])
    return table


def _check(profile: HyperbolicProfile, log_ratio: Callable[[Floats], Floats]) -> None:
    """Compare with the formula half-way between two nodes of each piece."""
    u = math.cos(math.pi / (_DEGREE + 1))
    pieces = np.arange(float(profile.coefficients.shape[1]))
    rho: Floats = profile.length * (pieces + (u + 1.0) / 2.0)
    exact = log_ratio(rho)
    error = np.abs(profile.log_ratio(rho) - exact)
    if not (error <= TOLERANCE).all():
        raise AccuracyError(
            f"the table of the hyperbolic heat kernel is off by {error.max():.3g} at distance"
            f" {rho[np.argmax(error)]:.6g}: use a time nearer to 1"
        )


def _end(log_ratio: Callable[[Floats], Floats], smallest: float) -> float:
    """Distance at which the kernel has fallen to exp(smallest), by bisection."""
    low, high = 0.0, 1.0
    while log_ratio(np.array([high]))[0] > smallest:
        low, high = high, 2.0 * high
    while high > 1.001 * low:
        middle = (low + high) / 2.0
        below = log_ratio(np.array([middle]))[0] < smallest
        low, high = (low, middle) if below else (middle, high)
    return high


def log_shape(rho: Floats, dim: int, time: float) -> Floats:
    """Logarithm of the heat kernel of H^dim less `_log_scale`, from its closed form or integral.

    Both are exp(-rho²/4t) cosh^{1-d}(rho/2) times a slowly varying factor. The distances rho are at
    least 0.

    References
    ----------
    Lafferty & Lebanon (2002), section 2.2; Grigor'yan & Noguchi (1998).
    """
    m = (dim - 1) // 2
    factor = _derivative(rho, m, time) if dim % 2 else _integral(rho, m, time)
    log_cosh = rho / 2.0 + np.log1p(np.exp(-rho)) - math.log(2.0)
    decay = np.square(rho) / (4.0 * time) + (dim - 1) * log_cosh
    shape: Floats = np.log(factor) - decay
    return shape


def _log_scale(dim: int, time: float) -> float:
    """Logarithm of the factors that do not depend on the distance."""
    halves = math.log(2.0 * math.pi) * ((dim - 1) // 2) + math.log(4.0 * math.pi * time) / 2.0
    of_integral = 0.0 if dim % 2 else math.log(2.0 / math.pi)
    return of_integral - halves - (dim - 1) ** 2 * time / 4.0


def _integral(rho: Floats, m: int, time: float) -> Floats:
    """Factor of the even dimension 2m + 2: an integral over that of dimension 2m + 3.

    The formula's integral over s from rho has an end-point singularity. In y with cosh(s/2) =
    cosh(rho/2) cosh y it becomes

        ∫_0^∞ exp(-(s² - rho²)/4t) cosh^{-(2m+1)} y  F(s) dy,

    even and analytic around the real axis, where the trapezoidal rule converges exponentially.
    """
    sinh, cosh = np.sinh(rho / 2.0), np.cosh(rho / 2.0)
    farthest = np.sqrt(np.square(rho) + 4.0 * time * _CUT) / 2.0
    # cosh(y) = cosh(s/2)/cosh(rho/2), by differences of squares
    last = np.arcsinh(np.sqrt(np.sinh(farthest - rho / 2.0) * np.sinh(farthest + rho / 2.0)) / cosh)
    last = np.minimum(last, _CUT / (2 * m + 1) + 1.0)
    total = np.zeros_like(rho)
    for step in range(_STEPS + 1):
        y = last * (step / _STEPS)
        s = 2.0 * np.arcsinh(np.hypot(sinh, cosh * np.sinh(y)))
        value = np.exp((rho - s) * (rho + s) / (4.0 * time)) * _derivative(s, m + 1, time)
        value /= np.cosh(y) ** (2 * m + 1)
        total += value if 0 < step < _STEPS else value / 2.0
    return np.asarray(total * (last / _STEPS))


def _derivative(rho: Floats, order: int, time: float) -> Floats:
    """cosh^{2m}(rho/2) exp(rho²/4t) (-d/dz)^m exp(-rho²/4t), z = cosh rho, m = order.

    By Faà di Bruno's formula, the complete Bell polynomial of the derivatives of q/(2t).
    """
    x = [derivative / (2.0 * time) for derivative in _derivatives_of_q(rho, order)]
    bell = [np.ones_like(rho)]
    for m in range(1, order + 1):
        terms = (math.comb(m - 1, k) * x[k] * bell[m - 1 - k] for k in range(m))
        bell.append(sum(terms, start=np.zeros_like(rho)))
    return bell[order]


def _derivatives_of_q(rho: Floats, order: int) -> list[Floats]:
    """cosh^{2k}(rho/2) |q^{(k)}(z)| for k = 1 ... order, q = rho²/2, z = cosh rho; each (size,).

    Near 0 by q' = 2F1(1, 1; 3/2; (1-z)/2) after Pfaff's transformation, whose terms are all
    positive; farther out by the recurrence that follows from (z² - 1) q'' + z q' = 1.
    """
    small = rho < _SMALL
    far = np.where(small, _SMALL, rho)
    root = np.tanh(far / 2.0)
    coth = 1.0 / np.tanh(far)
    scaled = [far, far * coth - 1.0]  # |q^{(k)}| sinh^k rho
    for k in range(1, order - 1):
        scaled.append((2 * k + 1) * coth * scaled[k] - k * k * scaled[k - 1])
    tau = np.tanh(rho[small] / 2.0) ** 2
    result, factor = [], 1.0
    for k in range(1, order + 1):
        value = scaled[k - 1] / (2.0 * root) ** k
        value[small] = factor * hyp2f1(k, 0.5, k + 0.5, tau)
        result.append(value)
        factor *= k * k / (2.0 * k + 1.0)
    return result
