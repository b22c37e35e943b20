"""What the theory says of the heat kernel: its equation, semigroup, closed forms and limits."""

import math

import mpmath as mp
import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from scipy.special import roots_gegenbauer

from dhsk.kernels import HeatKernel

EPS = np.finfo(np.float64).eps
TURNS = range(-12, 13)  # images of the source; the next is exp(-(24 pi)²/4t) < 1e-300 for t <= 2


def wrapped_gaussian(theta: mp.mpf, time: float) -> mp.mpf:
    """Kernel of the circle, up to a constant: the sum over all images of the source."""
    return mp.fsum(mp.exp(-((theta + 2 * mp.pi * k) ** 2) / (4 * mp.mpf(time))) for k in TURNS)


def three_sphere(theta: mp.mpf, time: float) -> mp.mpf:
    """Kernel of S^3, up to the same constant: -2t/sin(theta) d/dtheta of the circle's."""
    if theta == 0:
        squares = [(2 * mp.pi * k) ** 2 / (4 * mp.mpf(time)) for k in TURNS]
        return mp.fsum((1 - 2 * x) * mp.exp(-x) for x in squares)
    angles = [theta + 2 * mp.pi * k for k in TURNS]
    total = mp.fsum(a * mp.exp(-(a**2) / (4 * mp.mpf(time))) for a in angles)
    return total / mp.sin(theta)


@pytest.mark.slow
@pytest.mark.parametrize("time", [0.005, 0.02, 0.3, 2.0])
@pytest.mark.parametrize(("dim", "closed_form"), [(2, wrapped_gaussian), (4, three_sphere)])
def test_circle_and_three_sphere_have_their_closed_forms(dim, closed_form, time):
    """On S^1 and S^3 the kernel is a sum of Gaussians over the images of the source."""
    kernel = HeatKernel(dim, time)
    cosines = np.linspace(-0.999, 0.999, 41)
    with mp.workdps(60):  # images cancel next to -1, by 1e-3 at most
        source = closed_form(mp.mpf(0), time)
        expected = [float(closed_form(mp.acos(mp.mpf(c)), time) / source) for c in cosines.tolist()]
    tolerance = kernel.error_bound.relative + EPS  # the kernel's own, and the rounding of expected
    assert tolerance < 1e-12
    np.testing.assert_allclose(kernel.of_cosine(cosines), expected, rtol=tolerance, atol=0)


