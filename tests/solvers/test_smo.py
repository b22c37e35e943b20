"""The solver of one problem against generic solvers, and what it promises on every way out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import SVC

from dhsk.solvers.simd import BLOCK, SMALLEST_CURVATURE
from dhsk.solvers.smo import ascend, matrix_bytes, padded

ENOUGH = 1_000_000
"""Steps that no problem here needs."""

EPS = float(np.finfo(np.float64).eps)

EPS32 = float(np.finfo(np.float32).eps)

SLSQP = 1e-8
"""Above the accuracy that SLSQP reaches with ftol 1e-14 on objectives about 1."""


def wide(K: Any, dtype: Any = np.float64) -> Any:
    """A padded matrix; what pads it must never be used, and would be noticed."""
    n = len(K)
    out = np.full((n, padded(n)), 1e3, dtype)
    out[:, :n] = K
    return out


def problem(rng: Any, n: int, noise: float = 0.2) -> tuple[Any, Any]:
    """A Gaussian kernel, and signs of two classes that overlap."""
    X = rng.normal(size=(n, 3))
    s = np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    s[:2] = 1.0, -1.0
    return np.exp(-((X[:, None] - X) ** 2).sum(-1) / 2), s


def solve(
    K: Any, s: Any, lower: Any, upper: Any, tol: float, start: Any = None, **more: Any
) -> tuple[Any, Any, int, float]:
    """Coefficients, gradient, steps and violation of an unpadded problem."""
    n = len(s)
    b = np.zeros(n) if start is None else start.copy()
    exact = np.asarray(K, dtype=np.float64)
    f = s - exact @ b
    steps, left = ascend(
        wide(K, more.get("dtype", np.float64)), (lower, upper), b, f, tol, more.get("most", ENOUGH)
    )
    return b, f, steps, left


def box(s: Any, C: Any) -> tuple[Any, Any]:
    """Bounds of b for two classes."""
    return np.minimum(s * C, 0.0), np.maximum(s * C, 0.0)


def objective(K: Any, s: Any, b: Any) -> float:
    """What is maximised."""
    return float(s @ b - b @ np.asarray(K, dtype=np.float64) @ b / 2)


def violation(K: Any, s: Any, b: Any, lower: Any, upper: Any) -> float:
    """By its definition, pair by pair."""
    f = s - np.asarray(K, dtype=np.float64) @ b
    pairs = [
        f[i] - f[j]
        for i in range(len(b))
        if b[i] < upper[i]
        for j in range(len(b))
        if b[j] > lower[j]
    ]
    return max(0.0, *pairs) if pairs else 0.0


def drift(K: Any, b: Any, steps: int) -> float:
    """Rounding of a gradient that was updated so many times, each by at most |K| |b|."""
    size = 1 + np.abs(K).max() * (1 + np.abs(b).sum())
    return float(EPS * (10 + steps + len(b)) * size)


def assert_solved(K: Any, s: Any, bounds: Any, found: Any, tol: float, total: float) -> None:
    """Feasible, with the violation it says, which is what was asked for."""
    b, f, steps, left = found
    lower, upper = bounds
    assert (b >= lower).all()
    assert (b <= upper).all()
    assert abs(b.sum() - total) <= EPS * (steps + len(b)) * (1 + np.abs(b).max())
    rounding = drift(K, b, steps)
    np.testing.assert_allclose(f, s - np.asarray(K, np.float64) @ b, rtol=0, atol=rounding)
    assert 0 <= left <= tol
    assert left == pytest.approx(violation(K, s, b, lower, upper), abs=2 * rounding)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("kind", ["two classes", "one class", "any"])
def test_against_a_generic_solver(rng: np.random.Generator, n: int, kind: str) -> None:
    """SLSQP finds the same optimum, whatever the linear term, the bounds and the start."""
    K, s = problem(rng, n)
    if kind == "two classes":
        bounds, start = box(s, rng.uniform(0.2, 3, n)), np.zeros(n)
    elif kind == "one class":
        s, start = np.diag(K) * rng.uniform(0.5, 2, n), np.full(n, 1 / n)
        bounds = np.zeros(n), np.full(n, 1.5 / n)
    else:
        s, start = rng.normal(size=n), rng.normal(size=n)
        bounds = start - rng.uniform(0, 1, n), start + rng.uniform(0, 1, n)
    tol = 1e-10
    found = solve(K, s, *bounds, tol, start)
    assert_solved(K, s, bounds, found, tol, start.sum())
    best = minimize(
        lambda b: -objective(K, s, b),
        start,
        jac=lambda b: K @ b - s,
        bounds=list(zip(*bounds, strict=True)),
        constraints={"type": "eq", "fun": lambda b: b.sum() - start.sum(), "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert objective(K, s, found[0]) == pytest.approx(-best.fun, rel=SLSQP, abs=SLSQP)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130])
def test_against_libsvm(rng: np.random.Generator, n: int, dtype: Any) -> None:
    """At least the objective of LIBSVM, on matrices around whole blocks and in both types."""
    K, s = problem(rng, max(n, 2))
    K, s = K[:n, :n].astype(dtype), s[:n]
    for C in (0.1, 10.0):
        tol, bounds = 1e-6, box(s, C)
        found = solve(K, s, *bounds, tol, dtype=dtype)
        assert_solved(K, s, bounds, found, tol, 0.0)
        if n == 1:
            assert found[2:] == (0, 0.0)
            continue
        peer = SVC(C=C, kernel="precomputed", tol=tol).fit(K.astype(np.float64), s)
        theirs = np.zeros(n)
        theirs[peer.support_] = peer.dual_coef_[0]
        best = objective(K, s, theirs)
        # Within the bounds a violation of tol costs at most tol for each unit of coefficients.
        assert objective(K, s, found[0]) >= best - tol * np.abs(found[0]).sum()
        assert objective(K, s, found[0]) == pytest.approx(best, rel=1e-6)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 70),
    rank=st.integers(1, 70),
    log_C=st.floats(-3, 3),
    log_tol=st.floats(-8, -1),
)
def test_every_problem_is_solved(
    seed: int, n: int, rank: int, log_C: float, log_tol: float
) -> None:
    """Also of low rank, with boxes of 0, and samples given twice."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) / np.sqrt(rank)
    X[n // 2] = X[0]
    s = rng.choice([-1.0, 1.0], n)
    bounds = box(s, 10.0**log_C * rng.choice([0.0, 0.5, 1.0], n))
    tol = 10.0**log_tol
    found = solve(X @ X.T, s, *bounds, tol)
    assert_solved(X @ X.T, s, bounds, found, tol, 0.0)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 140))
