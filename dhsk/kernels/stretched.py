"""Kernels that are nearly constant, brought to the scale of their differences.

At large times, or widths, all values of a kernel are nearly 1, and what tells samples apart is in
their last digits. A support vector machine with intercept does not change when a constant is added
to its kernel, as its coefficients sum to 0, and C only counts in units of a factor of the kernel:
so 1 - (1 - K)/spread serves it as well as K, and has all its digits where 1 - K has.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Rows
from dhsk.kernels.base import Kernel, positive_parameter
from dhsk.kernels.certified.evaluate import Reals
from dhsk.kernels.euclidean import GaussianKernel
from dhsk.kernels.smoothed import SmoothedKernel
from dhsk.kernels.spherical import SphericalKernel, WrappedKernel

NEARLY_CONSTANT: Final = 0.25
"""Mean of 1 - K below which a kernel is stretched: at 1/4 two binary digits are gained."""

SMALLEST_SPREAD: Final = 1e-280
"""Mean of 1 - K below which a kernel is taken for constant: the range of float64 ends there."""

_RESOLVED: Final = 1e-6  # of a unit: from there on a mean has ten digits of its own


@dataclass(frozen=True)
class StretchedKernel(WrappedKernel, SphericalKernel):
    """A spherical kernel K as 1 - (1 - K)/spread: its differences from 1 at a scale of their own.

    It is 1 on the diagonal and about 0 elsewhere, if `spread` is the mean of 1 - K. It is positive
    semi-definite on coefficients that sum to 0, those of support vector machines with intercept,
    but for spread < 1 not on all.

    Parameters
    ----------
    kernel
        The kernel K.
    spread
        Difference from 1 that becomes 1, above 0.

    Raises
    ------
    InputError
        If spread is not a finite number above 0.
    """

    name: ClassVar[str] = "stretched"

    spread: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "spread", positive_parameter("spread", self.spread))

    @property
    def label(self) -> str:
        """Short human name: the inner kernel's, with the spread."""
        return f"{self.kernel.label} spread={self.spread:.4g}"

    def _evaluate(self, cosines: Floats) -> None:
        self.kernel.apply_less_one(cosines, cosines, 1.0 / self.spread, 1.0)

    def _apply(self, cosines: Reals, out: Reals) -> None:
        self.kernel.apply_less_one(cosines, out, 1.0 / self.spread, 1.0)


@dataclass(frozen=True)
class StretchedGaussianKernel(GaussianKernel):
    """A Gaussian kernel K as 1 - (1 - K)/spread, see `StretchedKernel`.

    Parameters
    ----------
    sigma
        Width of the Gaussian, above 0.
    spread
        Difference from 1 that becomes 1, above 0.

    Raises
    ------
    InputError
        If a parameter is not such a number.
    """

    name: ClassVar[str] = "stretched gaussian"

    spread: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "spread", positive_parameter("spread", self.spread))

    @property
    def label(self) -> str:
        """Short human name with the width and the spread."""
        return f"{super().label} spread={self.spread:.4g}"

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Stretched Gaussians of the distances (a, b); overwrites `product` and returns it."""
        return self.of_product_less_one(product, row_norms2, col_norms2, 1.0 / self.spread, 1.0)


def stretched(kernel: Kernel, spread: float) -> Kernel | None:
    """Give a kernel whose differences from 1 are divided by a spread.

    Parameters
    ----------
    kernel
        Any kernel.
    spread
        Difference from 1 that becomes 1, above 0.

    Returns
    -------
    Kernel or None
        1 - (1 - K)/spread; None for families that do not near 1.
    """
    if isinstance(kernel, SmoothedKernel):
        return SmoothedKernel(StretchedKernel(kernel.kernel, spread), kernel.alpha)
    if isinstance(kernel, GaussianKernel):
        return StretchedGaussianKernel(kernel.sigma, spread)
    return StretchedKernel(kernel, spread) if isinstance(kernel, SphericalKernel) else None


def mean_difference(kernel: Kernel, rows: Rows) -> float | None:
    """Mean of 1 - K over all pairs of some samples, to ten digits however small it is.

    Parameters
    ----------
    kernel
        Any kernel.
    rows
        Checked rows, (n, dim).

    Returns
    -------
    float or None
        The mean, 0 below `SMALLEST_SPREAD`; None for families that do not near 1.
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
    """Power of two near the mean of 1 - K over some samples, where K is nearly constant.

    Parameters
    ----------
    kernel
        Any kernel.
    rows
        Checked rows of some of the samples, (n, dim).

    Returns
    -------
    float or None
        What to stretch the kernel by; None where that gains nothing, or all values are equal.
    """
    found = mean_difference(kernel, rows)
    if found is None or not 0.0 < found < NEARLY_CONSTANT:
        return None
    return float(2.0 ** np.round(np.log2(found)))