def sphere_rule(dim: int, cosine: float, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cosines <z, x> and <z, y> of points z on S^{dim-1}, and their weights, which sum to 1.

    With u = <z, x> and v the cosine about x of z and y, the measure is (1-u²)^((n-3)/2) du times
    (1-v²)^((n-4)/2) dv. Gauss' rules are exact for polynomials of degree 2 nodes - 1 in z.
    """
    u, heights = roots_gegenbauer(nodes, (dim - 2) / 2)
    if dim == 2:
        v, widths = np.array([-1.0, 1.0]), np.ones(2)
    else:
        v, widths = roots_gegenbauer(nodes, (dim - 3) / 2)
    other = u[:, None] * cosine + np.sqrt((1 - u[:, None] ** 2) * (1 - cosine**2)) * v
    weights = heights[:, None] * widths
    return np.broadcast_to(u[:, None], other.shape), other, weights / weights.sum()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 1.0])
@pytest.mark.parametrize("dim", [2, 3, 4, 10, 50])
def test_diffusion_for_s_and_then_t_is_diffusion_for_their_sum(dim, scale, oracle_weights):
    """On S^{n-1}, the integral of p_s(x, z) p_t(z, y) over z is p_{s+t}(x, y)."""
    s = scale * math.log(dim) / dim
    t, nodes = 1.5 * s, 64  # the rule sees levels below 64: those above have weight < 1e-20

    def density(time: float, cosines: np.ndarray) -> np.ndarray:
        """Kernel of mean 1: divided by the weight of level 0."""
        mean = float(oracle_weights(dim, time)[0])
        return HeatKernel(dim, time).of_cosine(cosines) / mean

    ends = np.linspace(-1, 1, 9)
    rules = [sphere_rule(dim, end, nodes) for end in ends]
    composed = [(w * density(s, u) * density(t, c)).sum() for u, c, w in rules]
    # All terms are positive. Cosines round by eps, which moves K by K'/K <= 1/(2t) or so of itself;
    # nodes and weights are SciPy's, right to nodes * eps.
    bounds = sum(HeatKernel(dim, time).error_bound.relative for time in (s, t, s + t))
    tolerance = bounds + EPS * (1 / (2 * s) + 1 / (2 * t) + 2 * nodes)
    assert tolerance < 1e-12
    np.testing.assert_allclose(composed, density(s + t, ends), rtol=tolerance, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "scale"), [(2, 1.0), (3, 0.5), (5, 1.0), (64, 0.5), (1000, 1.0)])
def test_kernel_solves_the_heat_equation(dim, scale, oracle_weights):
    """For f = log K: df/dt = (1-c²)(f'' + f'²) - (n-1) c f' + Σ a_l l(l+n-2), the last to norm it.

    Derivatives at the middle of a window of half-width w are those of an interpolant.
    """
    degree, time = 24, scale * math.log(dim) / dim
    kernel = HeatKernel(dim, time)
    weights = enumerate(oracle_weights(dim, time))
    rate_at_source = float(mp.fsum(a * level * (level + dim - 2) for level, a in weights))
    times = time / 3  # K has no zero nearby and is singular at time 0: errors fall by 5.8 a degree
    noise = 3 * (kernel.error_bound.relative + EPS)  # 3: Lebesgue's constant of the nodes
    for c in (-0.7, -0.2, 0.3, 0.8):
        width = min((1 + c) / 4, 1 - c)  # the zeros of K lie below -1: by 7.9 a degree
        history = Chebyshev.interpolate(
            lambda at, c=c: np.log([float(HeatKernel(dim, s).of_cosine(c)) for s in at]),
            degree,
            domain=[time - times, time + times],
        )
        f = Chebyshev.interpolate(
            lambda at: np.log(kernel.of_cosine(at)), degree, domain=[c - width, c + width]
        )
        first, second = f.deriv(1)(c), f.deriv(2)(c)
        expected = (1 - c**2) * (second + first**2) - (dim - 1) * c * first + rate_at_source
        # Bernstein: in the middle a derivative magnifies an error by degree/w, a second by its
        # square; the values of f, which reach |f(-1)|, round too.
        size = noise + EPS * abs(float(f(c - width)))
        slope, bend = degree / width, (degree / width) ** 2
        tolerance = size * (degree / times)
        tolerance += size * ((1 - c**2) * (bend + 2 * abs(first) * slope) + dim * abs(c) * slope)
        scale_of_terms = (1 - c**2) * (abs(second) + first**2) + dim * abs(c * first)
        assert tolerance < 1e-8 * (scale_of_terms + rate_at_source)
        assert abs(history.deriv(1)(time) - expected) < tolerance


@pytest.mark.parametrize("tail", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("dim", [2, 3, 50, 393])
def test_long_diffusion_leaves_the_first_level(dim, tail, oracle_weights):
    """As time grows, 1 - K tends to q (1-c)/(1+q), q = n exp(-(n-1)t), relative to itself."""
    time = math.log(dim / tail) / (dim - 1)
    weights = [float(a) for a in oracle_weights(dim, time)]
    cosines = np.linspace(-1, 0.9, 20)
    expected = tail * (1 - cosines) / (1 + tail)
    # 0 <= 1 - P_l <= (1-c) l(l+n-2)/(n-1), its slope at 1: what the levels from 2 on add.
    higher = sum(a * level * (level + dim - 2) for level, a in enumerate(weights) if level > 1)
    neglected = higher / (dim - 1) / weights[1] + sum(weights[2:])
    kernel = HeatKernel(dim, time)
    rounding = EPS * (dim * time + 4) * expected + kernel.error_bound.absolute
    error = np.abs((1 - kernel.of_cosine(cosines)) - expected)
    assert (error <= neglected * expected + rounding).all()


@pytest.mark.parametrize("dim", [2, 3, 393])
def test_very_long_diffusion_is_constant(dim):
    """At time 50 the kernel rounds to 1 everywhere."""
    np.testing.assert_array_equal(HeatKernel(dim, 50.0).of_cosine(np.linspace(-1, 1, 9)), 1.0)


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("dim", [10**6, 10**8])
def test_large_dimension_is_a_power_series(dim, scale):
    """For large n, K tends to Σ q^l c^l exp(-l(l-1)t)/l!, q = n exp(-(n-1)t), over that at 1."""
    kernel = HeatKernel.at_scale(dim, scale)
    t = kernel.time
    q = dim * math.exp(-(dim - 1) * t)

    def limit(c):
        return sum((q * c) ** k * math.exp(-k * (k - 1) * t) / math.factorial(k) for k in range(40))

    cosines = np.linspace(-1, 1, 21)
    # d_l = n^l/l! and P_l = c^l up to l²/n each, E[l²] <= 2 and K >= e^-2; exp(-nt) rounds.
    tolerance = 4 * math.exp(2) / dim + 4 * dim * t * EPS
    np.testing.assert_allclose(
        kernel.of_cosine(cosines), limit(cosines) / limit(1.0), rtol=tolerance, atol=0
    )