def test_indefinite_matrices_end(seed: int, n: int) -> None:
    """Any symmetric matrix gives a point that two variables at a time do not improve."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    s, tol = rng.choice([-1.0, 1.0], n), 1e-3
    bounds = box(s, 1.0)
    found = solve(A + A.T, s, *bounds, tol)
    assert found[2] < ENOUGH
    assert_solved(A + A.T, s, bounds, found, tol, 0.0)


def test_steps_are_counted_and_limited(rng: np.random.Generator) -> None:
    """It stops where it is told to, with the violation of that point, and goes on from there."""
    K, s = problem(rng, 100)
    bounds = box(s, 10.0)
    whole = solve(K, s, *bounds, 1e-6)
    b = np.zeros(100)
    for most in (0, 1, 7):
        b, _, steps, left = solve(K, s, *bounds, 1e-6, b, most=most)
        assert steps == most
        rounding = drift(K, b, most)
        assert left == pytest.approx(violation(K, s, b, *bounds), abs=rounding)
        assert left > 1e-6
    ascend(wide(K), bounds, b, s - K @ b, 1e-6, ENOUGH)
    assert objective(K, s, b) == pytest.approx(objective(K, s, whole[0]), rel=1e-6)
    assert solve(K, s, *bounds, 1e-6, whole[0])[2] == 0


def test_every_step_ascends(rng: np.random.Generator) -> None:
    """The objective never falls, by more than its rounding."""
    K, s = problem(rng, 65)
    bounds = box(s, 5.0)
    b = np.zeros(65)
    values = [0.0]
    for _ in range(60):
        b = solve(K, s, *bounds, 1e-9, b, most=1)[0]
        values.append(objective(K, s, b))
    assert (np.diff(values) >= -EPS * 65 * max(values)).all()
    assert values[1] > values[0]


def test_partner_is_chosen_by_second_order() -> None:
    """The first step takes LIBSVM's pair: of equal gradients the one farthest along the gain."""
    X = np.array([[0.0], [3.0], [1.0], [2.0]])
    K, s = X @ X.T, np.array([1.0, -1.0, -1.0, -1.0])
    b, _, steps, _ = solve(K, s, *box(s, 100.0), 1e-9, most=1)
    # The gain is (1 + 1)^2 over the squared distance: the nearest has most, with alpha = 2 / 1.
    assert steps == 1
    np.testing.assert_allclose(b, [2.0, 0.0, -2.0, 0.0], rtol=4 * EPS)


