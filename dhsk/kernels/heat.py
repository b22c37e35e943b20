"""The exact heat kernel on the hypersphere."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final, Self

import numpy as np

from dhsk.arrays import Floats
from dhsk.kernels.base import SphericalKernel, positive_parameter, whole_parameter
from dhsk.kernels.series import SeriesWeights, evaluate_series, series_weights

TIME_SCALES: Final = (0.7, 1.0, 1.4)
"""Scales to try first: around the sweet spot t = log(n)/n of Zhao & Song (2017), section 2.2."""


def time_at_scale(dim: int, time_scale: float) -> float:
    """Diffusion time at a multiple of the sweet spot: t = s log(n)/n.

    Parameters
    ----------
    dim
        Ambient dimension n, at least 2.
    time_scale
        Multiple s, above 0.

    Returns
    -------
    float
        The time t.

    Raises
    ------
    InputError
        If dim is not a whole number of at least 2 or time_scale not a finite number above 0.

    References
    ----------
    Zhao & Song (2017), section 2.2.
    """
    dim = whole_parameter("dim", dim, 2)
    return positive_parameter("time_scale", time_scale) * math.log(dim) / dim


@dataclass(frozen=True)
class HeatKernel(SphericalKernel):
    """Exact heat kernel on the sphere S^{dim-1}, normalised to K(x, x) = 1.

    K(c; t) = Σ_l a_l P_l(c), with P_l the Legendre polynomials of the sphere and weights a_l that
    are positive and sum to 1. The absolute error is about eps (2e-16) times the number of levels;
    values far below that are noise around 0, clipped to [0, 1].

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
        On first use, if the time is so small that the series takes more than a million levels.

    References
    ----------
    Zhao & Song (2017), Theorem 1 and Definition 4.
    """

    name: ClassVar[str] = "heat"

    dim: int
    time: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", whole_parameter("dim", self.dim, 2))
        object.__setattr__(self, "time", positive_parameter("time", self.time))

    def __reduce__(self) -> tuple[type[Self], tuple[int, float]]:
        return type(self), (self.dim, self.time)  # the weights are rebuilt faster than sent

    @classmethod
    def at_scale(cls, dim: int, time_scale: float) -> Self:
        """Kernel at `time_scale` times the sweet spot log(dim)/dim."""
        return cls(dim, time_at_scale(dim, time_scale))

    @property
    def time_scale(self) -> float:
        """The time as a multiple of the sweet spot log(dim)/dim."""
        return self.time * self.dim / math.log(self.dim)

    @property
    def row_length(self) -> int:
        """Number of columns that rows must have."""
        return self.dim

    @property
    def label(self) -> str:
        """Short human name with the time."""
        return f"heat t={self.time:.4g}"

    @property
    def n_levels(self) -> int:
        """Number of levels of the series."""
        return self._series.weights.size

    @cached_property
    def _series(self) -> SeriesWeights:
        return series_weights(self.dim, self.time)

    def _evaluate(self, cosines: Floats) -> None:
        source = cosines >= 1.0
        evaluate_series(self._series.weights, self.dim, cosines, out=cosines)
        np.clip(cosines, 0.0, 1.0, out=cosines)
        cosines[source] = 1.0
