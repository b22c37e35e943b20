"""The parametrix kernel against its formula and the exact kernel."""

import math

import numpy as np
import pytest

from dhsk import errors
from dhsk.kernels import HeatKernel, ParametrixKernel

EPS = np.finfo(np.float64).eps


def test_values_match_the_formula():
    """Values are exp(-theta²/4t) up to the rounding of the exponent."""
    time = 0.3
    theta = np.linspace(0.01, math.pi, 40)
    computed = ParametrixKernel(time).of_cosine(np.cos(theta))
    # theta from its cosine is off by eps/sin(theta), magnified by theta/(2t) in the exponent
    slope = theta / (2 * time * np.maximum(np.sin(theta), math.sqrt(EPS)))
    expected = np.exp(-(theta**2) / (4 * time))
    assert (np.abs(computed - expected) <= (4 + 2 * slope) * EPS * expected + EPS).all()


@pytest.mark.slow
def test_exact_kernel_is_the_parametrix_times_its_leading_coefficient():
    """At short times K_ext = K_prx (theta/sin theta)^((n-2)/2) (1 + O(t))."""
    theta = np.array([0.1, 0.3, 0.5])
    leading = np.sqrt(theta / np.sin(theta))  # n = 3
    for time in (0.02, 0.01):
        ratio = HeatKernel(3, time).of_cosine(np.cos(theta)) / ParametrixKernel(time).of_cosine(
            np.cos(theta)
        )
        # u1/u0 differs from its value at 0 by less than theta²/10 for these angles
        np.testing.assert_allclose(ratio, leading, rtol=time * 0.5**2 / 10)


def test_source_has_exactly_1_and_values_stay_between_0_and_1():
    """K(1) is 1 to the bit and the range is [0, 1]."""
    values = ParametrixKernel(0.01).of_cosine([1.0, 1 + EPS, 0.5, -1.0, -1 - EPS])
    assert values[:2].tolist() == [1.0, 1.0]
    assert values.min() >= 0.0
    assert values.max() <= 1.0


def test_vanishing_time_is_the_identity():
    """At the smallest float64 time the kernel is 1 at the source and 0 elsewhere."""
    assert ParametrixKernel(5e-324).of_cosine([1.0, 0.5, -1.0]).tolist() == [1.0, 0.0, 0.0]


def test_float32_is_kept():
    """Single precision comes back as single precision."""
    assert ParametrixKernel(0.1).of_cosine(np.float32([0.1, 0.9])).dtype == np.float32


def test_time_scale_is_that_of_the_exact_kernel():
    """`at_scale` takes the same time as the exact kernel does."""
    assert ParametrixKernel.at_scale(393, 0.7).time == HeatKernel.at_scale(393, 0.7).time


@pytest.mark.parametrize("time", [0, -1.0, math.nan, "1"])
def test_bad_time_is_refused(time):
    """A time is a finite number above 0."""
    with pytest.raises(errors.InputError, match="time must be"):
        ParametrixKernel(time)
