"""Losses of linear classifiers: their values, slopes and curvatures by the margin."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit


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


LOSSES: Final[dict[str, Loss]] = {loss.name: loss for loss in (SquaredHinge(), Logistic())}
"""By their names."""
