"""The primal solver against LIBLINEAR, and its certificate against the definition."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import dhsk
from dhsk.execution.threads import Threads
from dhsk.linear.losses import LOSSES, Loss
from dhsk.linear.newton import Newton, Solution, solve_columns
from dhsk.linear.passes import Columns, Targets
from dhsk.nystrom.components import inverse_root
from dhsk.nystrom.spans import Basis, FeatureMatrix, of_rows

REFERENCE_TOL = 1e-12
"""LIBLINEAR's own tolerance in these tests: it stops at its step limit, as near as it gets."""

AGREEMENT = 1e-5
"""Greatest difference of coefficients and objective from LIBLINEAR's, relative (issue's bar)."""

HINGE = LOSSES["squared_hinge"]


def held(X: NDArray[Any]) -> FeatureMatrix:
    """Features in memory."""
    return FeatureMatrix.in_memory(X, Threads(2))


def one_vs_rest(n_classes: int, C: float) -> Columns:
    """A column a class, of the first group."""
    numbers = np.arange(n_classes)
    return Columns(numbers, np.zeros_like(numbers), np.full(n_classes, C))


def newton(
    Z: FeatureMatrix, y: NDArray[Any], columns: Columns, loss: Loss, weights: Any = None
) -> Newton:
    """Problems at a tight tolerance."""
    weights = np.ones((Z.n, 1)) if weights is None else weights
    return Newton(Z, Targets(y, weights), columns, loss, 1e-9, 10**9)


def objective(
    X: NDArray[Any], y: NDArray[Any], V: NDArray[Any], columns: Columns, loss: Loss, weights: Any
) -> NDArray[Any]:
    """What is minimised, by its definition."""
    found = []
    for v, positive, group, C in zip(V.T, columns.positive, columns.group, columns.C, strict=True):
        margin = np.where(y == positive, 1, -1) * (X @ v[:-1] + v[-1])
        found.append(v @ v / 2 + C * weights[:, group] @ loss.value(margin))
    return np.array(found)


def digits() -> tuple[NDArray[Any], NDArray[Any]]:
    """Small images, from 0 to 1."""
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("balanced", [False, True])
def test_agrees_with_liblinear(C: float, balanced: bool) -> None:
    """Coefficients and objective are LIBLINEAR's, weighted or not."""
    X, y = digits()
    X, y = X[:600], y[:600] % 4
    weights = np.random.default_rng(0).uniform(0.2, 3, (600, 1)) if balanced else np.ones((600, 1))
    columns = one_vs_rest(4, C)
    problem = newton(held(X), y, columns, HINGE, weights)
    found = problem.solve()
    reference = LinearSVC(C=C, dual=False, tol=REFERENCE_TOL, max_iter=100_000)
    reference.fit(X, y, sample_weight=weights[:, 0])
    expected = np.vstack([reference.coef_.T, reference.intercept_])
    assert found.converged.all()
    # Strong convexity: a solution is no farther from the optimum than its gradient is long.
    own_error = np.linalg.norm(problem._gradient(expected, columns)[1], axis=0)
    distance = np.linalg.norm(found.coef - expected, axis=0)
    assert (distance <= AGREEMENT * np.linalg.norm(expected, axis=0) + own_error).all()
    assert (own_error < 1).all()
    best = objective(X, y, expected, columns, HINGE, weights)
    np.testing.assert_allclose(found.objective, best, rtol=AGREEMENT)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_logistic_agrees_with_liblinear(C: float) -> None:
    """The same of logistic regression."""
    X, y = digits()
    X, y = X[:600], y[:600] % 2
    found = newton(held(X), y, Columns(np.array([1]), np.array([0]), np.array([C])),
                   LOSSES["logistic"]).solve()  # fmt: skip
    reference = LogisticRegression(C=C, solver="liblinear", tol=REFERENCE_TOL, max_iter=10_000)
    reference.fit(X, y)
    expected = np.append(reference.coef_[0], reference.intercept_)
    assert np.abs(found.coef[:, 0] - expected).max() <= AGREEMENT * np.abs(expected).max()


