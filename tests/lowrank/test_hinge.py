"""The hinge loss: LIBLINEAR's optimum, and a duality gap that is one."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from dhsk.lowrank import hinge
from dhsk.lowrank.hinge import _Descent, room_of, solve_hinge
from dhsk.lowrank.primal import Solution
from dhsk.lowrank.primal_passes import Columns
from dhsk.progress import Progress, ignore
from dhsk.samples import open_samples
from dhsk.svm.runners import in_threads
from dhsk.svm.train import Problem

AGREEMENT = 1e-5
"""Greatest difference of objectives from LIBLINEAR's, relative (issue's bar)."""

ROUNDING = 1e-12
"""Of sums of 300 samples, as a part of the objective."""


def digits(n: int = 300, dtype: str = "float64") -> tuple[Any, Any]:
    """Images as features, and which of three classes they are in."""
    X, y = load_digits(return_X_y=True)
    return np.ascontiguousarray(X[:n] / 16, dtype), y[:n] % 3


def of_three(Z: Any, y: Any, C: float, weights: Any, tol: float) -> tuple[Problem, Columns]:
    """One class against the rest, for each of three."""
    weights = np.ones(len(y)) if weights is None else weights
    classes, group = np.arange(3), np.zeros(3, np.intp)
    problem = Problem(open_samples(Z), classes, y, weights, C, tol, None, weights)
    return problem, Columns(classes, group, np.full(3, C))


def solved(
    Z: Any,
    y: Any,
    C: float = 1.0,
    weights: Any = None,
    *,
    tol: float = 1e-7,
    seed: int = 0,
    threads: int = 1,
    report: Any = ignore,
) -> Solution:
    """Solution of all three."""
    problem, columns = of_three(Z, y, C, weights, tol)
    return solve_hinge(Z, problem, columns, seed, in_threads(threads), report)


def objective(Z: Any, signs: Any, upper: Any, v: Any) -> float:
    """What is minimised, by its definition."""
    return float(v @ v / 2 + upper @ np.maximum(0, 1 - signs * (Z @ v[:-1] + v[-1])))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_the_optimum_is_that_of_linear_svc(C: float, weighted: bool, dtype: str) -> None:
    """Also of features in float32, in whose last digits nothing is lost."""
    Z, y = digits(dtype=dtype)
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    found = solved(Z, y, C, weights)
    exact = Z.astype(np.float64)
    for j in range(3):
        signs = np.where(y == j, 1.0, -1.0)
        reference = LinearSVC(C=C, loss="hinge", tol=1e-7, max_iter=1_000_000, random_state=0)
        reference.fit(exact, signs, sample_weight=weights)
        v = np.append(reference.coef_[0], reference.intercept_)
        expected = objective(exact, signs, C * weights, v)
        assert found.objective[j] == pytest.approx(expected, rel=AGREEMENT)
        own = objective(exact, signs, C * weights, found.coef[:, j])
        assert found.objective[j] == pytest.approx(own, rel=ROUNDING)
    assert found.converged.all()
    np.testing.assert_allclose(found.relative, found.gap / found.objective)
    assert (found.relative <= 1e-7).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_gap_is_what_the_dual_objective_is_below_the_primal_one(dtype: str) -> None:
    """After any round, of coefficients that are those of the dual variables."""
    Z, y = digits(dtype=dtype)
    rng = np.random.default_rng(1)
    signs, upper = np.where(y == 1, 1, -1).astype(np.int8), rng.uniform(0, 5, len(y))
    upper[::7] = 0
    squares = 1 + np.square(Z, dtype=np.float64).sum(axis=1)
    descent = _Descent(Z, signs, upper, squares, np.flatnonzero(upper > 0), rng)
    exact = Z.astype(np.float64)
    for _ in range(3):
        descent.round()
        a = descent.alpha * signs
        w = np.append(a @ exact, a.sum())
        np.testing.assert_allclose(descent.w, w, atol=ROUNDING * np.abs(w).max())
        primal = objective(exact, signs, upper, w)
        dual = descent.alpha.sum() - w @ w / 2
        assert descent.objective == pytest.approx(primal, rel=ROUNDING)
        assert descent.gap == pytest.approx(primal - dual, abs=ROUNDING * primal)
        assert (descent.alpha >= 0).all()
        assert (descent.alpha <= upper).all()


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-4])
def test_the_gap_bounds_what_is_missing(C: float, tol: float) -> None:
    """A solution of a loose tolerance is short by no more than its certificate says."""
    Z, y = digits()
    rough, fine = solved(Z, y, C, tol=tol), solved(Z, y, C, tol=1e-9)
    missing = rough.objective - (fine.objective - fine.gap)  # the optimum is no lower
    assert (rough.gap > 0).all()
    assert (rough.objective - fine.objective <= rough.gap).all()
    assert (missing >= 0).all()
    assert (rough.relative <= tol).all()
    assert rough.converged.all()


def test_samples_of_weight_0_are_as_if_absent() -> None:
    """To the last bit, as the others are taken in the same order."""
    Z, y = digits()
    weights = np.where(np.arange(len(y)) % 4, 1.5, 0.0)
    used = weights > 0
    found, alone = solved(Z, y, 2.0, weights), solved(Z[used], y[used], 2.0, weights[used])
    np.testing.assert_array_equal(found.coef, alone.coef)
    np.testing.assert_array_equal(found.gap, alone.gap)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_seed_gives_the_same_bits_on_any_number_of_threads(dtype: str) -> None:
    """Another one takes the samples in another order."""
    Z, y = digits(dtype=dtype)
    one, two = solved(Z, y, seed=3), solved(Z, y, seed=3, threads=2)
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(two, name))
    assert (solved(Z, y, seed=4).coef != one.coef).any()


def test_samples_of_one_class() -> None:
    """Every column is solved, also one whose class has no sample or all."""
    Z, y = digits()
    found = solved(Z, np.zeros_like(y))
    assert found.converged.all()
    decisions = Z @ found.coef[:-1] + found.coef[-1]
    assert np.sign(decisions[:, 0]).min() == 1
    assert np.sign(decisions[:, 1:]).max() == -1


def test_features_of_zeros_leave_the_constant_one() -> None:
    """Its coefficient is at the greater class's margin."""
    y = np.repeat([0, 1, 2], [10, 30, 5])
    found = solved(np.zeros((45, 4)), y)
    np.testing.assert_allclose(found.coef[-1], [-1, 1, -1], atol=1e-6)
    np.testing.assert_array_equal(found.coef[:-1], 0)


