"""Losses of linear classifiers: their values, slopes and curvatures by the margin."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dhsk.arrays import Floats
from dhsk.errors import InputError


class Loss(Protocol):
    """A convex, once differentiable function of the margin m = y f(x)."""

    name: ClassVar[str]

    def value(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Loss."""

    def slope(self, margin: NDArray[Any]) -> NDArray[Any]:
        """First derivative by the margin."""

    def curvature(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Second derivative by the margin; of several where it jumps, one."""


@dataclass(frozen=True)
class SquaredHinge:
    """max(0, 1 - m)^2, as `LinearSVC` has it by default."""

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
    """log(1 + exp(-m)), as in `LogisticRegression`."""

    name: ClassVar[str] = "logistic"

    def value(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Loss."""
        found: NDArray[Any] = np.logaddexp(margin.dtype.type(0), -margin)
        return found

    def slope(self, margin: NDArray[Any]) -> NDArray[Any]:
        """First derivative."""
        found: NDArray[Any] = -expit(-margin)
        return found

    def curvature(self, margin: NDArray[Any]) -> NDArray[Any]:
        """Second derivative."""
        found: NDArray[Any] = expit(margin) * expit(-margin)
        return found


LEAST_FACTOR: Final = 1e-30
MOST_FACTOR: Final = 1e30
"""Factors of losses, C times weights, from and to which products of them, squared gradients and
objectives stay in the range of float64, and the factors themselves in that of float32 features."""


def check_factors(values_of_C: Iterable[float], weights: Floats) -> None:
    """Refuse factors of losses whose sums over- or underflow.

    Parameters
    ----------
    values_of_C
        Values of C.
    weights
        Factors of C by sample; those that are 0 count for nothing.

    Raises
    ------
    InputError
        One is outside of `LEAST_FACTOR` to `MOST_FACTOR`.
    """
    used = weights[weights > 0]
    for C in values_of_C:
        for weight in (used.min(), used.max()):
            if not LEAST_FACTOR <= C * float(weight) <= MOST_FACTOR:
                times = "" if weight == 1 else f" times the weight {weight:g}"
                raise InputError(
                    f"C={C:g}{times} is outside of {LEAST_FACTOR:g} to {MOST_FACTOR:g}, where the "
                    "losses of low rank can be summed: choose C between 1e-6 and 1e6, say"
                )


LOSSES: Final[dict[str, Loss]] = {loss.name: loss for loss in (SquaredHinge(), Logistic())}
"""By their names."""
