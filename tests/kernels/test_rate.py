"""What the proofs of the derivative rest on: the sign pattern of R, and its series."""

from itertools import pairwise

import mpmath as mp
import pytest
from flint import arb, ctx

from dhsk.kernels import time_at_scale
from dhsk.kernels.certified.exponent import WORK_BITS, heat_exponent
from dhsk.kernels.certified.rate import flat_rate, heat_rate
from dhsk.kernels.certified.series import POINT_BITS, derivative_series, heat_series

ONE = 1 << POINT_BITS

CASES = [(3, 1.0), (100, 0.3), (2, 0.3), (4, 3.0), (393, 1.0), (10_000, 0.5)]


@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_weights_equal_the_definition(dim, scale, oracle_weights):
    """Each weight is a_l (m - l(l+n-2)) in units of 2^-56, to one unit; the rest add nothing."""
    time = time_at_scale(dim, scale)
    series = derivative_series(heat_series(dim, time, 120))
    assert series.bits == 56
    with mp.workdps(60):
        exact = oracle_weights(dim, time)
        eigenvalues = [level * (level + dim - 2) for level in range(len(exact))]
        mean = mp.fsum(a * e for a, e in zip(exact, eigenvalues, strict=True))
        scaled = [a * (mean - e) * 2**56 for a, e in zip(exact, eigenvalues, strict=True)]
        kept = len(series.weights)
        pairs = zip(series.weights, scaled, strict=False)
        assert max(abs(a - b) for a, b in pairs) <= 1
        assert mp.fsum(abs(b) for b in scaled[kept:]) <= 1
    assert abs(sum(series.weights)) <= kept


@pytest.mark.parametrize(("dim", "scale"), [*CASES, (2, 0.05), (3, 5.0), (30, 0.1)])
def test_rate_is_positive_and_its_derivatives_alternate(dim, scale):
    """R is a sum of μ/(c - z) with μ > 0, z < -1: differences of order m have the sign of (-1)^m.

    The numerical side of the theorem in `rate`. Differences are those of the series itself.
    """
    time = time_at_scale(dim, scale)
    series = heat_series(dim, time, 1400)
    derivative = derivative_series(series)
    with ctx.workprec(1400):
        rates = []
        for i in range(33):
            point = -ONE + i * (ONE >> 5) * 2 - (i == 32)
            k = series.value(point)
            if k > arb(2) ** -800:
                rates.append(derivative.value(point) / k / (1 - arb(point) / ONE))
        rates.pop()  # the last step is shorter
        assert len(rates) > 8
        for order in range(min(8, len(rates) - 1)):
            assert all((-1) ** order * r > 0 for r in rates), order
            rates = [b - a for a, b in pairwise(rates)]


@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_interpolated_rate_is_within_its_remainder(dim, scale):
    """Between the nodes the polynomials of R miss the series by less than they say, 2^-56 of R."""
    time = time_at_scale(dim, scale)
    with ctx.workprec(WORK_BITS):
        exponent = heat_exponent(dim, time)
        rates, series = heat_rate(exponent), derivative_series(exponent.series)
        for local in rates:
            piece = local.piece
            for share in (0.0, 0.21, 0.5, 0.83):
                point = piece.left + int(share * (piece.right - piece.left))
                exact = series.value(point) / exponent.series.value(point) / (1 - arb(point) / ONE)
                y = arb(2 * point - piece.left - piece.right) / (piece.right - piece.left)
                miss = abs(local.polynomial(y) - exact)  # a ball, with the polynomial's own
                assert not miss > local.remainder
                assert miss + local.remainder < exact * arb(2) ** -56


@pytest.mark.parametrize("dim", [2, 3, 100])
def test_flat_rate_is_the_first_level(dim):
    """Where 1 - K is about 2^-61, R is (n-1) n exp(-(n-1)t) to 2^-54 of itself."""
    with ctx.workprec(WORK_BITS):
        time = float(((arb(dim) * arb(2) ** 61).log() / (dim - 1)).mid())
        series = heat_series(dim, time, 400)
        derivative = derivative_series(series)
        for point in (-ONE, 0, ONE // 2, ONE - 1):
            d = 1 - arb(point) / ONE
            exact = derivative.value(point) / series.value(point) / d
            assert abs(exact / flat_rate(dim, time) - 1) < arb(2) ** -54
