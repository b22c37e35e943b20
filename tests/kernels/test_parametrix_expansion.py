"""The parametrix expansion against its recursion, the exact kernel, and its own limits."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhsk import errors
from dhsk.kernels import HeatKernel, ParametrixKernel, kernel_from_spec

EPS = np.finfo(np.float64).eps
DIGITS = 40


def by_recursion(dim: int, time: float, order: int, c: float) -> mp.mpf:
    """Values of the expansion from the integrals that define u_1 and u_2, unscaled."""
    with mp.workdps(DIGITS):
        b, t, theta = mp.mpf(dim - 2) / 2, mp.mpf(time), mp.acos(mp.mpf(c))

        def potential(s: mp.mpf) -> mp.mpf:
            return b**2 + b * (b - 1) * (1 / s**2 - 1 / mp.sin(s) ** 2)

        def v1(s: mp.mpf) -> mp.mpf:
            return b**2 + b * (b - 1) * (s * mp.cot(s) - 1) / s**2

        def integrand(s: mp.mpf) -> mp.mpf:
            slopes = mp.diff(v1, s, 2) + 2 * b / s * mp.diff(v1, s)
            return s * (slopes + potential(s) * v1(s))

        total = mp.mpf(1)
        if order >= 1:
            total += t * mp.quad(potential, [0, theta]) / theta
        if order >= 2:
            total += t**2 * mp.quad(integrand, [0, theta]) / theta**2
        return mp.exp(-(theta**2) / (4 * t)) * (theta / mp.sin(theta)) ** b * total


def at_source(dim: int, time: float, order: int) -> mp.mpf:
    """Value at θ = 0: v_1 = b² - b(b-1)/3 and v_2 = v_1²/2 - b(b-1)(2b+1)/45 there."""
    with mp.workdps(DIGITS):
        b, t = mp.mpf(dim - 2) / 2, mp.mpf(time)
        v1 = b**2 - b * (b - 1) / 3
        v2 = v1**2 / 2 - b * (b - 1) * (2 * b + 1) / 45
        return mp.fsum([1, t * v1, t**2 * v2][: order + 1])


@pytest.mark.slow(beyond=9)
@pytest.mark.parametrize("dim", [2, 3, 6, 100])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_expansion_is_the_one_of_the_recursion(dim, order):
    """The closed forms agree with the integrals to 40 digits, to a relative 1e-12."""
    time = 0.3 * math.log(dim) / dim
    kernel = ParametrixKernel(time, order, dim)
    for c in (0.8, -0.9):
        expected = by_recursion(dim, time, order, c) / at_source(dim, time, order)
        assert abs(kernel.of_cosine(c) / expected - 1) < 1e-12


@pytest.mark.parametrize("dim", [3, 10, 393, 10_000])
def test_expansion_keeps_its_digits_near_the_source(dim):
    """Where θ is small the closed forms cancel in floating point and the values do not."""
    time = math.log(dim) / dim
    kernel = ParametrixKernel(time, 2, dim)
    for c in [1 - EPS / 2, 1 - 1e-15, 1 - 1e-12, 1 - 1e-9, 1 - 1e-6, 1 - 1e-3, 1 - 1e-2]:
        with mp.workdps(3 * DIGITS):  # the formulas as they stand lose 48 digits at the first c
            b, t, theta = mp.mpf(dim - 2) / 2, mp.mpf(time), mp.acos(mp.mpf(c))
            x, squares = theta**2, theta * mp.cot(theta)
            g = (squares - 1) / x
            slope = (2 / x - 1 / mp.sin(theta) ** 2 - squares / x) / x  # g'/θ
            v1 = b**2 + b * (b - 1) * g
            v2 = v1**2 / 2 + b * (b - 1) * (slope + (2 * b - 1) * (g + mp.mpf(1) / 3) / x)
            gauss = mp.exp(-x / (4 * t)) * (theta / mp.sin(theta)) ** b
            expected = gauss * (1 + t * v1 + t**2 * v2) / at_source(dim, time, 2)
        assert abs(kernel.of_cosine(c) / expected - 1) < 1e-12


@pytest.mark.parametrize("dim", [3, 5, 7, 10])
def test_each_order_takes_one_more_power_of_time_off_the_error(dim):
    """Against the exact kernel the relative errors fall like t, t² and t³."""
    cosine = math.cos(1.0)
    for order in (0, 1, 2):
        late, soon = (abs(ratio_to_exact(dim, time, order, cosine) - 1.0) for time in (0.02, 0.01))
        # Half the time, 2^-(order+1) the error; the next term shifts the power by a few per cent.
        assert math.log2(late / soon) == pytest.approx(order + 1, abs=0.2)


def ratio_to_exact(dim: int, time: float, order: int, cosine: float) -> float:
    """Expansion over exact kernel, both without their scale to 1 at the source."""
    expansion = ParametrixKernel(time, order, dim).of_cosine(cosine) * at_source(dim, time, order)
    exact = unscaled(dim, time, cosine)
    return float(expansion / exact)


def unscaled(dim: int, time: float, cosine: float) -> mp.mpf:
    """Exact heat kernel times (4πt)^((n-1)/2), by its series."""
    with mp.workdps(DIGITS):
        area = 2 * mp.pi ** (mp.mpf(dim) / 2) / mp.gamma(mp.mpf(dim) / 2)
        t, half = mp.mpf(time), mp.mpf(dim - 2) / 2
        total = mp.fsum(
            mp.exp(-level * (level + dim - 2) * t)
            * (2 * level + dim - 2)
            / (dim - 2)
            * mp.gegenbauer(level, half, mp.mpf(cosine))
            for level in range(130)  # exp(-0.01 · 130²) < 1e-70
        )
        return total / area * (4 * mp.pi * t) ** (mp.mpf(dim - 1) / 2)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_circle_has_no_further_terms(order):
    """In two dimensions u_0 = 1 and u_1 = u_2 = 0: every order is the Gaussian factor."""
    c = np.linspace(-1, 1, 9)
    np.testing.assert_array_equal(
        ParametrixKernel(0.3, order, 2).of_cosine(c), ParametrixKernel(0.3).of_cosine(c)
    )


@pytest.mark.parametrize("order", [1, 2])
def test_three_sphere_needs_only_the_zeroth_term(order):
    """In four dimensions u_1 = u_0 and u_2 = u_0/2 are constant factors, which the scale takes."""
    c = np.linspace(-0.999, 1, 9)
    np.testing.assert_allclose(
        ParametrixKernel(0.3, order, 4).of_cosine(c),
        ParametrixKernel(0.3, 0, 4).of_cosine(c),
        rtol=8 * EPS,
    )


@pytest.mark.parametrize(
    ("dim", "order", "limit"),
    [(3, 0, np.inf), (3, 2, np.inf), (5, 1, -np.inf), (5, 2, -np.inf), (6, 2, -np.inf),
     (10, 1, -np.inf), (10, 2, np.inf), (2, 2, math.exp(-(math.pi**2) / 0.4))],
)  # fmt: skip
def test_antipode_has_the_limit(dim, order, limit):
    """At c = -1 the value is the limit from nearby: infinite, but on the circle."""
    kernel = ParametrixKernel(0.1, order, dim)
    assert kernel.of_cosine(-1.0) == pytest.approx(limit, rel=100 * EPS)
    assert np.sign(kernel.of_cosine(-1 + EPS)) == np.sign(limit)


@given(
    dim=st.integers(2, 10**6),
    time=st.floats(1e-300, 1e300),
    order=st.sampled_from([0, 1, 2]),
    c=st.floats(-1, 1),
)
def test_no_parameters_give_nan_and_the_source_has_1(dim, time, order, c):
    """Whatever the parameters, values are numbers (infinite at worst), and K(1) = 1."""
    values = ParametrixKernel(time, order, dim).of_cosine([c, 1.0])
    assert not np.isnan(values[0])
    assert values[1] == 1.0


def test_points_near_the_source_may_come_out_hotter():
    """For t > 3/(n-2) the zeroth term increases from θ = 0, as the paper shows."""
    near = math.cos(0.05)
    assert ParametrixKernel(3.3 / 98, 0, 100).of_cosine(near) > 1.0
    assert ParametrixKernel(2.7 / 98, 0, 100).of_cosine(near) < 1.0
    assert HeatKernel(100, 3.3 / 98).of_cosine(near) < 1.0


@pytest.mark.parametrize("exponent", [1e-3, 1.0, 30.0, 700.0])
@pytest.mark.parametrize("c", [1 - EPS / 2, 1 - 1e-12, 0.9, 0.0, -0.9])
def test_squared_angle_keeps_its_digits(c, exponent):
    """The Gaussian factor is right to a few eps of its exponent, also where c is almost 1."""
    with mp.workdps(DIGITS):
        squared_angle = mp.acos(mp.mpf(c)) ** 2
        time = float(squared_angle / (4 * mp.mpf(exponent)))
        expected = mp.exp(-squared_angle / (4 * mp.mpf(time)))
    error = abs(ParametrixKernel(time).of_cosine(c) / expected - 1)
    assert error < 4 * EPS * (1 + exponent)


@pytest.mark.parametrize("c", [0.9, 0.0, -0.9])
def test_values_below_all_floats_are_zero(c):
    """At a time of 1e-13 the exponent is above 5e11, and exp(-746) is no float any more."""
    assert ParametrixKernel(1e-13).of_cosine(c) == 0.0


def test_multinomial_time_is_four_times_that_of_the_unit_sphere():
    """Lafferty and Lebanon's exp(-arccos²(c)/T)."""
    kernel = ParametrixKernel.multinomial(0.8)
    assert kernel == ParametrixKernel(0.2)
    expected = math.exp(-(math.acos(0.3) ** 2) / 0.8)
    assert kernel.of_cosine(0.3) == pytest.approx(expected, rel=4 * EPS)


