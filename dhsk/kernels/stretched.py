"""Rescaling of kernels that are nearly constant.

At large times, or widths, all values of a kernel are nearly 1, and only their last digits differ. A
support vector machine with intercept does not depend on a constant added to its kernel, as its
coefficients sum to 0, and a factor of the kernel only rescales C. So it may use
1 - (1 - K)/spread in place of K, which has as many significant digits as 1 - K.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Rows
from dhsk.kernels.base import Kernel, positive_parameter
from dhsk.kernels.certified.evaluate import Reals
from dhsk.kernels.cuda import DevicePass, of_gaussian
from dhsk.kernels.gaussian import GaussianKernel
from dhsk.kernels.smoothed import SmoothedKernel
from dhsk.kernels.spherical import SphericalKernel, WrappedKernel

NEARLY_CONSTANT: Final = 0.25
"""Mean of 1 - K below which a kernel is stretched: at 1/4 this gains two binary digits."""

SMALLEST_SPREAD: Final = 1e-280
"""Mean of 1 - K below which a kernel counts as constant, near the end of the float64 range."""

_RESOLVED: Final = 1e-6  # share of the unit above which a mean has ten digits


@dataclass(frozen=True)
class StretchedKernel(WrappedKernel, SphericalKernel):
    """A spherical kernel K with its differences from 1 rescaled: 1 - (1 - K)/spread, spread > 0.

    If `spread` is the mean of 1 - K, it is 1 on the diagonal and about 0 elsewhere. It is positive
    semi-definite for coefficients that sum to 0, as in support vector machines with intercept, but
    for spread < 1 not in general.
    """

    name: ClassVar[str] = "stretched"

    spread: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "spread", positive_parameter("spread", self.spread))

    @property
    def positive_semidefinite(self) -> bool | None:
        """None for a spread below 1, see above, if the inner kernel is."""
        inner = self.kernel.positive_semidefinite
        return None if inner and self.spread < 1 else inner

    @property
    def label(self) -> str:
        """Short name of the inner kernel, with the spread."""
        return f"{self.kernel.label} spread={self.spread:.4g}"

    def _evaluate(self, cosines: Floats) -> None:
        self.kernel.apply_less_one(cosines, cosines, 1.0 / self.spread, 1.0)

    def device_pass(self, dtype: Any) -> DevicePass | None:
        """Pass of the inner kernel's differences from 1, in float64 for any type."""
        del dtype
        return self.kernel.device_pass_less_one(1.0 / self.spread, 1.0)

    def _apply(self, cosines: Reals, out: Reals) -> None:
        self.kernel.apply_less_one(cosines, out, 1.0 / self.spread, 1.0)


@dataclass(frozen=True)
class StretchedGaussianKernel(GaussianKernel):
    """A Gaussian kernel K of width `sigma` as 1 - (1 - K)/spread, see `StretchedKernel`."""

    name: ClassVar[str] = "stretched gaussian"

    spread: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "spread", positive_parameter("spread", self.spread))

    @property
    def positive_semidefinite(self) -> bool | None:
        """None for a spread below 1, as of `StretchedKernel`."""
        return True if self.spread >= 1 else None

    @property
    def label(self) -> str:
        """Short name with the width and the spread."""
        return f"{super().label} spread={self.spread:.4g}"

    def single_errors(self, full: NDArray[np.intp] | int, norms2: Floats) -> Floats:
        """Bound on the error of values, (a,), which the spread magnifies."""
        return super().single_errors(full, norms2) / self.spread

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Stretched Gaussians of the distances (a, b); overwrites `product` and returns it."""
        return self.of_product_less_one(product, row_norms2, col_norms2, 1.0 / self.spread, 1.0)

    def device_pass(self, dtype: Any) -> DevicePass:
        """Pass of differences from 1, in float64 for any type."""
        del dtype
        return of_gaussian(np.float64, self.twice_variance, 1.0 / self.spread, 1.0)


def stretched(kernel: Kernel, spread: float) -> Kernel | None:
    """Kernel 1 - (1 - K)/spread, for a spread above 0; None if K is not bounded by 1."""
    if isinstance(kernel, SmoothedKernel):
        return replace(kernel, kernel=StretchedKernel(kernel.kernel, spread))
    if isinstance(kernel, GaussianKernel):
        return StretchedGaussianKernel(kernel.sigma, spread)
    return StretchedKernel(kernel, spread) if isinstance(kernel, SphericalKernel) else None


def mean_difference(kernel: Kernel, rows: Rows) -> float | None:
    """Mean of 1 - K over all pairs of checked rows, to ten digits however small it is.

    0 below `SMALLEST_SPREAD`; None for kernels that are not bounded by 1.
    """
    unit = 1.0
    while unit > SMALLEST_SPREAD:
        zoomed = stretched(kernel, unit)
        if zoomed is None:
            return None
        values: NDArray[Any] = zoomed.of_rows(rows).astype(np.float64, copy=False)
        found = unit * float((1.0 - values).mean())
        if found > _RESOLVED * unit:
            return found
        unit *= _RESOLVED
    return 0.0


def unit_of(kernel: Kernel, rows: Rows) -> float | None:
    """Power of two near the mean of 1 - K over some checked rows, to stretch the kernel by.

    None if K is not nearly constant, so that this gains nothing, or if all values are equal.
    """
    found = mean_difference(kernel, rows)
    if found is None or not 0.0 < found < NEARLY_CONSTANT:
        return None
    return float(2.0 ** np.round(np.log2(found)))
