"""The heat series in whole numbers: its weights, its proven tail and its sum."""

import math
import re

import mpmath as mp
import numpy as np
import pytest
from flint import ctx
from scipy.special import eval_gegenbauer

from dhsk import errors
from dhsk.kernels.certified.series import (
    MAX_LEVELS,
    POINT_BITS,
    HeatSeries,
    heat_series,
    level_bound,
    refuse_too_many_levels,
)

BITS = 120  # the oracle has 50 digits, 166 bits
ONE = 1 << POINT_BITS

CASES = [(2, 1.0), (2, 0.01), (3, 0.3), (4, 1.0), (64, 0.7), (393, 1.0), (393, 0.25), (10_000, 0.3)]


def sweet_spot(dim: int, scale: float) -> float:
    """Time t = s log(n)/n."""
    return scale * math.log(dim) / dim


def single_level(dim: int, level: int) -> HeatSeries:
    """Series that is one polynomial P_l, to 100 bits."""
    return HeatSeries(dim, 1.0, 100, (*([0] * level), 1 << 100, 0))


@pytest.mark.slow(beyond=7)
@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_weights_equal_the_definition(dim, scale, oracle_weights):
    """Each weight is the exact one in units of 2^-120, to one unit."""
    time = sweet_spot(dim, scale)
    series = heat_series(dim, time, BITS)
    with mp.workdps(60):
        exact = [a * mp.mpf(2) ** BITS for a in oracle_weights(dim, time)]
        pairs = zip(series.weights, exact, strict=False)
        assert max(abs(a - b) for a, b in pairs) <= 1
        assert mp.fsum(exact[len(series.weights) :]) <= 1


@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_weights_are_a_convex_combination(dim, scale):
    """Weights are not negative and sum to 1, to a unit each and one for the tail."""
    weights = heat_series(dim, sweet_spot(dim, scale), BITS).weights
    assert min(weights) >= 0
    assert abs(sum(weights) - 2**BITS) <= len(weights) + 1


@pytest.mark.parametrize(
    ("dim", "half", "quarter"), [(400, 56, 131), (1000, 78, 221), (10_000, 184, 977)]
)
def test_number_of_levels_matches_an_independent_count(dim, half, quarter):
    """At 60 bits the series stops where weights fall below 1e-18 of the peak, give or take 4 %."""

    def levels(scale: float) -> int:
        return len(heat_series(dim, sweet_spot(dim, scale), 60).weights)

    assert 18 <= levels(1.0) <= 20
    assert levels(0.5) == pytest.approx(half, rel=0.04)
    assert levels(0.25) == pytest.approx(quarter, rel=0.04)


@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_level_bound_is_above_the_levels_and_near_them(dim, scale):
    """The bound that is known beforehand is never below, and at most four times as many."""
    time = sweet_spot(dim, scale)
    levels = len(heat_series(dim, time, BITS).weights)
    assert levels - 1 <= level_bound(dim, time, BITS) <= 4 * levels


def test_large_dimension_gives_poisson_weights():
    """For large dim at the sweet spot the weights are Poisson with mean 1, up to O(time)."""
    dim = 10**8
    time = sweet_spot(dim, 1.0)
    weights = np.array(heat_series(dim, time, BITS).weights, dtype=float) / 2.0**BITS
    poisson = np.array([math.exp(-1) / math.factorial(level) for level in range(weights.size)])
    # log a_l/poisson = -l(l-1)t + O(l²/n), and E[l²] = 2.
    assert np.abs(weights - poisson).sum() < 4 * time


@pytest.mark.parametrize("time", [60.0, 1e300, 1e308])
@pytest.mark.parametrize("dim", [2, 3, 1000])
def test_long_times_leave_the_constant(dim, time):
    """At long times level 0 has all the weight that 80 bits see."""
    weights = heat_series(dim, time, 80).weights
    assert 2**80 - weights[0] <= 1


@pytest.mark.parametrize(("dim", "time"), [(2, 1e-12), (393, 1e-10), (10**6, 1e-12), (3, 5e-324)])
def test_too_small_a_time_is_refused_with_a_time_that_fits(dim, time):
    """Beyond the cap on levels the error names a time, and that time works."""
    with pytest.raises(errors.AccuracyError, match=r"levels, and at most 1\.5e\+05") as caught:
        heat_series(dim, time, BITS)
    found = re.search(r"use a time of (\S+) or more", str(caught.value))
    assert found is not None
    enough = float(found[1])
    assert enough > time
    assert level_bound(dim, enough, BITS) <= MAX_LEVELS
    with pytest.raises(errors.AccuracyError, match="levels"):
        refuse_too_many_levels(dim, enough * 0.97, BITS)


@pytest.mark.slow(beyond=7)
@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_ball_holds_the_exact_value(dim, scale, oracle):
    """The exact sum lies within the stated radius, at both ends and between."""
    time = sweet_spot(dim, scale)
    series = heat_series(dim, time, BITS)
    points = [-ONE, -ONE // 3, 0, ONE // 5 * 4, ONE - 1, ONE]
    exact = oracle(dim, time, [point / ONE for point in points])
    with mp.workdps(60):
        for point, value in zip(points, exact, strict=True):
            error = abs(series.sum(point) - value * mp.mpf(2) ** BITS)
            assert error <= series.error_units
    with ctx.workprec(200):
        assert float((series.value(ONE) - 1).abs_upper()) < 2.0 ** (20 - BITS)


@pytest.mark.parametrize("dim", [3, 4, 20])
def test_polynomials_are_scipys_gegenbauer(dim):
    """Each P_l is the Gegenbauer polynomial divided by its value at 1."""
    cosines = np.linspace(-1, 1, 41)
    order = (dim - 2) / 2
    for level in range(8):
        series = single_level(dim, level)
        sums = [series.sum(round(c * ONE)) / 2**100 for c in cosines]
        expected = eval_gegenbauer(level, order, cosines) / eval_gegenbauer(level, order, 1.0)
        np.testing.assert_allclose(sums, expected, rtol=0, atol=1e-14)  # scipy's rounding


def test_polynomials_on_the_circle_are_cosines():
    """In dimension 2, P_l(cos θ) = cos l θ."""
    theta = np.linspace(0, math.pi, 30)
    for level in (1, 2, 7):
        sums = [single_level(2, level).sum(round(math.cos(x) * ONE)) / 2**100 for x in theta]
        np.testing.assert_allclose(sums, np.cos(level * theta), rtol=0, atol=1e-14)


def test_polynomials_become_powers_in_large_dimension():
    """P_l(c) tends to c^l, with a difference below l²/dim."""
    dim, level = 10**7, 6
    for c in np.linspace(-1, 1, 41):
        value = single_level(dim, level).sum(round(c * ONE)) / 2**100
        assert abs(value - c**level) < level**2 / dim
