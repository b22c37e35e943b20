"""Losses of linear classifiers, with first and second derivatives by the margin."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dhsk.arrays import Floats
from dhsk.devices import is_numpys
from dhsk.errors import InputError


class Loss(Protocol):
    """A convex, once differentiable function of the margin m = y f(x)."""

    name: ClassVar[str]

    def value(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Loss."""

    def slope(self, margin: NDArray[Any]) -> NDArray[Any]:
        """First derivative by the margin."""

    def curvature(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Second derivative by the margin; a one-sided one where it jumps."""


@dataclass(frozen=True)
class SquaredHinge:
    """max(0, 1 - m)^2, the default of `LinearSVC`."""

    name: ClassVar[str] = "squared_hinge"

    def value(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Loss."""
        found: NDArray[Any] = np.square(np.maximum(1 - margin, 0))
        return found

    def slope(self, margin: NDArray[Any]) -> NDArray[Any]:
        """First derivative."""
        found: NDArray[Any] = np.minimum(margin - 1, 0) * 2
        return found

    def curvature(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Second derivative."""
        found: NDArray[Any] = (margin < 1) * margin.dtype.type(2)
        return found


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-m)), the loss of `LogisticRegression`."""

    name: ClassVar[str] = "logistic"

    def value(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Loss."""
        found: NDArray[Any] = np.logaddexp(margin.dtype.type(0), -margin)
        return found

    def slope(self, margin: NDArray[Any]) -> NDArray[Any]:
        """First derivative."""
        found: NDArray[Any] = -_expit(-margin)
        return found

    def curvature(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Second derivative."""
        found: NDArray[Any] = _expit(margin) * _expit(-margin)
        return found


def _expit(x: NDArray[Any]) -> NDArray[Any]:
    """1 / (1 + exp(-x)), by scipy for arrays of numpy, and by what all devices have."""
    found = expit(x) if is_numpys(x) else np.exp(-np.logaddexp(x.dtype.type(0), -x))
    return cast(NDArray[Any], found)


LEAST_FACTOR: Final = 1e-30
MOST_FACTOR: Final = 1e30
"""Range of C times a sample weight, in which products of two factors, squared gradients and
objectives stay in the range of float64, and the factors in that of float32 features."""


def check_factors(values_of_C: Iterable[float], weights: Floats) -> None:
    """Raise InputError if C times a positive weight is outside LEAST_FACTOR to MOST_FACTOR."""
    used = weights[weights > 0]
    for C in values_of_C:
        for weight in (used.min(), used.max()):
            if not LEAST_FACTOR <= C * float(weight) <= MOST_FACTOR:
                times = "" if weight == 1 else f" times the weight {weight:g}"
                raise InputError(
                    f"C={C:g}{times} is outside of {LEAST_FACTOR:g} to {MOST_FACTOR:g}, where "
                    "low-rank losses can be summed: choose C between 1e-6 and 1e6, for example"
                )


LOSSES: Final[dict[str, Loss]] = {loss.name: loss for loss in (SquaredHinge(), Logistic())}
"""Losses by name."""
