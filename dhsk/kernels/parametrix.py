"""The parametrix: the heat kernel's Gaussian factor in the angle, and its short-time expansion.

Rejected: closed forms next to Taylor series with a switch, as both lose digits where they meet.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from scipy.special import zeta

from dhsk.arrays import Floats, blocks
from dhsk.errors import InputError
from dhsk.kernels.base import positive_parameter, whole_parameter
from dhsk.kernels.heat import time_at_scale
from dhsk.kernels.spherical import SphericalKernel

MAX_ORDER: Final = 2
"""Highest order of the expansion."""

_TERMS: Final = 18
"""Terms of the series in x = (θ/π)²: they decrease like 9^-k, so the remainder is below 1e-17."""

_PIECE: Final = 4096
"""Number of cosines expanded at a time: the twenty arrays that this takes stay in cache."""


@dataclass(frozen=True)
class ParametrixKernel(SphericalKernel):
    """Gaussian of the angle, exp(-θ²/(4t)) with θ = arccos c, or the short-time expansion.

    Without an order it is the Gaussian factor alone, which was used in practice before the exact
    kernel. With an order q it is the heat kernel's expansion at short times, scaled to 1 at θ = 0:

        K(c) = exp(-θ²/4t) (u_0 + ... + u_q t^q)(θ) / (u_0 + ... + u_q t^q)(0)

    Neither is positive semi-definite in general. The expansion is not for classification: it may
    be negative, exceed 1 or increase with θ (u_0 alone does near 0 for t > 3/(dim - 2)), and
    diverges at θ = π for dim > 2. There, and where it overflows, values are ±inf.

    Values are accurate to a few eps (2e-16) times 1 + θ²/4t + dim log(θ/sin θ) of the largest term,
    given the cosine. An error δ of the cosine itself, at least eps for a computed product, changes
    them by the factor 1 + δ θ/(2t sin θ).

    Parameters
    ----------
    time
        Diffusion time t, above 0.
    order
        None for the Gaussian factor, or the last term of the expansion: 0, 1 or 2.
    dim
        Number of features n, at least 2; the expansion needs it.

    Raises
    ------
    InputError
        If time is not a finite number above 0, order is not None, 0, 1 or 2, or dim is not an
        integer of at least 2, or missing for an order.

    References
    ----------
    Zhao & Song (2017), section 2.1; Lafferty & Lebanon (2002), equations 6 and 7.

    Examples
    --------
    >>> import dhsk
    >>> X = dhsk.hyperspherical_map([[1, 2, 0], [2, 4, 0], [0, 1, 3]])
    >>> dhsk.ParametrixKernel(time=0.3)(X).round(4)
    array([[1.   , 1.   , 0.332],
           [1.   , 1.   , 0.332],
           [0.332, 0.332, 1.   ]])
    >>> dhsk.ParametrixKernel(time=0.3, order=2, dim=3)(X).round(4)
    array([[1.    , 1.    , 0.3737],
           [1.    , 1.    , 0.3737],
           [0.3737, 0.3737, 1.    ]])
    """

    name: ClassVar[str] = "parametrix"

    time: float
    order: int | None = None
    dim: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", positive_parameter("time", self.time))
        if self.dim is not None:
            object.__setattr__(self, "dim", whole_parameter("dim", self.dim, 2))
        if self.order is None:
            return
        object.__setattr__(self, "order", whole_parameter("order", self.order, 0))
        if self.order > MAX_ORDER:
            raise InputError(f"order must be None, 0, 1 or 2, but it is {self.order}")
        if self.dim is None:
            raise InputError(
                f"the expansion of order {self.order} depends on the dimension: give dim, the"
                " number of features"
            )

    @property
    def positive_semidefinite(self) -> bool | None:
        """None for the Gaussian factor, False for the expansion.

        The Gaussian is not on the whole sphere: on a great circle its slope at θ = π makes Fourier
        coefficients of even order negative. On samples of the positive orthant, which end at π/2,
        it may be. The expansion has values above 1 near the antipode, where two rows suffice; in
        two dimensions it is the Gaussian.
        """
        return None if self.order is None or self.dim == 2 else False

    @classmethod
    def at_scale(cls, dim: int, time_scale: float, order: int | None = None) -> Self:
        """Kernel at `time_scale` times the sweet spot log(dim)/dim of the heat kernel."""
        return cls(time_at_scale(dim, time_scale), order, None if order is None else dim)

    @classmethod
    def multinomial(cls, time: float) -> Self:
        """Multinomial diffusion kernel exp(-arccos²(c)/T) of Lafferty & Lebanon.

        Multinomial distributions form a sphere of radius 2 under Fisher's metric, so their time T
        is 4t. Cosines of counts come from the hyperspherical map (maximum likelihood), or from
        `SmoothedKernel` (Dirichlet smoothing).

        Parameters
        ----------
        time
            Their time T, above 0.

        Returns
        -------
        ParametrixKernel
            The kernel of time t = T/4.
        """
        return cls(positive_parameter("time", time) / 4.0)

    @property
    def label(self) -> str:
        """Short name with the time and the order."""
        order = "" if self.order is None else f" order={self.order}"
        return f"parametrix t={self.time:.4g}{order}"

    def to_spec(self) -> dict[str, Any]:
        """Name and parameters as JSON scalars, without those that are None."""
        return {key: value for key, value in super().to_spec().items() if value is not None}

    def _evaluate(self, cosines: Floats) -> None:
        if self.order is None or self.dim is None or self.dim == 2:  # on a circle u_0 = 1, u_k = 0
            self._exponents(cosines)
            np.exp(cosines, out=cosines)
            return
        for part in blocks(cosines.size, _PIECE):
            cosines[part] = _expansion(cosines[part], self.time, self.order, self.dim)

    def _evaluate_less_one(self, cosines: Floats, scale: float, shift: float) -> None:
        if self.order is not None and self.dim != 2:  # with u_0 the expansion is not near 1
            super()._evaluate_less_one(cosines, scale, shift)
            return
        self._exponents(cosines)
        np.expm1(cosines, out=cosines)
        cosines *= scale
        cosines += shift

    def _exponents(self, cosines: Floats) -> None:
        """Replace cosines with -θ²/4t, in place."""
        np.arccos(cosines, out=cosines)
        np.square(cosines, out=cosines)
        with np.errstate(over="ignore"):  # a tiny time: exp(-inf) = 0 is the limit
            cosines /= -4.0 * self.time


def _expansion(c: Floats, time: float, order: int, dim: int) -> Floats:
    """exp(-θ²/4t) Σ u_k t^k, divided by its value at θ = 0; (size,)."""
    # From the angle to the nearer pole, x = (θ/π)² and y = 1 - x have no cancellation.
    nearer = np.arccos(np.abs(c))
    theta = np.where(c < 0.0, math.pi - nearer, nearer)
    x = np.square(theta / math.pi)
    y = np.where(c < 0.0, nearer * (math.pi + theta) / math.pi**2, 1.0 - x)
    b = (dim - 2) / 2
    total = _coefficients(x, y, time, order, b)
    source = np.zeros(1), np.ones(1)
    at_source = _coefficients(*source, time, order, b)[0]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        exponent = b * _log_ratio(x, y, c < 0.0) - np.square(theta) / time / 4.0
        values = np.exp(exponent) * (total / at_source)
    antipodes = y == 0.0
    values[antipodes] = np.copysign(np.inf, total[antipodes])
    values[c == 1.0] = 1.0
    return np.asarray(values)


def _log_ratio(x: Floats, y: Floats, far: NDArray[np.bool_]) -> Floats:
    """log(θ/sin θ), from Euler's product sin θ/θ = Π (1 - x/m²); every term is positive."""
    powers = np.arange(1, _TERMS + 1)
    tail = polyval(x, np.concatenate([[0.0], zeta(2.0 * powers, 3.0) / powers]))  # m >= 3
    return np.asarray(tail - np.log1p(-x / 4.0) - np.where(far, np.log(y), np.log1p(-x)))


