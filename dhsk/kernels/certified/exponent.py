"""The exponent of the heat kernel, K(c) = 2^(-(1-c) h(c)): polynomials of h, with proven errors.

Theorem. For every dim >= 2 and time > 0, all zeros of c -> K(c) are real and below -1. So
K(c) = Π_j (c - z_j)/(1 - z_j), K and all its derivatives are positive on [-1, 1], and

    (-1)^{m-1} (log K)^{(m)}(c)/(m-1)! = S_m(c) = Σ_j (c - z_j)^{-m},      m >= 1,

is positive and decreases with c. With x a lower bound of c - z_1, z_1 the zero next to -1,
S_{m+k}(c) <= S_m(c) x^{-k}. As h(c) log 2 is the mean of (log K)' over [c, 1], its m-th derivative
is at most m! S_{m+1}(c)/(m+1) in absolute value: all that bounding interpolation needs.

Proof. Δ = (1-c²) d²/dc² - (n-1) c d/dc is the Laplacian on functions of c. Take a polynomial of
degree N whose zeros z_j are simple and below -1, and let f(t) = exp(tΔ) of it, which is again of
degree N. While the zeros are simple, f(z_j(t), t) = 0 gives

    dz_j/dt = (z_j² - 1) s_j + (n-1) z_j,      s_j = Σ_{k≠j} 2/(z_j - z_k),

so for the discriminant, D = Π_{j<k} (z_j - z_k)²,  d log D/dt = Σ_j s_j dz_j/dt
= Σ_j (z_j² - 1) s_j² + (n-1) N(N-1) >= 0: zeros below -1 never meet, and stay real. None comes to
-1, where df/dt = (n-1) f' has the sign of f. Zeros of (1+c)^N, all at -1, are limits of such, so
by Hurwitz' theorem exp(tΔ)(1+c)^N has zeros in (-∞, -1] alone. Normalised, the coefficients of
(1+c)^N in the P_l tend to those of the point mass at c = 1 as N -> ∞ and never pass them, so these
polynomials tend to K, uniformly on compact sets of the plane; Hurwitz again. K(-1) > 0, and K is of
order 0 (its terms fall like exp(-l² t)), whence Hadamard's product.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from flint import arb, arb_mat, arb_poly

from dhsk.caching import cached_value
from dhsk.kernels.certified import rounded
from dhsk.kernels.certified.series import (
    POINT_BITS,
    HeatSeries,
    heat_series,
    refuse_too_many_levels,
)

ONE: Final = 1 << POINT_BITS
"""The cosine 1 as a point: cosines are whole numbers over 2^52."""

FLOOR_BITS: Final = 290 * math.log2(10.0)
"""-log2 of 1e-290: below that the kernel is not resolved."""

WORK_BITS: Final = 420
"""Precision of the polynomials and of everything made from them."""

REMAINDER: Final = 2.0**-64
"""Error of log K allowed to interpolation; where log K is small, in units of it."""

_ORDER: Final = 6  # of the difference that bounds the distance to the next zero
_STEP: Final = 1 << 20  # between its points: 2^-32
_ALL_BITS: Final = 1000  # up to -log2 K(-1) all of [-1, 1] is resolved: within float64's range
_RELATIVE_BITS: Final = 340  # of K: 6 * 32 lost to the difference, and 128 left
_LN2: Final = math.log(2.0)


@dataclass(frozen=True, eq=False)
class Piece:
    """Values of h at nodes of an interval, and what bounds its derivatives there."""

    left: int
    """Left end, a point."""
    right: int
    nodes: tuple[int, ...]
    values: tuple[arb, ...]
    """h at the nodes."""
    slope: float
    """Upper bound of S_1 on the piece."""
    distance: float
    """Lower bound of c - z_1 on the piece."""

    @cached_value
    def places(self) -> list[arb]:
        """The nodes in [-1, 1] across the piece."""
        half, middle = arb(self.right - self.left) / 2, arb(self.right + self.left) / 2
        return [(node - middle) / half for node in self.nodes]

    @cached_value
    def product_bound(self) -> arb:
        """Upper bound of |Π (c - node)| on the piece."""
        half, roots = arb(self.right - self.left) / 2, arb_poly.from_roots(self.places)
        return arb(largest_value(roots)) * (half / ONE) ** len(self.nodes)


@dataclass(frozen=True, eq=False)
class Exponent:
    """h(c) on all of [-1, 1] where K is above 1e-290."""

    series: HeatSeries
    left: int
    """Point from which h is known: -1, or one where K is at most 1e-290."""
    distance: float
    """Lower bound of the distance from there to the next zero of K."""
    pieces: tuple[Piece, ...]
    """Pieces from `left` to 1, each twice as far from the zeros as the one before."""
    flat: bool = False
    """Whether 1 - K <= 2^-60 everywhere: then K - 1 is a multiple of c - 1, see `flat_exponent`."""

    @property
    def is_small(self) -> bool:
        """Whether K is above 1/e everywhere, so that 1 - K is as small as log K."""
        local = self.pieces[0] if self.pieces else None
        return local is None or (ONE - self.left) / ONE * local.slope < 1.0


@dataclass(frozen=True, eq=False)
class Local:
    """A polynomial in y in [-1, 1] across a piece, and a bound of its distance from h."""

    piece: Piece
    polynomial: arb_poly
    remainder: float

    def part(self, left: int, right: int) -> "Local":
        """Give the same on a part of the piece."""
        whole = self.piece
        scale = arb(right - left) / (whole.right - whole.left)
        shift = arb(right + left - whole.right - whole.left) / (whole.right - whole.left)
        polynomial = self.polynomial(arb_poly([shift, scale]))
        return Local(replace(whole, left=left, right=right), polynomial, self.remainder)


@lru_cache(maxsize=2)  # the kernel and its derivative take the same, one after the other
def heat_exponent(dim: int, time: float) -> Exponent:
    """Compute h by interpolation on pieces, in ball arithmetic.

    Call under `ctx.workprec(WORK_BITS)`. Raises `AccuracyError` if the series takes too many
    levels.
    """
    series = _series_for_everywhere(dim, time)
    if 2 * (2**series.bits - series.weights[0] + series.error_units) < 2 ** (series.bits - 60):
        return Exponent(series, -ONE, 2.0, (), flat=True)
    left = _left_end(series)
    distance, slope = _next_zero(series, left)
    return Exponent(series, left, distance, _pieces(series, left, distance, slope))


def flat_exponent(dim: int, time: float) -> arb:
    """Give h = a_1/(a_0 log 2) where 1 - K is at most 2^-60.

    It is the same at all cosines, to 2^-57 of itself:
    1 - K = Σ a_l (1 - P_l) with 1 - P_l between 0 and P_l'(1) (1 - c), P_l'(1) = l(l+n-2)/(n-1).
    With q = n exp(-(n-1)t) = a_1/a_0 <= 2^-60 and d_l <= n^l, a_l P_l'(1) <= l² q^(l-1) a_1: all
    terms but the first add at most 5 q, and neither a_0 nor 1 - 2^E change it by more than q.
    """
    return dim * (arb(time) * (1 - dim)).exp() / arb.const_log2()


def _series_for_everywhere(dim: int, time: float) -> HeatSeries:
    """Series with `_RELATIVE_BITS` good bits wherever K is above 1e-290."""
    refuse_too_many_levels(dim, time, _ALL_BITS + _RELATIVE_BITS)
    for bits in (128, 448, 1024):
        lowest = heat_series(dim, time, bits).value(-ONE)
        if lowest > arb(2) ** (16 - bits):
            needed = -float(lowest.log().lower()) / _LN2
            break
    else:
        needed = _ALL_BITS
    return heat_series(dim, time, math.ceil(min(needed, _ALL_BITS)) + _RELATIVE_BITS)


def log2_kernel(series: HeatSeries, point: int) -> arb:
    """Ball of log2 K at a point; of no finite radius where the series does not resolve K."""
    ball = series.value(point)
    return ball.log() / arb.const_log2() if ball > 0 else arb(0, arb.pos_inf())


def _left_end(series: HeatSeries) -> int:
    """Point at -1, or where K is at most 1e-290 and not much less."""

    def below(point: int) -> bool:
        return not series.value(point) > arb(10) ** -290

    if series.value(-ONE) > arb(2) ** -_ALL_BITS:
        return -ONE
    low, high, grain = -ONE, ONE, ONE
    # log K is concave: the chord from 1 to a point above the floor undershoots.
    while True:
        middle = (low + high) // 2
        value = log2_kernel(series, middle)
        if value.is_finite() and -FLOOR_BITS - 8.0 < value < -FLOOR_BITS - 0.01:
            return middle
        if below(middle):
            low = middle
        else:
            high = middle
        grain //= 2
        if grain == 0:
            return low


def _next_zero(series: HeatSeries, left: int) -> tuple[float, float]:
    """Bounds of the distance to the next zero (lower) and of S_1 (upper), at `left`."""
    logs = [log2_kernel(series, left + i * _STEP) * arb.const_log2() for i in range(_ORDER + 1)]
    first = logs[1] - logs[0]  # S_1 at some point between, times the step
    difference = logs
    for _ in range(_ORDER):
        difference = [b - a for a, b in pairwise(difference)]
    step = arb(_STEP) / ONE
    # |difference|/step^m is (m-1)! S_m(ξ), and S_m(ξ) >= S_m at the last point >= distance^-m.
    power = arb(abs(difference[0]).upper()) / math.factorial(_ORDER - 1)
    from_last = step * (-power.log() / _ORDER).exp() if power > 0 else arb(8)
    beyond = arb(left + ONE) / ONE
    distance = float(max((from_last - _ORDER * step).lower(), beyond.lower()))
    distance = min(distance * (1 - 1e-12), 8.0)
    slope = (first / step) * (1 + step / arb(distance))
    return distance, float(slope.upper()) * (1 + 1e-12)


def _pieces(series: HeatSeries, left: int, distance: float, slope: float) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    start, away, fall = left, distance, -log2_kernel(series, left)
    while start < ONE:
        end = min(ONE, start + max(1, math.floor(away * ONE)))
        if ONE - end < (end - start) // 4:
            end = ONE
        pieces.append(_piece(series, start, end, slope, away))
        away += (end - start) / ONE
        away *= 1 - 1e-15
        start = end
        if start < ONE:  # log K is concave: its slope is below that of the chord
            passed = (fall + log2_kernel(series, start)) * _LN2 * ONE / (start - left)
            slope = min(slope, float(passed.upper()) * (1 + 1e-12))
    return tuple(pieces)


def _piece(series: HeatSeries, left: int, right: int, slope: float, distance: float) -> Piece:
    size = _nodes_needed(slope, distance, (right - left) / ONE)
    nodes, values = _values(series, left, right, size)
    return Piece(left, right, nodes, values, slope, distance)


def _values(
    series: HeatSeries, left: int, right: int, size: int
) -> tuple[tuple[int, ...], tuple[arb, ...]]:
    """Chebyshev's nodes, rounded to points, and h at them."""
    middle, half = (left + right) // 2, (right - left) / 2
    angles = ((2 * i + 1) * math.pi / (2 * size) for i in range(size))
    nodes = tuple(middle + round(half * rounded.cos(angle)) for angle in angles)
    return nodes, tuple(-log2_kernel(series, node) * ONE / (ONE - node) for node in nodes)


