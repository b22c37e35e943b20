"""Certificates of dual solutions against their definitions and scikit-learn; chains of boxes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

from dhsk.solvers import small
from dhsk.solvers.dual import (
    Dual,
    certify,
    gradient,
    improve,
    unfinished,
    violation_and_intercept,
)
from dhsk.solvers.smo import padded
from dhsk.solvers.whole import FINE_TOLERANCE, MORE_STEPS
from tests.optimum import solve_block

CHAIN = (0.01, 0.3, 1.0, 30.0, 1e3)

CLOSE = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Measured with six seeds: warm starts save 8 to 14 % of the steps."""

TIGHT = 1e-8
"""Tolerance at which two optimal objectives agree to `SAME`."""

SAME = 1e-9

ROUNDING = 1e-11
"""Sums of some hundred products in float64, relative to the sum of their sizes."""


def wide(K: Any) -> Any:
    """A padded matrix, the padding finite nonsense."""
    out = np.full((len(K), padded(len(K))), 1e3, K.dtype)
    out[:, : len(K)] = K
    return out


def problem(rng: Any, n: int = 150, flipped: float = 0.15) -> tuple[Any, Any]:
    """Noisy labels on a Gaussian kernel, the first class first."""
    X = rng.normal(size=(n, 3))
    s = np.where(X[:, 0] > 0, 1.0, -1.0) * np.where(rng.random(n) < flipped, -1.0, 1.0)
    order = np.argsort(-s, kind="stable")
    X, s = X[order], s[order]
    return np.exp(-((X[:, None] - X) ** 2).sum(-1) / 2), s


def dense(fit: Any, n: int) -> Any:
    """All coefficients of a fit."""
    b = np.zeros(n)
    b[fit.support] = fit.coef
    return b


def assert_certified(K: Any, s: Any, C: Any, fit: Any) -> None:
    """Everything that a fit says of itself is so, by loops over the definitions."""
    n = len(s)
    b = dense(fit, n)
    alpha, C = s * b, np.broadcast_to(C, n)
    size = float(np.abs(b).sum()) + 1
    assert ((alpha >= 0) & (alpha <= C)).all()
    assert abs(b.sum()) <= ROUNDING * size
    decision = K @ b
    f = s - decision
    up = [f[i] for i in range(n) if C[i] and (alpha[i] < C[i] if s[i] > 0 else alpha[i] > 0)]
    low = [f[i] for i in range(n) if C[i] and (alpha[i] > 0 if s[i] > 0 else alpha[i] < C[i])]
    assert fit.violation == pytest.approx(max(0.0, max(up) - min(low)), abs=ROUNDING * size)
    free = (alpha > 0) & (alpha < C)
    intercept = f[free].mean() if free.any() else (max(up) + min(low)) / 2
    assert fit.intercept == pytest.approx(intercept, abs=ROUNDING * size)
    norm2 = sum(b[i] * b[j] * K[i, j] for i in range(n) for j in range(n))
    assert fit.norm2 == pytest.approx(norm2, abs=ROUNDING * size)
    assert fit.objective == pytest.approx(alpha.sum() - norm2 / 2, abs=ROUNDING * size)
    hinge = np.maximum(0.0, 1 - s * (decision + fit.intercept))
    primal = norm2 / 2 + (C * hinge).sum()
    assert fit.gap == pytest.approx((primal - fit.objective) / primal, abs=ROUNDING * size)
    assert fit.gap >= -ROUNDING * size
    assert fit.support.tolist() == np.flatnonzero(b).tolist()


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-9])
def test_certificate_by_definition(rng: np.random.Generator, tol: float) -> None:
    """Violation, intercept, objective and gap are recomputed, at good and bad solutions."""
    K, s = problem(rng, 70)
    C = rng.choice([0.0, 0.1, 2.0], len(s))
    (fit,) = solve_block(wide(K), Dual(s, C[None]), tol)
    assert fit.converged
    assert fit.violation <= tol
    assert fit.steps > 0
    assert_certified(K, s, C, fit)


def test_a_model_goes_on_beyond_the_tolerance(rng: np.random.Generator) -> None:
    """Within a few times the steps; none from a start that the tolerance is content with."""
    K, s = problem(rng, 70)
    dual = Dual(s, np.full((1, len(s)), 2.0))
    (rough,), (fine,) = (solve_block(wide(K), dual, 1e-3, fine=fine) for fine in (False, True))
    assert FINE_TOLERANCE < rough.violation <= 1e-3
    assert fine.violation <= FINE_TOLERANCE
    assert rough.steps < fine.steps <= (1 + MORE_STEPS) * rough.steps
    assert fine.objective > rough.objective
    assert solve_block(wide(K), dual, 3.0, fine=True)[0].steps == 0


