"""Losses of linear classifiers, with first and second derivatives by the margin."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dhsk.arrays import Floats
from dhsk.devices import is_numpys
from dhsk.errors import InputError

Margins: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Loss:
    """A convex, once differentiable function of the margin m = y f(x)."""

    value: Callable[[Margins], Margins]
    """Loss."""
    slope: Callable[[Margins], Margins]
    """First derivative by the margin."""
    curvature: Callable[[Margins], Margins]
    """Second derivative by the margin; a one-sided one where it jumps."""


def _hinge(margin: Margins) -> Any:
    return np.square(np.maximum(1 - margin, 0))


def _hinge_slope(margin: Margins) -> Any:
    return np.minimum(margin - 1, 0) * 2


def _hinge_curvature(margin: Margins) -> Any:
    return (margin < 1) * margin.dtype.type(2)


def _logistic(margin: Margins) -> Any:
    return np.logaddexp(margin.dtype.type(0), -margin)


def _logistic_slope(margin: Margins) -> Any:
    return -_expit(-margin)


def _logistic_curvature(margin: Margins) -> Any:
    return _expit(margin) * _expit(-margin)


def _expit(x: NDArray[Any]) -> Any:
    """1 / (1 + exp(-x)), by scipy for arrays of numpy, and by what all devices have."""
    return expit(x) if is_numpys(x) else np.exp(-np.logaddexp(x.dtype.type(0), -x))


LOSSES: Final = {
    "squared_hinge": Loss(_hinge, _hinge_slope, _hinge_curvature),
    "logistic": Loss(_logistic, _logistic_slope, _logistic_curvature),
}
"""max(0, 1 - m)^2, the default of `LinearSVC`, and log(1 + exp(-m)), of `LogisticRegression`."""


LEAST_FACTOR: Final = 1e-30
MOST_FACTOR: Final = 1e30
"""Range of C times a sample weight, in which products of two factors, squared gradients and
objectives stay in the range of float64, and the factors in that of float32 features."""


def check_factors(values_of_C: Iterable[float], weights: Floats) -> None:
    """Raise InputError if C times a positive weight is outside LEAST_FACTOR to MOST_FACTOR."""
    least, most = weights.min(where=weights > 0, initial=np.inf), weights.max()
    for C in values_of_C:
        for weight in (least, most):
            if not LEAST_FACTOR <= C * float(weight) <= MOST_FACTOR:
                times = "" if weight == 1 else f" times the weight {weight:g}"
                raise InputError(
                    f"C={C:g}{times} is outside of {LEAST_FACTOR:g} to {MOST_FACTOR:g}, where "
                    "low-rank losses can be summed: choose C between 1e-6 and 1e6, for example"
                )
