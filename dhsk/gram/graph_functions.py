"""Columns of functions of a symmetric sparse matrix, by Chebyshev series or powers.

With the eigenvalues of S in [a, b], A = (2S - a - b)/(b - a) has them in [-1, 1], and

    f(S) e_j = sum_k c_k T_k(A) e_j,    T_{k+1} = 2A T_k - T_{k-1},

where |T_k| <= 1, so that the coefficients that are left out bound the error of every entry. Both
functions have their coefficients in closed form. Every column needs as many products with S as the
series has terms, and no column depends on another one.

Rejected, by measurement: `expm_multiply` (3.3 to 3.9 times the time for the same columns, and
numpy's global random numbers); `splu` (a random graph of 4,000 nodes and 39,969 entries has factors
of 9.2 million); conjugate gradients (as many products, and steps that depend on the column).
"""

import math
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import ive

from dhsk.arrays import Floats, blocks
from dhsk.errors import AccuracyError, InputError
from dhsk.kernels.nodes import NodeKernel

ROUNDING: Final = 2.0**-53
"""Share of the largest eigenvalue of f(S) that the terms left out may have together."""

MOST_TERMS: Final = 100_000
"""Terms of a series, at most: a product with S each."""

WIDTH: Final = 32
"""Columns that are computed at a time: their three blocks stay near the cache for some 20,000
nodes, and a row of S is read once for all of them."""

RESIDUAL: Final = 1e-10
"""Largest norm of e_j - (I - beta S) x_j that is accepted: the error of a column of the von Neumann
kernel is then at most this share of the kernel's largest eigenvalue."""

_LARGEST_SCALE: Final = 1e15  # far more than `MOST_TERMS` allows; beyond, scipy's ive is nan

_OUTSIDE: Final = 1e-6  # by which |T_k(A)| may exceed 1: rounding of a few thousand terms


@dataclass(frozen=True)
class NodeSpectrum:
    """Interval of the eigenvalues of S."""

    lowest: float
    highest: float

    @property
    def middle(self) -> float:
        """Centre of the interval."""
        return (self.lowest + self.highest) / 2

    @property
    def half(self) -> float:
        """Half of its length; 0 for a multiple of the identity."""
        return (self.highest - self.lowest) / 2

    @property
    def radius(self) -> float:
        """Upper bound on the spectral radius."""
        return max(abs(self.lowest), abs(self.highest))

    def to_json(self) -> dict[str, float]:
        """Plain values, from which the same interval is made."""
        return {"lowest": self.lowest, "highest": self.highest}

    @classmethod
    def of_json(cls, found: dict[str, float]) -> Self | None:
        """The interval of `to_json`; None if there is none, as of powers."""
        return cls(found["lowest"], found["highest"]) if "lowest" in found else None


def coefficients(kernel: NodeKernel, spectrum: NodeSpectrum) -> Floats:
    """Coefficients of the Chebyshev series of a function on an interval, until the rest is small.

    Raises AccuracyError if there are more than `MOST_TERMS`.
    """
    assert kernel.beta is not None
    scale, middle = kernel.beta * spectrum.half, kernel.beta * spectrum.middle
    exponential = kernel.kind == "exponential"
    if abs(scale) <= ROUNDING * (1.0 if exponential else 1.0 - middle):  # a multiple of I
        return np.array([math.exp(middle) if exponential else 1.0 / (1.0 - middle)])
    if not abs(scale) < _LARGEST_SCALE:
        raise _too_many(kernel)
    if exponential:
        # exp(scale t) = I_0(scale) + 2 sum I_k(scale) T_k(t); ive is without the factor e^|scale|.
        terms = np.arange(min(80 + math.ceil(10 * math.sqrt(abs(scale)) + abs(scale) / 10), 10**7))
        shares = ive(terms, scale)
        shares[1:] *= 2.0
        factor = math.exp(middle + abs(scale))
    else:
        # 1/(z - t) = (1 + 2 sum q^k T_k(t))/sqrt(z^2 - 1), z = (1 - middle)/scale, q + 1/q = 2z.
        z = (1.0 - middle) / scale
        root = math.sqrt((abs(z) - 1.0) * (abs(z) + 1.0))
        q = 1.0 / (abs(z) + root)
        count = 2 + math.ceil((math.log(ROUNDING) + math.log1p(-q)) / math.log(q))
        terms = np.arange(min(count, 10 * MOST_TERMS))
        shares = 2.0 * np.copysign(q, z) ** terms
        shares[0] = 1.0
        factor = 1.0 / (abs(scale) * root)
    rest = np.cumsum(np.abs(shares[::-1]))[::-1]
    count = int(np.searchsorted(-rest, -ROUNDING * rest[0]))
    if count > MOST_TERMS:
        raise _too_many(kernel)
    return np.asarray(factor * shares[: max(1, count)])


