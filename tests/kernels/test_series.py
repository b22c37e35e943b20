"""The heat series: its weights, its proven tail and its sum."""

import math
import re

import mpmath as mp
import numpy as np
import pytest

from dhsk import errors
from dhsk.kernels.base import STRIP
from dhsk.kernels.series import MAX_LEVELS, TAIL_TOLERANCE, evaluate_series, series_weights

EPS = np.finfo(np.float64).eps

CASES = [(2, 1.0), (2, 0.01), (3, 0.3), (4, 1.0), (64, 0.7), (393, 1.0), (393, 0.25), (10_000, 0.3)]


def sweet_spot(dim: int, scale: float) -> float:
    """Time t = s log(n)/n."""
    return scale * math.log(dim) / dim


@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_weights_equal_the_definition(dim, scale, oracle_weights):
    """Weights agree with the definition in 50 digits, to the rounding of the summed logs."""
    time = sweet_spot(dim, scale)
    exact = oracle_weights(dim, time)
    weights = series_weights(dim, time).weights
    # A log ratio is a difference of numbers up to log(dim), with an error of eps each. These add
    # up as a random walk over the levels from the peak to the bulk of the weights.
    levels = np.arange(weights.size)
    deviation = math.sqrt(weights @ (levels - weights @ levels) ** 2)
    tolerance = EPS * (2 + math.sqrt(deviation) * math.log(dim))
    error = math.fsum(abs(float(mp.mpf(a) - b)) for a, b in zip(weights, exact, strict=False))
    assert error < tolerance


@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_weights_are_a_convex_combination(dim, scale):
    """Weights are not negative and sum to 1."""
    weights = series_weights(dim, sweet_spot(dim, scale)).weights
    assert (weights >= 0).all()
    assert abs(math.fsum(weights) - 1) <= 2 * EPS


@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_tail_bound_holds_and_is_small(dim, scale, oracle_weights):
    """The true tail lies below the bound, and the bound below the tolerance."""
    time = sweet_spot(dim, scale)
    series = series_weights(dim, time)
    tail = float(mp.fsum(oracle_weights(dim, time)[len(series.weights) :]))
    rounding = 1e-10  # relative, of the last weight: logs down to -42, summed
    assert 0 < tail <= series.tail_bound * (1 + rounding)
    assert series.tail_bound <= TAIL_TOLERANCE


@pytest.mark.parametrize(
    ("dim", "half", "quarter"), [(400, 56, 131), (1000, 78, 221), (10_000, 184, 977)]
)
def test_number_of_levels_matches_an_independent_count(dim, half, quarter):
    """The series stops where the weights fall below 1e-18 of the peak, give or take 4 %."""
    assert 18 <= series_weights(dim, sweet_spot(dim, 1.0)).weights.size <= 20
    assert series_weights(dim, sweet_spot(dim, 0.5)).weights.size == pytest.approx(half, rel=0.04)
    assert series_weights(dim, sweet_spot(dim, 0.25)).weights.size == pytest.approx(
        quarter, rel=0.04
    )


def test_large_dimension_gives_poisson_weights():
    """For large dim at the sweet spot the weights are Poisson with mean 1, up to O(time)."""
    dim = 10**8
    time = sweet_spot(dim, 1.0)
    weights = series_weights(dim, time).weights
    poisson = np.array([math.exp(-1) / math.factorial(level) for level in range(weights.size)])
    # log a_l/poisson = -l(l-1)t + O(l²/n), and E[l²] = 2.
    assert np.abs(weights - poisson).sum() < 4 * time


def test_huge_dimension_needs_few_levels():
    """The level bound does not refuse a dimension of 1e12 at the sweet spot."""
    assert series_weights(10**12, sweet_spot(10**12, 1.0)).weights.size <= 20


@pytest.mark.parametrize("time", [60.0, 1e300, 1e308])
@pytest.mark.parametrize("dim", [2, 3, 1000])
def test_long_times_leave_the_constant(dim, time):
    """At long times only level 0 has weight."""
    assert series_weights(dim, time).weights.tolist() == pytest.approx([1.0, 0.0], abs=1e-25)


@pytest.mark.parametrize(("dim", "time"), [(2, 1e-12), (393, 1e-10), (10**6, 1e-12), (3, 5e-324)])
def test_too_small_a_time_is_refused_with_a_time_that_fits(dim, time):
    """Beyond the cap on levels the error names a time, and that time works."""
    with pytest.raises(errors.AccuracyError, match=r"levels, and at most 1e\+06") as caught:
        series_weights(dim, time)
    found = re.search(r"use a time of (\S+) or more", str(caught.value))
    assert found is not None
    enough = float(found[1])
    assert enough > time
    assert series_weights(dim, enough).weights.size <= MAX_LEVELS
    with pytest.raises(errors.AccuracyError, match="levels"):
        series_weights(dim, enough * 0.97)


def test_sum_on_the_circle_is_a_cosine_series():
    """At dim 2 the polynomials are cos(l theta)."""
    weights = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    theta = np.linspace(0, math.pi, 101)
    out = np.empty_like(theta)
    evaluate_series(weights, 2, np.cos(theta), out)
    expected = sum(a * np.cos(level * theta) for level, a in enumerate(weights))
    np.testing.assert_allclose(out, expected, rtol=0, atol=EPS * len(weights) ** 2)


@pytest.mark.parametrize("dim", [3, 4, 20])
def test_polynomials_are_scipys_gegenbauer(dim):
    """Each P_l is the Gegenbauer polynomial divided by its value at 1."""
    from scipy.special import eval_gegenbauer

    cosines = np.linspace(-1, 1, 41)
    for level in range(8):
        weights = np.zeros(9)
        weights[level] = 1.0
        out = np.empty_like(cosines)
        evaluate_series(weights, dim, cosines, out)
        order = (dim - 2) / 2
        expected = eval_gegenbauer(level, order, cosines) / eval_gegenbauer(level, order, 1.0)
        np.testing.assert_allclose(out, expected, rtol=0, atol=50 * EPS)


def test_polynomials_become_powers_in_large_dimension():
    """P_l(c) tends to c^l, with a difference below l²/dim."""
    dim, level = 10**7, 6
    weights = np.zeros(level + 1)
    weights[level] = 1.0
    cosines = np.linspace(-1, 1, 41)
    out = np.empty_like(cosines)
    evaluate_series(weights, dim, cosines, out)
    np.testing.assert_allclose(out, cosines**level, rtol=0, atol=level**2 / dim)


def test_sum_is_the_same_in_strips_and_in_place():
    """Neither the partition into strips nor writing over the input changes a bit."""
    weights = series_weights(393, sweet_spot(393, 1.0)).weights
    cosines = np.random.default_rng(1).uniform(-1, 1, 2 * STRIP + 100)
    whole, parts = np.empty_like(cosines), np.empty_like(cosines)
    evaluate_series(weights, 393, cosines, whole)
    for start in range(0, cosines.size, 1000):
        part = slice(start, start + 1000)
        evaluate_series(weights, 393, cosines[part], parts[part])
    evaluate_series(weights, 393, cosines, cosines)
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(cosines, whole)