@pytest.mark.parametrize("name", LOSSES)
def test_objective_and_gradient_are_those_of_the_definition(name: str) -> None:
    """The objective is its definition, the gradient its difference quotient."""
    X, y = digits()
    X, y = X[:50], y[:50] % 3
    columns, loss = one_vs_rest(3, 2.0), LOSSES[name]
    problem = newton(held(X), y, columns, loss)
    V = np.random.default_rng(1).normal(size=(65, 3))
    f, G = problem._gradient(V, columns)
    np.testing.assert_allclose(f, objective(X, y, V, columns, loss, np.ones((50, 1))), rtol=1e-12)
    direction = np.random.default_rng(2).normal(size=V.shape)
    h = 1e-6  # rounding of the quotient is about eps f / h = 1e-8, its own error about h
    ahead, behind = (problem._gradient(V + s * h * direction, columns)[0] for s in (1, -1))
    quotient = (ahead - behind) / (2 * h)
    np.testing.assert_allclose(np.sum(G * direction, axis=0), quotient, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_the_gap_bounds_what_is_missing(name: str) -> None:
    """A solution of a loose tolerance is short by no more than its certificate says."""
    X, y = digits()
    columns = one_vs_rest(10, 1.0)
    loose = newton(held(X), y, columns, LOSSES[name])
    loose.tol = 0.3
    rough, fine = loose.solve(), newton(held(X), y, columns, LOSSES[name]).solve()
    missing = rough.objective - fine.objective
    assert (missing > 0).all()
    assert (missing <= rough.gap).all()


@pytest.mark.slow
def test_groups_and_values_of_C_are_solved_side_by_side() -> None:
    """Columns of other weights and C give what each gives alone."""
    X, y = digits()
    y = y % 2
    weights = (np.arange(len(y))[:, None] % 3 != np.arange(3)).astype(float)
    pairs = [(group, C) for group in range(3) for C in (0.1, 10.0)]
    groups, values = (np.array(part) for part in zip(*pairs, strict=True))
    columns = Columns(np.ones(6, np.intp), groups.astype(np.intp), values)
    together = newton(held(X), y, columns, HINGE, weights).solve()
    for j in range(6):
        alone = newton(held(X), y, columns.only([j]), HINGE, weights).solve()
        scale = np.abs(alone.coef).max()
        assert np.abs(together.coef[:, [j]] - alone.coef).max() <= AGREEMENT * scale


def solved_from_rows(threads: Threads) -> Solution:
    """Problems on kernel values that are computed in every pass."""
    X, y = digits()
    rows = dhsk.hyperspherical_map(X + 1e-3)
    kernel = dhsk.HeatKernel.at_scale(64, 1.0)
    landmarks = rows[::20]
    root = inverse_root(kernel.of_rows(landmarks))
    Z = FeatureMatrix(of_rows(rows), len(rows), threads, dtype=rows.dtype,
                      basis=Basis(kernel, landmarks), root=root)  # fmt: skip
    return newton(Z, y, one_vs_rest(10, 1.0), HINGE).solve()


@pytest.mark.slow
def test_features_computed_in_every_pass_are_as_good_as_kept() -> None:
    """Features that are never there as a whole give the coefficients of those that are."""
    X, y = digits()
    rows = dhsk.hyperspherical_map(X + 1e-3)
    kernel = dhsk.HeatKernel.at_scale(64, 1.0)
    Z = kernel.of_rows(rows, rows[::20]) @ inverse_root(kernel.of_rows(rows[::20]))
    kept = newton(held(Z), y, one_vs_rest(10, 1.0), HINGE).solve()
    computed = solved_from_rows(Threads(2))
    assert np.abs(kept.coef - computed.coef).max() <= AGREEMENT * np.abs(kept.coef).max()


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit() -> None:
    """Sums over spans are in their order, wherever they were computed.

    BLAS has one thread beside others of ours, and all cores without: here, one in both.
    """
    with threadpool_limits(limits=1):
        one, two = (solved_from_rows(Threads(number)) for number in (1, 2))
    assert np.array_equal(one.coef, two.coef)


@pytest.mark.slow
def test_a_part_of_many_samples_gives_the_start() -> None:
    """From the solution of a part it takes fewer passes, to the same end."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 40_000)
    X = rng.normal(size=(3, 20))[y] + 2 * rng.normal(size=(40_000, 20))
    columns = one_vs_rest(3, 1.0)
    begun, factors = solve_columns(newton(held(X), y, columns, HINGE), seed=0, threads=2)
    cold = newton(held(X), y, columns, HINGE).solve()
    assert begun.passes < cold.passes
    assert factors
    assert np.abs(begun.coef - cold.coef).max() <= AGREEMENT * np.abs(cold.coef).max()


class Looks:
    """A clock by which the time is over after some looks at it."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> bool:
        """Whether it is over."""
        self.left -= 1
        return self.left < 0


def test_progress_is_told_by_passes_at_first() -> None:
    """Gradients shrink in the last steps only; the first have made passes."""
    X, y = digits()
    problem = newton(held(X), y, one_vs_rest(10, 1.0), HINGE)
    told: list[tuple[int, int]] = []
    problem.report = lambda event: told.append((problem.passes, event.done))
    found = problem.solve()
    assert len(told) == found.newton > 5
    assert all(done >= min(900, 1000 * passes // 60) for passes, done in told)
    assert told[0][1] < 900
    assert told[-1][1] == 1000


def test_what_there_is_when_the_time_is_over_is_bounded_by_its_gap() -> None:
    """Wherever it is over, also within a step, which is not lost; a late end changes no bit."""
    X, y = digits()
    columns = one_vs_rest(4, 1.0)
    whole = newton(held(X), y % 4, columns, HINGE).solve()
    least, bound, within = np.full(4, np.inf), np.full(4, np.inf), 0
    for looks in range(1000):
        problem = newton(held(X), y % 4, columns, HINGE)
        problem.over = Looks(looks)
        found = problem.solve()
        if not found.stopped:
            break
        missing = found.objective - whole.objective
        assert found.coef.any(axis=0).all()
        assert (missing <= found.gap + 1e-12 * whole.objective).all()  # rounding
        # As good as the whole steps before it; these end where none is cut.
        assert (found.objective <= least * (1 + 1e-12)).all()
        assert not problem.cut or (found.gap <= bound).all()
        within += problem.cut and bool((found.objective < least).any())
        if not problem.cut:
            least, bound = found.objective, found.gap
    assert within > whole.newton
    np.testing.assert_array_equal(found.coef, whole.coef)