def _too_many(kernel: NodeKernel) -> AccuracyError:
    return AccuracyError(
        f"the {kernel.label} kernel takes more than {MOST_TERMS:,} products with S a column: take a"
        " smaller |beta|"
    )


class NodeColumns:
    """Computes columns of the matrix of a kernel of nodes; `spectrum` is None for powers."""

    def __init__(
        self, S: "csr_array[Any, Any]", kernel: NodeKernel, spectrum: NodeSpectrum | None
    ) -> None:
        self._S: Any = S
        self._kernel, self._spectrum = kernel, spectrum
        if spectrum is not None:
            self._series = coefficients(kernel, spectrum)
            if len(self._series) > 1:
                identity: Any = eye_array(S.shape[0], format="csr")
                self._A: Any = csr_array((self._S - spectrum.middle * identity) / spectrum.half)
                self._twice: Any = csr_array(2.0 * self._A)

    def fill(self, columns: slice, out: Floats) -> None:
        """Write the first rows of some columns, (rows, columns), to `out`.

        Raises AccuracyError if the result cannot be right, or is not accurate enough.
        """
        for part in blocks(columns.stop - columns.start, WIDTH):
            own = slice(columns.start + part.start, columns.start + part.stop)
            out[:, part] = self._columns(own)[: len(out)]

    def _columns(self, own: slice) -> Floats:
        """Whole columns, (nodes, columns)."""
        if self._spectrum is None:
            return self._power(own)
        found = self._chebyshev(own)
        if self._kernel.kind == "von_neumann":
            self._check_residual(own, found)
        return found

    def _power(self, own: slice) -> Floats:
        found: Floats = self._S[:, own].toarray()
        for _ in range((self._kernel.power or 1) - 1):
            found = np.asarray(self._S @ found)
        return found

    def _chebyshev(self, own: slice) -> Floats:
        before = np.zeros((self._S.shape[0], own.stop - own.start))
        before[np.arange(own.start, own.stop), np.arange(own.stop - own.start)] = 1.0
        total: Floats = self._series[0] * before
        if len(self._series) == 1:
            return total
        now: Floats = self._A[:, own].toarray()
        total += self._series[1] * now
        for factor in self._series[2:]:
            following = self._twice @ now
            following -= before
            before, now = now, following
            total += factor * now
        largest = float(np.abs(now).max())
        if not largest <= 1.0 + _OUTSIDE:
            assert self._spectrum is not None
            raise AccuracyError(
                f"an eigenvalue of S lies outside of [{self._spectrum.lowest:.6g},"
                f" {self._spectrum.highest:.6g}], where the Lanczos method found them all: scale S"
                " or choose another kernel, and please report it"
            )
        return total

    def _check_residual(self, own: slice, found: Floats) -> None:
        """Certify columns of the von Neumann kernel."""
        beta = self._kernel.beta or 0.0
        residual = beta * (self._S @ found)
        residual -= found
        residual[np.arange(own.start, own.stop), np.arange(own.stop - own.start)] += 1.0
        worst = float(np.linalg.norm(residual, axis=0).max())
        if not worst <= RESIDUAL:
            raise AccuracyError(
                f"columns {own.start} to {own.stop - 1} of the {self._kernel.label} kernel have a"
                f" residual of {worst:.2g}, above {RESIDUAL:g}: |beta| is too near 1/rho, take a"
                " smaller one"
            )


def check_range(kernel: NodeKernel, spectrum: NodeSpectrum, dtype: str) -> None:
    """Refuse a kernel whose values may overflow a type."""
    room = math.log(float(np.finfo(dtype).max)) - 2.0
    if kernel.kind == "exponential":
        assert kernel.beta is not None
        largest = max(kernel.beta * spectrum.lowest, kernel.beta * spectrum.highest)
    elif kernel.kind == "power":
        largest = (kernel.power or 1) * math.log(max(spectrum.radius, 1e-300))
    else:
        return
    if largest > room:
        raise InputError(
            f"values of the {kernel.label} kernel may be e^{largest:.0f}, which overflows {dtype}:"
            f" take a smaller {'power' if kernel.kind == 'power' else '|beta|'}, or scale S"
        )
