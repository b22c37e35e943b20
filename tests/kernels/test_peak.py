"""The heat kernel as a density: closed forms, quadrature, and what is drawn from it."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

import dhsk
from dhsk.kernels.peak import draw_angles, log_peak, log_sphere_area

ROUNDED = 1e-12
"""Logarithms of up to 1e3 are off by 1e-16 of themselves, some of which cancel."""


@pytest.mark.parametrize("time", [1e-6, 1e-3, 0.05, 0.7, 5.0, 100.0])
def test_closed_forms(time: float) -> None:
    """On the circle and on S^3, sums over all ways around; at a long time, 1 over the area."""
    turns = 2 * np.pi * np.arange(-30, 31)
    images = np.exp(-(turns**2) / (4 * time)) / math.sqrt(4 * math.pi * time)
    if time < 50:
        circle = math.log(images.sum())
        # exp(t)/(4πt)^(3/2) Σ (a + 2πk)/sin a exp(-(a + 2πk)²/4t) as the angle a tends to 0
        slopes = (1 - turns**2 / (2 * time)) * np.exp(-(turns**2) / (4 * time))
        three = time - 1.5 * math.log(4 * math.pi * time) + math.log(slopes.sum())
        assert log_peak(2, time) == pytest.approx(circle, abs=ROUNDED)
        if time < 10:
            assert log_peak(4, time) == pytest.approx(three, abs=1e-9)  # the slopes cancel
    if time == 100.0:
        assert log_peak(7, time) == pytest.approx(-log_sphere_area(7), abs=ROUNDED)


def test_areas() -> None:
    """Of the circle, the sphere, and S^3."""
    areas = [2 * math.pi, 4 * math.pi, 2 * math.pi**2]
    assert np.exp([log_sphere_area(n) for n in (2, 3, 4)]) == pytest.approx(areas, rel=1e-14)


@pytest.mark.parametrize("scale", [0.2, 1.0])
@pytest.mark.parametrize("dim", [2, 3, 5, 40, 700])
def test_it_integrates_to_one(dim: int, scale: float) -> None:
    """By quadrature over the angle."""
    kernel = dhsk.HeatKernel.at_scale(dim, scale)
    peak = log_peak(dim, kernel.time) + (log_sphere_area(dim - 1) if dim > 2 else math.log(2))

    def density(angle: float) -> float:
        around = (dim - 2) * math.log(math.sin(angle)) if dim > 2 else 0.0
        return float(kernel.of_cosine([math.cos(angle)])[0]) * math.exp(peak + around)

    width = math.sqrt(2 * kernel.time)
    middle = min(width * math.sqrt(dim), math.pi / 2)
    points = np.clip([middle - 4 * width, middle, middle + 4 * width], 0.01, 3.1)
    total, _ = quad(density, 1e-12, math.pi - 1e-12, points=points, limit=400)
    assert total == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("dim", "scale"), [(2, 0.5), (3, 1e-4), (3, 2.0), (50, 0.5), (700, 1.0)])
def test_angles_are_drawn_from_it(dim: int, scale: float) -> None:
    """By the test of Kolmogorov and Smirnov, on 20,000 angles, against quadrature."""
    kernel = dhsk.HeatKernel.at_scale(dim, scale)
    drawn = draw_angles(kernel, 20_000, np.random.default_rng(0))
    angles = np.linspace(0, min(2 * drawn.max(), math.pi), 200_001)
    density = kernel.of_cosine(np.cos(angles)) * np.sin(angles) ** (dim - 2)
    below = np.cumsum(density) / density.sum()
    assert kstest(drawn, lambda a: np.interp(a, angles, below)).pvalue > 1e-3
    # The mean cosine of a walk is exp(-(n - 1) t).
    expected = math.exp(-(dim - 1) * kernel.time)
    assert np.cos(drawn).mean() == pytest.approx(expected, abs=5 * np.cos(drawn).std() / 141)


def test_short_times_are_von_mises_fishers() -> None:
    """Of concentration 1/2t, but for a term of the order of t."""
    time, dim = 1e-4, 6
    kappa = 1 / (2 * time)
    kernel = dhsk.HeatKernel(dim, time)
    angles = np.array([0.01, 0.02, 0.03])
    exact = np.log(kernel.of_cosine(np.cos(angles)))
    assert exact == pytest.approx(kappa * (np.cos(angles) - 1), rel=dim * 1e-4)
    normal = -(dim - 1) / 2 * math.log(4 * math.pi * time)
    assert log_peak(dim, time) == pytest.approx(normal, abs=dim**2 * time)
