"""The exact heat kernel on the hypersphere."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np

from dhsk.arrays import Floats
from dhsk.caching import cached_value
from dhsk.errors import AccuracyError, InputError
from dhsk.kernels.base import positive_parameter, whole_parameter
from dhsk.kernels.certified.certify import ErrorBound
from dhsk.kernels.certified.derivative import HeatDerivativeProfile, heat_derivative_profile
from dhsk.kernels.certified.evaluate import Reals
from dhsk.kernels.certified.kept import kept_profile
from dhsk.kernels.certified.profile import HeatProfile
from dhsk.kernels.certified.rounded import log_of_whole
from dhsk.kernels.cuda import DevicePass, of_form, of_form_less_one
from dhsk.kernels.spherical import SphericalKernel

TIME_SCALES: Final = (0.7, 1.0, 1.4)
"""Default time scales of searches, around the sweet spot of Zhao & Song (2017), section 2.2."""


_CURVED: Final = 1e6  # above this nonlinearity no kernel is near a linear one
_NEGLIGIBLE: Final = 1e-3  # relative: the upper bound needs no more digits


def time_at_scale(dim: int, time_scale: float) -> float:
    """Diffusion time t = s log(n)/n at a multiple s of the sweet spot.

    Raises `InputError` if the dimension n is not a whole number of at least 2, or s not a finite
    number above 0. See Zhao & Song (2017), section 2.2.
    """
    if dim == 1:
        raise InputError(
            "dim must be a whole number, at least 2, but it is 1: on the sphere, samples of one "
            "feature are all one point or its opposite"
        )
    dim = whole_parameter("dim", dim, 2)
    return positive_parameter("time_scale", time_scale) * log_of_whole(dim) / dim


_Profile = TypeVar("_Profile", HeatProfile, HeatDerivativeProfile)


@dataclass(frozen=True)
class _HeatFunction(SphericalKernel, Generic[_Profile]):
    """Function of a cosine and of time that is compiled to a certified form at first use."""

    dim: int
    time: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", whole_parameter("dim", self.dim, 2))
        object.__setattr__(self, "time", positive_parameter("time", self.time))

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            # With the profile (3 kB): it is computed once, and all workers have the same bits.
            return _with_profile, (type(self), self.dim, self.time, self._profile)
        except AccuracyError:  # raised again where the kernel is used
            return type(self), (self.dim, self.time)

    def prepare(self, dtype: str = "float64") -> None:
        """Sum the series, compile it to a closed form, and prove its error bound."""
        self._form(np.dtype(dtype))

    @classmethod
    def at_scale(cls, dim: int, time_scale: float) -> Self:
        """Kernel at `time_scale` times the sweet spot log(dim)/dim."""
        return cls(dim, time_at_scale(dim, time_scale))

    @property
    def time_scale(self) -> float:
        """The time as a multiple of the sweet spot log(dim)/dim."""
        return self.time * self.dim / log_of_whole(self.dim)

    @property
    def error_bound(self) -> ErrorBound:
        """Proven bound of |computed - true| in float64."""
        return self._profile.double.error

    def explain(self) -> str:
        """Text on how this kernel is evaluated and what is proven."""
        return self._profile.explain()

    @cached_value
    def _profile(self) -> _Profile:
        return self._compile()

    @abstractmethod
    def _compile(self) -> _Profile:
        """Certified forms in float64 and float32."""

    def _evaluate(self, cosines: Floats) -> None:
        self._profile.double.apply(cosines, cosines)

    def _apply(self, cosines: Reals, out: Reals) -> None:
        self._form(cosines.dtype).apply(cosines, out)

    def _form(self, dtype: Any) -> Any:
        return self._profile.double if dtype == np.float64 else self._profile.single

    def device_pass(self, dtype: Any) -> DevicePass:
        """Certified form in a type."""
        return of_form(self._form(dtype))


@dataclass(frozen=True)
class HeatTimeDerivative(_HeatFunction[HeatDerivativeProfile]):
    """Derivative of the exact heat kernel in time, dK/dt at fixed cosine; K(1) = 1 at every time.

    With the weights a_l of the kernel's series, m = Σ_l a_l l(l+n-2) and n = dim, it is
    Σ_l a_l (m - l(l+n-2)) P_l(c). It is 0 at c = 1, exactly, and positive at all other cosines: a
    longer diffusion makes all samples more alike. It is evaluated as K (1-c) R, where K has the
    kernel's own form and R is a quotient of polynomials, with a proven error, `error_bound`. In
    float64 the error relative to dK/dt is at most 2e-12 wherever K >= 1e-290, next to c = 1 too.
    In float32 the absolute error is at most 2e-5 of the largest dK/dt. These are errors at the
    given cosine.

    It is a function of the cosine like the kernels of the sphere: `G.with_kernel` derives its
    matrix from stored cosines, or computes it from the samples. But it is not positive
    semi-definite, and no kernel to train on.

    The derivative in the time scale s, t = s log(n)/n, is dK/ds = log(n)/n dK/dt.

    Parameters
    ----------
    dim
        Number of features n, at least 2.
    time
        Diffusion time t, above 0.

    Raises
    ------
    InputError
        If dim is not a whole number of at least 2 or time not a finite number above 0.
    AccuracyError
        On first use, if the time is too small for a proof, as for `HeatKernel`.

    Examples
    --------
    >>> import dhsk
    >>> kernel = dhsk.HeatKernel.at_scale(dim=3, time_scale=1.0)
    >>> derivative = kernel.time_derivative()
    >>> X = dhsk.hyperspherical_map([[1, 2, 0], [2, 4, 0], [0, 1, 3]])
    >>> derivative(X).round(4)
    array([[0.    , 0.    , 1.1317],
           [0.    , 0.    , 1.1317],
           [1.1317, 1.1317, 0.    ]])
    >>> later = dhsk.HeatKernel(kernel.dim, kernel.time + 1e-6)
    >>> ((later(X) - kernel(X)) / 1e-6).round(4)
    array([[0.    , 0.    , 1.1317],
           [0.    , 0.    , 1.1317],
           [1.1317, 1.1317, 0.    ]])
    """

    name: ClassVar[str] = "heat time derivative"
    unit_diagonal: ClassVar[bool] = False

    @property
    def positive_semidefinite(self) -> bool:
        """False: the trace of a Gram matrix is 0."""
        return False

    @property
    def label(self) -> str:
        """Short name with the time."""
        return f"d/dt heat t={self.time:.4g}"

    @property
    def largest(self) -> float:
        """The largest value at any cosine, to about a percent."""
        return self._profile.largest

    def _compile(self) -> HeatDerivativeProfile:
        return heat_derivative_profile(self.dim, self.time)


@dataclass(frozen=True)
class HeatKernel(_HeatFunction[HeatProfile]):
    """Exact heat kernel on the sphere S^{dim-1}, normalised to K(x, x) = 1.

    K(c; t) = Σ_l a_l P_l(c), with P_l the Legendre polynomials of the sphere and weights a_l that
    are positive and sum to 1. On first use the sum is computed in ball arithmetic and compiled to a
    short closed form with a proven error, `error_bound`. In float64 the relative error is at most
    1e-12 wherever K >= 1e-290, and smaller values are in [0, 1e-290]. In float32 the absolute error
    is at most 4e-7. These are errors at the given cosine. A rounding error δ of the cosine changes
    K by up to δ K'(1), where K'(1) is about 1/(2t): by 6e-8/(2t) for a float32 cosine.

    K(1) is exactly 1, K is never above 1, and K increases with c up to rounding.

    Parameters
    ----------
    dim
        Number of features n, at least 2.
    time
        Diffusion time t, above 0.

    Raises
    ------
    InputError
        If dim is not a whole number of at least 2 or time not a finite number above 0.
    AccuracyError
        On first use, if the time is too small for a proof. There are proofs for time scales from
        0.2 up to dim = 1,000,000, from 0.05 up to dim = 10,000, and times from 1e-4 up to dim = 50.

    References
    ----------
    Zhao & Song (2017), Theorem 1 and Definition 4.

    Examples
    --------
    >>> import dhsk
    >>> kernel = dhsk.HeatKernel.at_scale(dim=3, time_scale=1.0)
    >>> X = dhsk.hyperspherical_map([[1, 2, 0], [2, 4, 0], [0, 1, 3]])
    >>> kernel(X).round(4)
    array([[1.    , 1.    , 0.4566],
           [1.    , 1.    , 0.4566],
           [0.4566, 0.4566, 1.    ]])
    >>> print(kernel.explain())
    Heat kernel of dim=3, time=0.366204.
    Series: 26 levels, ...
    float64: ... proven: relative error at most 1.3e-15 wherever K >= 1e-290 ...
    """

    name: ClassVar[str] = "heat"

    @property
    def label(self) -> str:
        """Short name with the time."""
        return f"heat t={self.time:.4g}"

    @property
    def n_levels(self) -> int:
        """Number of terms of the series that are summed."""
        return self._profile.levels

    @property
    def nonlinearity(self) -> float:
        """Upper bound on the relative difference of 1 - K from that of a linear kernel.

        With the weights a_l of the series, 1 - K = a_1 (1 - c) (1 + δ(c)) where 0 <= δ(c) <=
        Σ_{l>=2} a_l P_l'(1) / a_1, because 0 <= 1 - P_l <= P_l'(1) (1 - c). The bound is this sum:
        squared distances in feature space are those of the linear kernel up to the factor 1 + δ. It
        decreases like n^(1-s) with the time scale s.
        """
        n, t = self.dim, self.time
        # P_l'(1) = l(l+n-2)/(n-1); the terms rise to one peak and fall.
        term, total, level = 1.0, 0.0, 1
        while total < _CURVED:
            harmonics = (2 * level + n) / (2 * level + n - 2) * (level + n - 2) / (level + 1)
            slopes = (level + 1) * (level + n - 1) / (level * (level + n - 2))
            ratio = harmonics * slopes * math.exp(-(2 * level + n - 1) * t)
            term, level = term * ratio, level + 1
            total += term
            if ratio < 0.5 and term < _NEGLIGIBLE * total:
                return total
        return math.inf

    def time_derivative(self) -> HeatTimeDerivative:
        """dK/dt at fixed cosine, a function of the cosine with its own proven error bound.

        Examples
        --------
        >>> import dhsk
        >>> kernel = dhsk.HeatKernel(dim=3, time=0.4)
        >>> kernel.time_derivative().of_cosine([1.0, 0.5, 0.0]).round(4)
        array([0.    , 0.9582, 1.0508])
        """
        return HeatTimeDerivative(self.dim, self.time)

    def _compile(self) -> HeatProfile:
        return kept_profile(self.dim, self.time)

    def _evaluate_less_one(self, cosines: Floats, scale: float, shift: float) -> None:
        self._profile.double.apply_less_one(cosines, cosines, scale, shift)

    def device_pass_less_one(self, scale: float, shift: float) -> DevicePass:
        """Certified form in float64, of scale (K - 1) + shift."""
        return of_form_less_one(self._profile.double, scale, shift)


def _with_profile(
    kernel: type[_HeatFunction[Any]], dim: int, time: float, profile: Any
) -> _HeatFunction[Any]:
    made = kernel(dim, time)
    made.__dict__["_profile"] = profile  # the cache of `cached_value`
    return made