def test_where_rounds_run_out_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gap is still one."""
    monkeypatch.setattr(hinge, "_MOST_ROUNDS", 2)
    Z, y = digits()
    short, fine = solved(Z, y, 100.0, tol=1e-12), solved(Z, y, 100.0, tol=1.0)
    assert not short.converged.any()
    assert fine.converged.all()
    assert (short.objective > 0).all()
    assert (short.gap > 1e-12 * short.objective).all()


def test_progress_is_of_the_digits_that_the_gap_has_lost() -> None:
    """It grows, and ends when all columns do."""
    events: list[Progress] = []
    found = solved(*digits(), 10.0, report=events.append)
    shares = [event.done / event.total for event in events]
    assert len(shares) > 2
    assert min(shares) >= 0
    assert shares[-1] == 1
    assert max(shares[:-1]) < 1
    assert found.newton > len(shares)
    assert found.passes > 3 * len(shares)


def test_features_are_not_copied() -> None:
    """It takes no more memory than is planned for it, on any number of threads."""
    n = 20_000
    rng = np.random.default_rng(2)
    Z, y = rng.normal(size=(n, 200)).astype(np.float32), rng.integers(0, 3, n)
    solved(Z[:50], y[:50], threads=2)  # compiles
    problem, columns = of_three(Z, y, 0.01, None, 1e-2)
    tracemalloc.start()
    try:
        solve_hinge(Z, problem, columns, 0, in_threads(2))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < room_of(n, 3) + 1_000_000  # threads, and Python's own objects
    assert Z.nbytes > 5 * peak