def with_nodes(series: HeatSeries, piece: Piece, size: int) -> Piece:
    """Give the piece with h at another number of nodes."""
    nodes, values = _values(series, piece.left, piece.right, size)
    return replace(piece, nodes=nodes, values=values)


def _nodes_needed(slope: float, distance: float, width: float) -> int:
    """Nodes that bring the error 2 slope/(N+1) (width/4 distance)^N below `REMAINDER`.

    Where the slope is below 1, so is h, and what is allowed is a part of the slope.
    """
    size, allowed = 4, REMAINDER * min(1.0, slope)
    while 2 * slope / (size + 1) * (width / (4 * distance)) ** size > allowed:
        size += 1
    return size


def with_factors(piece: Piece, factors: tuple[float, ...]) -> Local:
    """Interpolate h without the part of some factors, K(c) = Π (1 - u_j (1-c)) 2^(-(1-c) h(c)).

    `factors` are reciprocals u_j of 1 - z_j, for numbers z_j close to zeros of K. The remainder of
    the polynomial is proven.
    """
    values = [
        value + _log2_factors(factors, node)
        for node, value in zip(piece.nodes, piece.values, strict=True)
    ]
    # |h^{(N)}|/N! <= S_{N+1}/((N+1) log 2); a factor adds its own 1/(c-z).
    size, left = len(values), arb(piece.left) / ONE
    own = arb(piece.slope) / arb(piece.distance) ** size
    for factor in factors:
        own += (1 / arb(factor) - 1 + left) ** -(size + 1)
    return interpolated(piece, values, own / ((size + 1) * arb.const_log2()))