@pytest.mark.parametrize(
    ("near", "far", "wanted"),
    [((0.2, -1.0), (1.7, -1.0), "far"), ((0.2, -1.0), (1.9, -1.0), "near"),
     ((0.2, -1.0), (2.1, -2.0), "far")],
)  # fmt: skip
@pytest.mark.parametrize("places", [(1, 70), (70, 1), (129, 3)])
def test_partner_is_chosen_by_second_order_in_other_blocks(
    near: Any, far: Any, wanted: str, places: Any
) -> None:
    """Points on a line, one of gradient 1 at 1: the gain of x is d^2 over 1 + x^2 - 2 x."""
    x, s = np.full(130, 50.0), np.full(130, -1.0)
    x[0], s[0] = 1.0, 1.0
    for place, (point, linear) in zip(places, (near, far), strict=True):
        x[place], s[place] = point, linear
    b, _, _, _ = solve(np.outer(x, x), s, np.full(130, -1e3), np.full(130, 1e3), 1e-9, most=1)
    assert np.flatnonzero(b).tolist() == [0, places[0] if wanted == "near" else places[1]]


def test_bounds_are_reached_exactly(rng: np.random.Generator) -> None:
    """From points whose distance to the bound, added to them, rounds beside it."""
    n = 400
    side = np.where(np.arange(n) % 2, 1.0, -1.0)
    start, s = side * rng.uniform(1, 2, n), -side * rng.uniform(1, 2, n)
    close = -side * rng.uniform(0.01, 0.1, n)  # where each will go
    lower, upper = np.minimum(close, start - 1), np.maximum(close, start + 1)
    lower[side > 0], upper[side < 0] = close[side > 0], close[side < 0]
    assert (start + (close - start) != close).mean() > 0.5
    b = solve(1e-9 * np.eye(n), s, lower, upper, 1e-6, start)[0]
    within = (b > lower) & (b < upper)
    assert within.sum() <= 1  # what the sum leaves over


@pytest.mark.parametrize("n", [2, 64, 66, 200])
def test_ties(n: int) -> None:
    """All samples the same: no curvature at all, and the boxes are filled."""
    s = np.where(np.arange(n) % 2, 1.0, -1.0)
    bounds = box(s, 3.0)
    b, f, steps, left = solve(np.ones((n, n)), s, *bounds, 1e-6)
    assert (b == 3.0 * s).all()
    assert left == 0
    assert steps == n // 2
    np.testing.assert_array_equal(f, s)


def test_opposite_labels_of_one_sample_take_the_whole_box() -> None:
    """What stands for the curvature of 0 is so small that the step ends at the bound."""
    s = np.array([1.0, -1.0])
    for C in (1e-3, 1e6):
        b, _, steps, _ = solve(np.ones((2, 2)), s, *box(s, C), 1e-3)
        assert steps == 1
        assert b.tolist() == [C, -C]
    assert 2 / SMALLEST_CURVATURE > 1e12


