"""Smallest balls against closed forms and a generic solver, and the bounds made of them."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dhsk.solvers.ball import Ball, balls_about_means, capacity, smallest_ball
from dhsk.solvers.dual import Dual
from dhsk.solvers.smo import ascend, padded
from dhsk.solvers.sources import ArraySource
from tests.optimum import solve_block

TOL = 1e-6
"""Of the balls: a squared radius may be too large by this part of itself."""

ROUNDING = 1e-13
"""Some hundred operations in float64 on numbers about the size of the result."""

SLSQP = 1e-9
"""Above its criterion to stop, a change of the objective below 1e-12 in one iteration."""


def ball_of(K: Any, tol: float = TOL, dtype: Any = np.float64) -> Ball:
    """Smallest ball of an unpadded matrix; the padding is what must never be used."""
    n = len(K)
    wide = np.full((n, padded(n)), 1e3, dtype)
    wide[:, :n] = K
    return smallest_ball(wide, tol)


def linear(X: Any) -> Any:
    """Linear kernel of points."""
    return X @ X.T


def gaussian(X: Any) -> Any:
    """A kernel of full rank."""
    return np.exp(-((X[:, None] - X) ** 2).sum(-1) / 4)


def assert_holds(ball: Ball, expected: float, rounding: float = ROUNDING) -> None:
    """The optimum is where the ball says it is, and this is narrow."""
    assert ball.exact
    assert 0 <= ball.gap <= TOL
    assert ball.radius2 * (1 - ball.gap - rounding) <= expected
    assert ball.radius2 * (1 + rounding) >= expected


@pytest.mark.parametrize("n", [2, 3, 8, 9, 100])
def test_unit_vectors(n: int) -> None:
    """Orthogonal samples of length 1 lie 1 - 1/n about their mean."""
    assert_holds(ball_of(np.eye(n)), 1 - 1 / n)


@pytest.mark.parametrize("K", [[[2.0, 0.5], [0.5, 1.0]], [[1.0, -1.0], [-1.0, 1.0]]])
def test_two_points(K: Any) -> None:
    """The radius is half their distance, whose square is K_11 + K_22 - 2 K_12."""
    K = np.array(K)
    assert_holds(ball_of(K), (K[0, 0] + K[1, 1] - 2 * K[0, 1]) / 4)


@pytest.mark.parametrize("n", [2, 7, 40])
def test_points_on_a_line(n: int) -> None:
    """Only the two outermost matter, wherever the others are."""
    x = np.random.default_rng(n).exponential(size=(n, 1)) - 0.3
    assert_holds(ball_of(linear(x)), float(np.ptp(x) / 2) ** 2)


@pytest.mark.parametrize("n", [3, 10, 33])
def test_regular_simplex_with_points_inside(n: int) -> None:
    """Corners at distance l lie l^2 (n - 1) / 2n about their centre; what is inside is held too."""
    corners = np.sqrt(0.5) * 3.0 * np.eye(n)
    weights = np.random.default_rng(n).dirichlet(np.ones(n), size=20)
    assert_holds(ball_of(linear(np.vstack([weights @ corners, corners]))), 9 * (n - 1) / (2 * n))


def test_points_on_a_circle() -> None:
    """Many samples at the same distance: the optimum has no unique weights."""
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    X = 2 * np.column_stack([np.cos(angle), np.sin(angle)])
    inside = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    assert_holds(ball_of(linear(np.vstack([X, inside]))), 4.0)


@pytest.mark.parametrize("kernel", [linear, gaussian])
@pytest.mark.parametrize(("n", "dim"), [(3, 2), (12, 2), (30, 3), (30, 40)])
def test_against_a_generic_solver(kernel: Any, n: int, dim: int) -> None:
    """SLSQP's optimum of the dual, a lower bound, is where the ball says it is."""
    K = kernel(np.random.default_rng(n + dim).normal(size=(n, dim)) + 1)
    size = np.diag(K).max()
    found = minimize(
        lambda b: (b @ K @ b - b @ np.diag(K)) / size,
        np.full(n, 1 / n),
        jac=lambda b: (2 * K @ b - np.diag(K)) / size,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda b: b.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.success
    assert_holds(ball_of(K), -found.fun * size, SLSQP)


def test_duplicates_change_nothing() -> None:
    """Samples given twice are held by the same ball."""
    X = np.random.default_rng(1).normal(size=(40, 3))
    once, twice = ball_of(linear(X)), ball_of(linear(np.vstack([X, X, X[:5]])))
    assert twice.radius2 == pytest.approx(once.radius2, rel=2 * TOL)


def test_one_outlier_among_duplicates() -> None:
    """The mean is a poor start: nearly all of its weight must move."""
    X = np.zeros((999, 2))
    X[500] = 1.0
    assert_holds(ball_of(linear(X)), 0.5)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_tolerance_is_relative(scale: float) -> None:
    """Samples in other units have the same ball in other units, as closely."""
    K = linear(np.random.default_rng(2).normal(size=(50, 4)))
    ball = ball_of(scale * K)
    assert ball.gap <= TOL
    assert ball.radius2 == pytest.approx(scale * ball_of(K).radius2, rel=2 * TOL)


def test_tolerance_is_kept() -> None:
    """A looser one saves steps, a tighter one is reached, and the mean may be good enough."""
    K = gaussian(np.random.default_rng(3).normal(size=(200, 5)))
    loose, tight = ball_of(K, 1e-2), ball_of(K, 1e-11)
    assert loose.gap <= 1e-2
    assert tight.gap <= 1e-11
    assert 0 < loose.steps < tight.steps
    assert ball_of(K, 0.5).steps == 0
    assert tight.radius2 * (1 - ROUNDING) <= loose.radius2 <= tight.radius2 * (1 + 1e-2)


def test_float32() -> None:
    """The ball of a float32 matrix is that of the same numbers in float64."""
    K = linear(np.random.default_rng(4).normal(size=(60, 3))).astype(np.float32)
    ball = ball_of(K, dtype=np.float32)
    assert ball.gap <= TOL
    assert ball.radius2 == pytest.approx(ball_of(K.astype(np.float64)).radius2, rel=2 * TOL)


def test_one_sample() -> None:
    """Its ball is a point."""
    assert ball_of([[3.0]]) == Ball(0.0, 0.0, 0, exact=True)


@pytest.mark.parametrize("n", [2, 50, 1001])
def test_all_samples_the_same(n: int) -> None:
    """Rounding is not chased: what is left of the radius is as small as it."""
    ball = ball_of(np.full((n, n), 1.1))
    assert 0 <= ball.radius2 <= n * np.finfo(np.float64).eps
    assert ball.steps == 0


def test_nearly_the_same_samples() -> None:
    """Differences in the last place of a matrix are not a geometry to be solved."""
    n, eps = 300, np.finfo(np.float64).eps
    noise = np.random.default_rng(9).uniform(-eps, eps, (n, n))
    ball = ball_of(1 + noise + noise.T)
    assert 0 <= ball.radius2 <= n * eps
    assert ball.steps == 0


def test_certificate_does_not_trust_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient that drifted during the steps is computed anew, and the ball goes on from it."""

    def drifting(K: Any, bounds: Any, b: Any, f: Any, *limits: Any) -> Any:
        made = ascend(K, bounds, b, f, *limits)
        f += np.linspace(-1, 1, len(f))
        return made

    K = linear(np.random.default_rng(10).normal(size=(30, 3)))
    expected = ball_of(K)
    monkeypatch.setattr("dhsk.solvers.ball.ascend", drifting)
    assert ball_of(K) == expected


@pytest.mark.parametrize("n", [2, 10, 100])
def test_indefinite_matrices_end(n: int) -> None:
    """No feature space, but an end, and numbers within their ranges."""
    A = np.random.default_rng(n).normal(size=(n, n))
    A += A.T
    for K in (
        A,
        np.tanh(A - 1),
        A - np.diag(np.diag(A)),
        -np.eye(n),
        -np.ones((n, n)),
        -gaussian(A),
    ):
        ball = ball_of(K)
        assert ball.radius2 >= 0
        assert 0 <= ball.gap <= 1
        assert ball.steps < 100 * n
    assert ball_of(-np.eye(n)).radius2 == 0


def test_indefinite_matrix_about_the_mean() -> None:
    """The dual of the mean is below 0 here, at -2/3, which bounds nothing: all may be gap."""
    K = np.zeros((3, 3))
    K[1, 2] = K[2, 1] = 3.0
    (ball,) = balls_about_means(ArraySource(K), [np.arange(3)])
    assert ball.radius2 == pytest.approx(2 / 3, rel=ROUNDING)
    assert ball.gap == 1


def test_balls_about_means() -> None:
    """Each radius is the greatest distance of a member from their mean, and the gap says so."""
    X = np.random.default_rng(6).normal(size=(200, 3))
    K = linear(X)
    groups = [np.random.default_rng(7).permutation(200)[:150], np.arange(20)]
    for members, ball in zip(groups, balls_about_means(ArraySource(K), groups), strict=True):
        Y = X[members]
        far = ((Y - Y.mean(0)) ** 2).sum(1)
        assert not ball.exact
        assert ball.radius2 == pytest.approx(far.max(), rel=ROUNDING)
        assert ball.gap == pytest.approx(1 - far.mean() / far.max(), abs=ROUNDING)
        best = ball_of(linear(Y)).radius2
        assert ball.radius2 * (1 - ball.gap) < best < ball.radius2 * (1 + TOL)


def test_capacity_by_hand() -> None:
    """R^2 |w|^2 of 3.6 gives a bound of 5, and 100 samples are worth 20."""
    found = capacity(norm2=4.0, radius2=0.9, n=100)
    assert (found.margin, found.vc, found.effective) == (0.5, 5, 20.0)


@pytest.mark.parametrize("norm2", [1e3, 1e300, np.inf])
def test_no_more_than_all_samples_are_shattered(norm2: float) -> None:
    """However small the margin."""
    found = capacity(norm2, 0.9, 7)
    assert (found.vc, found.effective) == (7, 1.0)


@pytest.mark.parametrize("norm2", [0.0, -1e-17, -4.0])
def test_without_support_vectors_there_is_no_margin(norm2: float) -> None:
    """A constant decision shatters at most one sample."""
    found = capacity(norm2, 0.9, 7)
    assert (found.margin, found.vc, found.effective) == (None, 1, 7.0)


def test_hard_margin_of_independent_samples() -> None:
    """Half of n orthogonal samples against the others: all can be shattered, and the bound is n."""
    n = 6
    K = np.zeros((n, padded(n)))
    K[:, :n] = np.eye(n)
    dual = Dual(np.repeat([1.0, -1.0], n // 2), np.full((1, n), 1e3))
    (fit,) = solve_block(K, dual, tol=1e-9)
    found = capacity(fit.norm2, smallest_ball(K).radius2, n)
    # The means of the classes are 2 / sqrt(n) apart, and the hyperplane is halfway.
    assert found.margin == pytest.approx(1 / np.sqrt(n), rel=1e-8)
    assert (found.vc, found.effective) == (n, 1.0)