def interpolated(piece: Piece, values: Sequence[arb], derivative: arb) -> Local:
    """Interpolate a function given at the N nodes of a piece.

    `derivative` is an upper bound of |f^(N)|/N! on the piece, and proves the remainder.
    """
    polynomial = arb_poly.interpolate(piece.places, list(values))
    return Local(piece, polynomial, float((derivative * piece.product_bound).upper()))


def _log2_factors(factors: tuple[float, ...], node: int) -> arb:
    """Σ log2(1 - u_j d)/d at d = 1 - c."""
    distance = arb(ONE - node) / ONE
    product = arb(1)
    for factor in factors:
        product *= 1 - arb(factor) * distance
    return product.log() / (arb.const_log2() * distance)


def largest_value(polynomial: arb_poly) -> float:
    """Upper bound of |p| on [-1, 1]: the sum of its Chebyshev coefficients' sizes."""
    coefficients = polynomial.coeffs()
    if not coefficients:
        return 0.0
    chebyshev = arb_mat([coefficients]) * _chebyshev(len(coefficients))
    return float(sum((abs(a) for a in chebyshev.entries()), arb(0)).upper())


@lru_cache(maxsize=64)
def _chebyshev(count: int) -> arb_mat:
    """Chebyshev coefficients of 1, y, y² ..., a row each: y T_0 = T_1, 2 y T_k = T_{k-1} + T_{k+1}.

    They are whole numbers over powers of 2, and exact.
    """
    rows = [[1] + [0] * count]
    for power in range(1, count):
        last = rows[-1]  # times 2^(power - 1)
        row = [0] * (count + 1)
        row[1] = 2 * last[0]
        for k in range(1, power):
            row[k - 1] += last[k]
            row[k + 1] += last[k]
        rows.append(row)
    return arb_mat(
        [[arb(a) * arb(2) ** -power for a in row[:count]] for power, row in enumerate(rows)]
    )


def exponent_at(locals_: Sequence[Local], point: int) -> arb:
    """Middle value of h at a point."""
    return exponents_at(locals_, [point])[0]


def exponents_at(locals_: Sequence[Local], points: Sequence[int]) -> list[arb]:
    """Middle values of h at points in increasing order."""
    values, remaining = [], iter(locals_)
    local = next(remaining)
    for point in points:
        while point > local.piece.right:
            local = next(remaining)
        piece = local.piece
        y = arb(2 * point - piece.left - piece.right) / (piece.right - piece.left)
        values.append(local.polynomial(y).mid())
    return values