def test_nothing_to_do() -> None:
    """One class, boxes of 0, or a point that is the optimum: no step, and no violation."""
    K = np.eye(3)
    for s, C in (([1.0, 1.0, 1.0], 1.0), ([1.0, -1.0, 1.0], 0.0)):
        b, _, steps, left = solve(K, np.array(s), *box(np.array(s), C), 1e-9)
        assert (b.any(), steps, left) == (False, 0, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [63, 64, 65, 130])
def test_padding_is_never_used(rng: np.random.Generator, n: int, dtype: Any) -> None:
    """Whatever finite numbers stand beyond the last column, the solution is the same."""
    K, s = problem(rng, n)
    lower, upper = box(s, 3.0)
    found = []
    for filling in (0.0, -1e30, 1e30):
        padded_K = wide(K, dtype)
        padded_K[:, n:] = filling
        b, f = np.zeros(n), s.copy()
        found.append(
            (*ascend(padded_K, (lower, upper), b, f, 1e-6, ENOUGH), b.tolist(), f.tolist())
        )
    assert found[0] == found[1] == found[2]
    assert padded(n) % BLOCK == 0
    assert 0 <= padded(n) - n < BLOCK


def test_float32_is_read_as_it_is(rng: np.random.Generator) -> None:
    """A float32 matrix gives step by step what the same numbers give in float64."""
    K, s = problem(rng, 90)
    single = K.astype(np.float32)
    one = solve(single, s, *box(s, 10.0), 1e-6, dtype=np.float32)
    two = solve(single, s, *box(s, 10.0), 1e-6, dtype=np.float64)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    assert one[2:] == two[2:]


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 140),
    rank=st.integers(1, 70),
    log_C=st.floats(-3, 3),
    log_scale=st.floats(-1, 3),
    zone=st.sampled_from([0.0, 0.1]),
)
def test_gradients_in_float32_end(
    seed: int, n: int, rank: int, log_C: float, log_scale: float, zone: float
) -> None:
    """Where the tolerance allows them: at the violation they say, up to their rounding."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) / np.sqrt(rank)
    X[n // 2] = X[0]
    K, s = (X @ X.T).astype(np.float32), 10.0**log_scale * rng.normal(size=n)
    largest, tol = 10.0**log_C, 1e-4 * 10.0**log_scale
    b, f = np.zeros(n), s.copy()
    bounds = np.full(n, -largest), np.full(n, largest)
    steps, left = ascend(wide(K, np.float32), bounds, b, f, tol, ENOUGH, zone=zone)
    assert steps < ENOUGH
    # Each update leaves half a unit in the last place of a gradient of at most |s| + |K| |b|.
    size = np.abs(s).max() + np.abs(K).max() * (1 + np.abs(b).sum())
    rounding = EPS32 * (10 + steps + n) * size
    np.testing.assert_allclose(f, s - K.astype(np.float64) @ b, rtol=0, atol=rounding)
    assert left <= max(tol, 4 * EPS32 * size)


def test_float32_gradients_are_for_tolerances_above_their_rounding() -> None:
    """A violation below it is reached in float64."""
    rng = np.random.default_rng(0)
    K, s = problem(rng, 90)
    single = K.astype(np.float32)
    for scale in (1.0, 1e6):
        b, f = np.zeros(90), scale * s
        bounds = box(s, 10.0 * scale)
        ascend(wide(single, np.float32), bounds, b, f, 1e-3, ENOUGH)
        exact = scale * s - single.astype(np.float64) @ b
        error = np.abs(f - exact).max()
        assert (error < 1e-12 * scale) == (scale > 1.0)
        assert error < 1e-4


def test_matrix_bytes_count_padding_and_copy() -> None:
    """Rows are padded to whole blocks; a matrix in double precision has a copy in single."""
    assert matrix_bytes(65, np.dtype(np.float32)) == 65 * 128 * 4
    assert matrix_bytes(65, np.dtype(np.float64)) == 65 * 128 * 12
