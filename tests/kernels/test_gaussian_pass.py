"""Gaussians from products and norms, compiled, against 50 digits."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dhsk.kernels.certified.evaluate import DOUBLE, EXPM1_ERROR, SINGLE
from dhsk.kernels.gaussian_pass import gaussians, gaussians_less_one

TYPES = [(np.float64, DOUBLE, 700.0), (np.float32, SINGLE, 80.0)]
TWICE_VARIANCE = 0.7


def at_distances(squared: Any, less_one: tuple[float, float] | None = None) -> Any:
    """Values at squared distances, which norms give exactly if one row is the origin."""
    values = np.zeros((1, squared.size), squared.dtype)
    norms2 = np.zeros(1, squared.dtype), squared
    if less_one is None:
        gaussians(values, *norms2, TWICE_VARIANCE)
    else:
        gaussians_less_one(values, *norms2, TWICE_VARIANCE, *less_one)
    return values[0]


def distances(number: Any, farthest: float) -> Any:
    """Squared distances down to tiny ones, and their exact exponents."""
    rng = np.random.default_rng(0)
    exponents = np.concatenate([rng.uniform(0, farthest, 300), 10.0 ** rng.uniform(-12, 0, 300)])
    squared = (exponents * TWICE_VARIANCE).astype(number)
    with mp.workdps(50):
        return squared, [mp.mpf(float(d)) / mp.mpf(TWICE_VARIANCE) for d in squared]


@pytest.mark.parametrize(("number", "arithmetic", "farthest"), TYPES)
def test_values_are_within_the_stated_error(number, arithmetic, farthest):
    """Relative error of a power of two, and two roundings of the exponent, given the distance."""
    squared, exponents = distances(number, farthest)
    for found, x in zip(at_distances(squared), exponents, strict=True):
        with mp.workdps(50):
            error = abs(mp.mpf(float(found)) / mp.exp(-x) - 1)
        assert error <= arithmetic.exp2_error + 2.01 * arithmetic.unit * float(x)


@pytest.mark.parametrize(("number", "arithmetic", "farthest"), TYPES[:1])
def test_differences_from_1_do_not_cancel(number, arithmetic, farthest):
    """Relative error of K - 1 itself, however near K is to 1, times a scale that shows it."""
    squared, exponents = distances(number, farthest)
    for found, x in zip(at_distances(squared, (8.0, 0.0)), exponents, strict=True):
        with mp.workdps(50):
            error = abs(mp.mpf(float(found)) / (8 * mp.expm1(-x)) - 1)
        assert error <= EXPM1_ERROR + 3.01 * arithmetic.unit


def test_scale_and_shift_are_applied():
    """The result is scale (K - 1) + shift."""
    squared = np.linspace(0, 5, 40)
    expected = 3.0 * np.expm1(-squared / TWICE_VARIANCE) + 1.5
    np.testing.assert_allclose(at_distances(squared, (3.0, 1.5)), expected, rtol=1e-14)


@pytest.mark.parametrize("number", [np.float64, np.float32])
@pytest.mark.parametrize("less_one", [False, True])
def test_bits_do_not_depend_on_the_place(number, less_one):
    """In blocks, registers and single entries, and from either side."""
    rng = np.random.default_rng(1)
    product = rng.normal(size=(5, 301)).astype(number)
    rows2, columns2 = (rng.uniform(1, 4, n).astype(number) for n in product.shape)

    def run(product: Any, rows2: Any, columns2: Any) -> Any:
        values = np.array(product, order="C")
        if less_one:
            gaussians_less_one(values, rows2, columns2, 2.0, 0.5, 1.0)
        else:
            gaussians(values, rows2, columns2, 2.0)
        return values

    whole = run(product, rows2, columns2)
    assert np.unique(whole).size > 1000
    for width in (1, 2, 7, 9, 63, 65, 200):
        part = run(product[:, -width:], rows2, columns2[-width:])
        np.testing.assert_array_equal(part, whole[:, -width:])
    np.testing.assert_array_equal(run(product.T, columns2, rows2), whole.T)


def test_negative_distances_count_as_0():
    """Rounding may give them; K is 1 then, not more."""
    values = np.full((1, 3), 2.0)
    gaussians(values, np.ones(1), np.ones(3), 1.0)
    assert values.tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize(("number", "lowest"), [(np.float64, 1021), (np.float32, 125)])
def test_values_below_the_range_are_0(number, lowest):
    """Down to a power of two above the smallest normal number, values are right; then 0."""
    halvings = np.array([lowest - 1.0, lowest + 2.0, 3e38], number)
    values = np.zeros((1, 3), number)
    gaussians(values, np.zeros(1, number), halvings * number(np.log(2)), 1.0)
    assert values[0, 0] == pytest.approx(2.0 ** (1 - lowest), rel=1e-4)
    assert values[0, 1:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("number", [np.float64, np.float32])
def test_the_narrowest_width_gives_1_and_0(number):
    """A rate beyond the type is no NaN at distance 0."""
    values = np.zeros((1, 2), number)
    gaussians(values, np.zeros(1, number), np.array([0.0, 1.0], number), 5e-324)
    assert values.tolist() == [[1.0, 0.0]]
