"""The heat kernel as a density: its value at equal points, and angles that are drawn from it."""

import math
from typing import Any, Final

import numpy as np
from scipy.special import gammaln, logsumexp

from dhsk.arrays import Floats
from dhsk.kernels.certified.form import LOWEST
from dhsk.kernels.heat import HeatKernel

_NEGLIGIBLE: Final = 45.0
"""Logarithm of the ratio of two terms, or densities, below which one is left out: 1e-20."""

LEAST: Final = 1e10 * LOWEST
"""Sums of kernel values below this share of the peak are not known to ten digits."""

_ANGLES: Final = 4096
"""Angles of the table that is inverted, over all that have a density."""


def log_sphere_area(dim: int) -> float:
    """Logarithm of the area of the unit sphere in so many dimensions."""
    return math.log(2) + dim / 2 * math.log(math.pi) - float(gammaln(dim / 2))


def log_peak(dim: int, time: float) -> float:
    """Logarithm of the heat kernel on the sphere at equal points, by the area of the sphere.

    It is the sum over all levels l of exp(-l(l + dim - 2) t) and the number of harmonics of the
    level, divided by the area; `HeatKernel` is the kernel divided by this. All terms are positive,
    and their logarithms are off by rounding: 1e-15 times their size.

    Parameters
    ----------
    dim
        Dimension n of the space around the sphere, at least 2.
    time
        Diffusion time.

    References
    ----------
    C. Zhao and J. S. Song, "Exact heat kernel on a hypersphere and its applications in kernel SVM"
    (2017), equation 3.
    """
    most = 64
    while True:
        level = np.arange(1.0, most + 1)
        harmonics = (
            np.log(2 * level + dim - 2)
            + gammaln(level + dim - 2)
            - gammaln(level + 1)
            - gammaln(dim - 1)
        )
        terms = harmonics - level * (level + dim - 2) * time
        highest = max(0.0, float(terms.max()))
        if terms[-1] < min(highest - _NEGLIGIBLE, terms[-2]):
            return float(logsumexp(np.append(terms, 0.0))) - log_sphere_area(dim)
        most *= 2


def log_density(sums: Floats, kernel: HeatKernel) -> Floats:
    """Logarithms of sums of kernel values as densities; -inf below `LEAST` of the peak."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.where(sums < LEAST, 0.0, sums))
    return logs + log_peak(kernel.dim, kernel.time)


def draw_angles(kernel: HeatKernel, count: int, rng: np.random.Generator) -> Floats:
    """Angles between a point and where a walk from it is after the time of the kernel, (count,).

    Their density is the kernel times sin(angle)^(dim - 2).
    """
    angles = np.linspace(0.0, np.pi, _ANGLES)
    for _ in range(3):  # each time on the part that has a density
        logs = _log_density(kernel, angles)
        inside = np.flatnonzero(logs > logs.max() - _NEGLIGIBLE)
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, _ANGLES - 1)
        angles = np.linspace(angles[first], angles[last], _ANGLES)
    logs = _log_density(kernel, angles)
    density = np.exp(logs - logs.max())
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return np.interp(rng.random(count), below / below[-1], angles)


def _log_density(kernel: HeatKernel, angles: Floats) -> Any:
    with np.errstate(divide="ignore"):
        log_kernel = np.log(kernel.of_cosine(np.cos(angles)))
        return log_kernel + (kernel.dim - 2) * np.log(np.sin(np.clip(angles, 1e-300, np.pi)))
