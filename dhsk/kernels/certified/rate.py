"""The rate of the heat kernel, R in dK/dt = K (1-c) R: polynomials of it, with proven errors.

Theorem. For every dim n >= 2 and time t > 0, with K(1) = 1 at every time,

    R(c) = (d log K/dt)/(1-c) = α + Σ_j μ_j/(c - z_j),      α >= 0, μ_j >= 0,

z_j the zeros of K, which are below -1 (see `exponent`). So R is positive and falls with c, as do
all (-1)^m R^(m)(c)/m! <= R(c) x^-m, x a lower bound of c - z_1: all that bounding interpolation
needs. K grows with time at every c < 1: no derivative is negative. And K R grows with c.

Proof. Take K_N = Π_j (c - z_j)/(1 - z_j), the polynomials exp(tΔ)(1+c)^N, divided by their values
at 1, which tend to K (see `exponent`), and their t-derivatives to K's. By the rule for products,

    d log K_N/dt = (1-c) Σ_j (-dz_j/dt)/((1 - z_j)(c - z_j)),

so it is enough that no zero ever moves to the right: then the sum has the form of R, and what
limits of such sums have, as R has no poles but the zeros of K, is that form. (α is what comes from
zeros that move to -∞.)

With z_j = -cosh x_j, the equation of the zeros is

    dx_j/dt = (n-1) coth x_j + Σ_{k≠j} 2 sinh x_j/(cosh x_j - cosh x_k) = F_j(x),

where 2 sinh x_j/(cosh x_j - cosh x_k) = coth((x_j - x_k)/2) + coth((x_j + x_k)/2). It rises with
x_k, k ≠ j, for its derivative is half of 1/sinh²((x_j - x_k)/2) - 1/sinh²((x_j + x_k)/2) > 0. Such
systems keep order (Kamke 1932): of two solutions with 0 < x_1 < ... < x_N, if one is at or above
the other in all x_j at one time, it is so at all later ones. Let X(t, ε) be the solution from some
ε, 0 < ε_1 < ... < ε_N. At a time s it has X(s, ε) > 0, which all small δ are below, so
X(t, δ) <= X(t + s, ε). As δ -> 0, and then ε -> 0, both tend to the zeros that begin at x = 0,
those of exp(tΔ)(1+c)^N, since zeros are continuous in the coefficients: X(t) <= X(t + s), and
cosh x_j = -z_j never falls.

As K has the form Π_j (c - z_j)/(1 - z_j), each K/(c - z_j) grows with c on [-1, 1], and so K R.
"""

from dataclasses import replace
from typing import Final

from flint import arb

from dhsk.kernels.certified.exponent import (
    ONE,
    Exponent,
    Local,
    Piece,
    interpolated,
    with_nodes,
)
from dhsk.kernels.certified.series import HeatSeries, derivative_series

_FEW_LEVELS: Final = 300
_NODES: Final = 56  # interpolation in balls loses 2.4 bits a node, and with 100 all that there are


def heat_rate(exponent: Exponent) -> tuple[Local, ...]:
    """Interpolate R on the pieces of the exponent.

    Call under `ctx.workprec(WORK_BITS)`. The nodes are those of the exponent, and the remainder is
    below 2^-56 of R. Where levels are few, so the poles of R far apart, there are more nodes: one
    more coefficient of P/Q may then take the error from above rounding to below that remainder,
    where there is nothing left to fit.
    """
    few = len(exponent.series.weights) <= _FEW_LEVELS
    pieces = [
        with_nodes(exponent.series, piece, _NODES) if few and len(piece.nodes) < _NODES else piece
        for piece in exponent.pieces
    ]
    series = derivative_series(exponent.series)
    return tuple(_local(series, piece) for piece in pieces)


def _local(series: HeatSeries, piece: Piece) -> Local:
    values = tuple(
        _rate(series, node, h) for node, h in zip(piece.nodes, piece.values, strict=True)
    )
    # R(a)/R(b) <= max_j (b - z_j)/(a - z_j), for the first node b and the left end a.
    first = min(range(len(values)), key=piece.nodes.__getitem__)
    reach = arb(piece.nodes[first] - piece.left) / ONE
    largest = values[first] * (1 + reach / arb(piece.distance))
    derivative = largest / arb(piece.distance) ** len(values)
    return interpolated(replace(piece, values=values), values, derivative)


def _rate(series: HeatSeries, node: int, h: arb) -> arb:
    """R = (dK/dt)/(K (1-c)), where K = 2^(-(1-c) h)."""
    d = arb(ONE - node) / ONE
    return series.value(node) * (d * h * arb.const_log2()).exp() / d


def flat_rate(dim: int, time: float) -> arb:
    """Give R = (n-1) q, q = n exp(-(n-1)t) = a_1/a_0, where 1 - K is at most 2^-60, so q < 2^-60.

    It is the same at all cosines, to 2^-54 of itself: dK/dt = Σ a_l (λ_l - m) (1 - P_l),
    λ_l = l(l+n-2), as the weights sum to 0, with 0 <= 1 - P_l <= λ_l/(n-1) (1 - c). With
    a_l <= q^(l-1) a_1 and λ_l/(n-1) <= l², the levels from 2 on add at most
    Σ_{l>=2} l^4 q^(l-1) <= 17 q of the first, m is at most 1.1 (n-1) q, and a_1 = q a_0 is at
    least q (1-2q).
    """
    return dim * (dim - 1) * (arb(time) * (1 - dim)).exp()