def test_a_model_stays_within_the_tolerance(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Violations rise and fall on the way: wherever the limit of the steps beyond it falls."""
    monkeypatch.setattr(small, "SMALL_SAMPLES", 0)
    K, s = problem(rng, 70)
    dual = Dual(s, np.full((1, len(s)), 50.0))
    (rough,) = solve_block(wide(K), dual, 1e-2)
    for more in range(1, 60):
        monkeypatch.setattr("dhsk.solvers.whole.MORE_STEPS", (more + 0.5) / rough.steps)
        (fit,) = solve_block(wide(K), dual, 1e-2, fine=True)
        assert fit.violation <= 1e-2, more
        assert fit.steps == rough.steps + more


def test_certificate_of_any_feasible_point(rng: np.random.Generator) -> None:
    """A point far from the optimum is said to be far, by as much as it is."""
    K, s = problem(rng, 60)
    b = np.zeros((1, 60))
    b[0, [0, 1, -1]] = 0.5, 0.25, -0.75
    dual = Dual(s, np.full((1, 60), 0.75))
    (fit,) = certify(dual, b, gradient(wide(K), dual, b), np.zeros((2, 1)), 1e-3)
    assert not fit.converged
    assert fit.violation > 0.1
    assert fit.gap > 0.1
    assert_certified(K, s, 0.75, fit)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_coefficients_and_intercept_are_those_of_libsvm(rng: np.random.Generator, C: float) -> None:
    """SVC of two classes turns the signs: positive is the second of its classes."""
    K, s = problem(rng)
    tol = 1e-7
    (fit,) = solve_block(wide(K), Dual(s, np.full((1, len(s)), C)), tol)
    peer = SVC(C=C, kernel="precomputed", tol=tol).fit(K, (s < 0).astype(int))
    theirs = np.zeros(len(s))
    theirs[peer.support_] = -peer.dual_coef_[0]
    # Both decisions are within their violations of the one optimal function.
    ours, peers = K @ dense(fit, len(s)), K @ theirs
    accuracy = np.sqrt(2 * len(s) * C * tol) + tol  # strong convexity: |w - w'|^2 / 2 <= gaps
    np.testing.assert_allclose(ours, peers, atol=accuracy)
    assert fit.intercept == pytest.approx(-peer.intercept_[0], abs=accuracy)
    np.testing.assert_allclose(
        ours + fit.intercept, -peer.decision_function(K), rtol=0, atol=2 * accuracy
    )


def test_intercept_of_no_free_coefficient_is_the_middle() -> None:
    """Two samples at their bounds allow an interval, of which LIBSVM takes the middle too."""
    K = np.array([[1.0, 0.0], [0.0, 2.0]])
    (fit,) = solve_block(wide(K), Dual(np.array([1.0, -1.0]), np.full((1, 2), 0.1)), 1e-6)
    assert fit.coef.tolist() == [0.1, -0.1]
    # f = (1 - 0.1, -1 + 0.2): the first may only shrink, the second only grow.
    assert fit.intercept == pytest.approx((0.9 - 0.8) / 2, abs=1e-15)
    peer = SVC(C=0.1, kernel="precomputed").fit(K, [0, 1])
    assert fit.intercept == pytest.approx(-peer.intercept_[0], abs=1e-15)
    assert fit.violation == 0


@pytest.mark.parametrize("chain", [CHAIN, CLOSE])
def test_chain_gives_the_cold_optima(rng: np.random.Generator, chain: Sequence[float]) -> None:
    """Starting from the smaller box changes the way, not the end; and if near it saves steps."""
    K, s = problem(rng)
    boxes = np.outer(chain, rng.uniform(0.5, 1.5, len(s)))
    warm = solve_block(wide(K), Dual(s, boxes, chain=len(chain)), TIGHT)
    cold = solve_block(wide(K), Dual(s, boxes, chain=1), TIGHT)
    for a, b, box in zip(warm, cold, boxes, strict=True):
        assert a.converged
        assert b.converged
        assert a.objective == pytest.approx(b.objective, rel=SAME)
        assert_certified(K, s, box, a)
    assert warm[0].steps == cold[0].steps
    if chain == CLOSE:
        assert sum(fit.steps for fit in warm) < sum(fit.steps for fit in cold)


def test_chains_do_not_mix(rng: np.random.Generator) -> None:
    """The first box of a fold starts at 0, whatever the fold before it ended with."""
    K, s = problem(rng)
    folds = rng.random((3, len(s))) < 0.7
    boxes = np.concatenate([np.outer((0.1, 10.0), fold) for fold in folds])
    together = solve_block(wide(K), Dual(s, boxes, chain=2), TIGHT)
    for fold in range(3):
        part = slice(2 * fold, 2 * fold + 2)
        alone = solve_block(wide(K), Dual(s, boxes[part], chain=2), TIGHT)
        for a, b in zip(together[part], alone, strict=True):
            np.testing.assert_array_equal(a.coef, b.coef)
            assert (a.steps, a.objective) == (b.steps, b.objective)
    for fit, box in zip(together, boxes, strict=True):
        assert box[fit.support].min() > 0
        assert_certified(K, s, box, fit)


@pytest.mark.parametrize("growth", [(0.3, 0.3), (0.3, 3.0), (1.0, 1.0), (1.0, 9.0), (1e9, 1e9)])
def test_chain_of_any_boxes_is_feasible(rng: np.random.Generator, growth: Any) -> None:
    """Boxes that shrink, are equal, far, or not proportional: no start breaks a bound."""
    K, s = problem(rng)
    first = rng.uniform(0.01, 0.02, len(s))
    boxes = np.array([first, first * rng.uniform(*growth, len(s))])
    warm = solve_block(wide(K), Dual(s, boxes, chain=2), 1e-6)
    cold = solve_block(wide(K), Dual(s, boxes), 1e-6)
    for a, b, box in zip(warm, cold, boxes, strict=True):
        assert_certified(K, s, box, a)
        assert a.objective == pytest.approx(b.objective, rel=1e-5)


def test_chain_on_indefinite_matrices(rng: np.random.Generator) -> None:
    """A norm below 0 has no best scale; the start is feasible all the same."""
    A = rng.normal(size=(50, 50))
    K, s = A + A.T, rng.choice([-1.0, 1.0], 50)
    boxes = np.outer((0.1, 1.0, 5.0), np.ones(50))
    for fit, box in zip(solve_block(wide(K), Dual(s, boxes, 3), 1e-3), boxes, strict=True):
        b = dense(fit, 50)
        assert ((s * b >= 0) & (s * b <= box)).all()
        assert abs(b.sum()) <= ROUNDING * np.abs(b).sum()
        assert fit.converged


def test_column_without_a_class_is_trivial(rng: np.random.Generator) -> None:
    """It has no coefficients, decides for its only class, and is solved; its neighbours are too."""
    K, s = problem(rng, 60)
    boxes = np.ones((4, 60))
    boxes[0] = 0
    boxes[1, s > 0] = 0
    boxes[2, s < 0] = 0
    dual = Dual(s, boxes, chain=4)
    assert [dual.trivial(c) for c in range(4)] == [True, True, True, False]
    fits = solve_block(wide(K), dual, 1e-3)
    for fit, intercept in zip(fits[:3], (0, -1, 1), strict=True):
        assert len(fit.support) == len(fit.coef) == 0
        assert (fit.intercept, fit.objective, fit.violation, fit.steps) == (intercept, 0, 0, 0)
        assert fit.gap == 0
        assert fit.converged
    assert len(fits[3].support) > 0
    assert_certified(K, s, 1.0, fits[3])


def test_held_out_samples_do_not_matter(rng: np.random.Generator) -> None:
    """A box of 0 is the same as a matrix without the sample."""
    K, s = problem(rng)
    kept = np.flatnonzero(rng.random(len(s)) < 0.6)
    boxes = np.zeros((1, len(s)))
    boxes[0, kept] = 2.0
    (whole,) = solve_block(wide(K), Dual(s, boxes), TIGHT)
    (part,) = solve_block(wide(K[np.ix_(kept, kept)]), Dual(s, boxes).part(kept), TIGHT)
    assert set(whole.support) <= set(kept)
    assert whole.objective == pytest.approx(part.objective, rel=SAME)
    assert whole.gap == pytest.approx(part.gap, abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradient_is_exact(rng: np.random.Generator, dtype: Any) -> None:
    """Of many rows, in float64 whatever the matrix, without the padding; to the same bits alone."""
    K, s = problem(rng, 600)
    K = K.astype(dtype)
    b = rng.normal(size=(3, 600)) * (rng.random((3, 600)) < 0.7)
    b[2] = 0
    f = gradient(wide(K), Dual(s, np.ones((3, 600))), b)
    for own, one in zip(f, b, strict=True):
        (alone,) = gradient(wide(K), Dual(s, np.ones((1, 600))), one[None])
        np.testing.assert_array_equal(own, alone)
    np.testing.assert_allclose(f, s - b @ K.astype(np.float64), rtol=0, atol=1e-12)
    assert f.dtype == np.float64


def test_unfinished_columns_are_those_above_the_tolerance(rng: np.random.Generator) -> None:
    """Only the columns that are asked for are solved, and the others are not touched."""
    K, s = problem(rng)
    dual = Dual(s, np.outer((1.0, 2.0, 3.0), np.ones(len(s))), chain=1)
    b, f = np.zeros(dual.shape), np.tile(s, (3, 1))
    assert unfinished(dual, b, f, 2.0) == []
    assert unfinished(dual, b, f, 1.999) == [0, 1, 2]
    work = improve(wide(K), dual, b, f, [1], 1e-3)
    assert unfinished(dual, b, f, 1e-3) == [0, 2]
    assert not b[[0, 2]].any()
    assert work[0, 1] > 0
    assert not work[:, [0, 2]].any()
    assert violation_and_intercept(dual, 1, b[1], f[1])[0] <= 1e-3