def test_specs_hold_only_what_was_given():
    """Without an order the description is what it always was; with one it has order and dim."""
    assert ParametrixKernel(0.1).to_spec() == {"name": "parametrix", "time": 0.1}
    assert kernel_from_spec({"name": "parametrix", "time": 0.1}) == ParametrixKernel(0.1)
    full = {"name": "parametrix", "time": 0.1, "order": 2, "dim": 7}
    assert ParametrixKernel(0.1, 2, 7).to_spec() == full
    assert kernel_from_spec(full) == ParametrixKernel(0.1, 2, 7)


def test_scale_and_label_carry_the_order():
    """`at_scale` passes the order on, and labels tell orders apart."""
    kernel = ParametrixKernel.at_scale(393, 1.0, order=2)
    assert (kernel.order, kernel.dim) == (2, 393)
    assert kernel.label == "parametrix t=0.0152 order=2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.1, 1), "order 1 depends on the dimension: give dim"),
        ((0.1, 3, 5), "order must be None, 0, 1 or 2, but it is 3"),
        ((0.1, -1, 5), "order must be a whole number"),
        ((0.1, 1, 1), "dim must be a whole number, at least 2"),
    ],
)
def test_bad_orders_are_refused(arguments, message):
    """An order is None, 0, 1 or 2, and needs a dimension."""
    with pytest.raises(errors.InputError, match=message):
        ParametrixKernel(*arguments)


def test_rows_of_another_dimension_are_refused(unit_rows):
    """An expansion knows its dimension and refuses rows of another."""
    with pytest.raises(errors.InputError, match="dim=40"):
        ParametrixKernel(0.1, 1, 40)(unit_rows(3, 7))
