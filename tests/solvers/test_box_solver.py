"""Problems with a zone without loss, against LIBSVM's doubled problem on twice the matrix."""

from typing import Any

import numpy as np
import pytest

from dhsk.kernels import GaussianKernel
from dhsk.models.sources import RowsSource
from dhsk.solvers import block_steps, box_solver
from dhsk.solvers.box import BoxProblem
from dhsk.solvers.box_solver import Limits, solve_box
from dhsk.solvers.smo import ascend, padded

N, TOL = 150, 1e-9


def doubled(K: Any, problem: BoxProblem) -> tuple[Any, float]:
    """Coefficients and violation of the problem of 2N variables."""
    two = np.zeros((2 * N, padded(2 * N)))
    two[:, : 2 * N] = np.tile(K, (2, 2))
    zero = np.zeros(N)
    bounds = np.concatenate([zero, problem.lower]), np.concatenate([problem.upper, zero])
    f = np.concatenate([problem.linear - problem.zone, problem.linear + problem.zone])
    b = np.zeros(2 * N)
    _, violation = ascend(two, bounds, b, f, TOL, 10**6)
    return b[:N] + b[N:], violation


@pytest.mark.parametrize("zone", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("way", ["whole", "blocks"])
def test_the_optimum_is_that_of_the_doubled_problem(
    zone: float, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the whole matrix, and in steps on small blocks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = 3 * np.sin(X[:, 0]) + rng.normal(size=N)
    upper = rng.uniform(0.5, 5.0, N)
    problem, kernel = BoxProblem(y, -upper, upper, zone), GaussianKernel(1.0)
    monkeypatch.setattr(box_solver, "WHOLE", N if way == "whole" else 0)
    monkeypatch.setattr(block_steps, "BLOCK", 32)
    found = solve_box(RowsSource(X, kernel), problem, np.zeros(N), Limits(TOL, 10**9))
    expected, violation = doubled(kernel(X), problem)
    assert violation <= TOL
    assert problem.violation(found.b, found.f) <= TOL
    np.testing.assert_allclose(found.f, y - kernel(X) @ found.b, atol=1e-10)
    np.testing.assert_allclose(found.b, expected, atol=1e-5)
    assert abs(found.b.sum()) < 1e-10
    assert (np.abs(found.b) <= upper).all()
    intercept = problem.intercept(found.b, found.f)
    assert 0 <= problem.gap(found.b, found.f, intercept) < 1e-6


def test_gradients_at_zero_have_two_sides() -> None:
    """There is nothing to gain from coefficients whose gradient is within the zone."""
    bounds = np.ones(3)
    problem = BoxProblem(np.array([0.0, 0.3, -0.3]), -bounds, bounds, 0.5)
    b, f = np.zeros(3), problem.linear.copy()
    assert problem.violation(b, f) == 0.0
    narrow = BoxProblem(problem.linear, -bounds, bounds, 0.1)
    assert narrow.violation(b, f) == pytest.approx(0.6 - 0.2)


def test_what_is_within_rounding_of_a_bound_or_a_kink_is_set_to_it() -> None:
    """Of 0 only where the loss changes there."""
    near = 1e-16
    b, bounds = np.array([near, -near, 1.0 - near, near - 1.0, 0.5]), np.ones(5)
    for zone, zeros in ((0.1, 2), (0.0, 0)):
        settled = b.copy()
        BoxProblem(b, -bounds, bounds, zone).settle(settled)
        assert settled[2:].tolist() == [1.0, -1.0, 0.5]
        assert np.count_nonzero(settled == 0.0) == zeros


def test_a_problem_stays_within_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the limit of the steps beyond it falls."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 3)), rng.normal(size=N)
    problem = BoxProblem(y, np.full(N, -5.0), np.full(N, 5.0), 0.1)
    K = RowsSource(X, GaussianKernel(1.0))
    monkeypatch.setattr(box_solver, "MORE_STEPS", 0)
    for more in range(1, 60):
        monkeypatch.setattr(box_solver, "LEAST_AT_ONCE", more)
        found = solve_box(K, problem, np.zeros(N), Limits(1e-2, 10**9))
        assert problem.violation(found.b, found.f) <= 1e-2, more