def _coefficients(x: Floats, y: Floats, time: float, order: int, b: float) -> Floats:
    """Σ_k t^k u_k/u_0, divided by max(1, t)^order, which keeps it in range.

    With v_k = u_k/u_0 and D0 = (θ v_1)', the integrals of the recursion are elementary:

        v_1 = b² + b(b-1) g,    g = (θ cot θ - 1)/θ²
        v_2 = v_1²/2 + b(b-1) (g'/θ + (2b-1)(g + 1/3)/θ²)

    and Euler's series θ cot θ = 1 - 2x Σ_m 1/(m² - x) gives each part without cancellation as
    its pole 1/y at θ = π (m = 1) and a regular remainder.
    """
    largest = order if time > 1.0 else 0
    weights = [time ** (k - largest) for k in range(order + 1)] + [0.0, 0.0]
    zetas = zeta(2.0 * np.arange(2, _TERMS + 2), 3.0)  # sums over m >= 3 of m^-2k
    rest = 4.0 - x  # m = 2
    chord = 0.25 / rest + polyval(x, zetas)  # (g + 1/3)/θ² = -(2/π⁴)(1/y + chord)
    slope = rest**-2 + polyval(x, zetas * np.arange(1, _TERMS + 1))  # g'/θ = -(4/π⁴)(1/y² + slope)
    value = (math.pi**2 / 6 - 1.0) + x * chord  # g = -(2/π²)(1/y + value)
    k = 2.0 * b * (b - 1.0) / math.pi**2
    regular = b * b - k * value  # v_1 = regular - k/y
    constant = (
        weights[0]
        + weights[1] * regular
        + weights[2] * (regular**2 / 2 - k / math.pi**2 * (2.0 * slope + (2.0 * b - 1.0) * chord))
    )
    single = -k * (weights[1] + weights[2] * (regular + (2.0 * b - 1.0) / math.pi**2))
    double = weights[2] * k / math.pi**2 * (b - 2.0) * (b + 1.0)
    with np.errstate(over="ignore"):
        pole = 1.0 / np.maximum(y, 1e-150)  # at θ = π only the sign is used
        return np.asarray(constant + pole * (single + pole * double))
