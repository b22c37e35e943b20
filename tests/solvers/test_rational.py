"""Every solver against rational arithmetic: coefficients at their bounds, and the intercept.

The judge knows the weights as fractions, such as 60/42. In floating point the bounds of two classes
then differ in their sums by roundings, which must not decide between the ends of an interval.
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dhsk.execution.threads import Threads
from dhsk.solvers.box_solver import Limits
from dhsk.solvers.decomposition import Decomposition
from dhsk.solvers.dual import Dual, Fit
from dhsk.solvers.one_class import solve_one_class
from dhsk.solvers.problems import Pair
from dhsk.solvers.rounds import solve_in_rounds
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import ArraySource
from tests.optimum import solve_block
from tests.rational import Exact, active_sets, at_bounds, bounds_of, interval

TOL = 1e-11
"""Violations; kernel values and coefficients are of the order of 1."""

CLOSE = 1e-9
"""Intercepts of solutions of that violation."""


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets begin with few samples."""
    for name, count in (("FIRST", 4), ("LEAST", 4), ("LEAST_OF_CLASS", 2), ("SPARE", 2)):
        monkeypatch.setattr(f"dhsk.solvers.working_set.{name}", count)


# The problems


def balanced(s: Any) -> list[Fraction]:
    """Weights of `class_weight="balanced"`."""
    return [Fraction(len(s), 2 * s.count(side)) for side in s]


def kernel(rng: Any, n: int, kind: str) -> list[list[Fraction]]:
    """Inner products of samples of whole numbers, exact in float32 too."""
    X = rng.integers(-2, 3, (n, 3))
    if kind == "duplicates":
        X[n // 2 :] = X[: n - n // 2]
    elif kind == "constant":
        X[:] = 1
    return [[Fraction(int(v), 4) for v in row] for row in X @ X.T]


def boxes_of(weights: list[Fraction], values: list[float]) -> Any:
    """Bounds of alpha in floating point, weight times C, both rounded."""
    return np.array([[float(w) * C for w in weights] for C in values])


def cold(K: Any, dual: Dual) -> list[Fit]:
    """Each C alone."""
    return [solve_block(wide(K), Dual(dual.sign, box[None]), TOL)[0] for box in dual.boxes]


def warm(K: Any, dual: Dual) -> list[Fit]:
    """Each C from the smaller one."""
    return solve_block(wide(K), dual, TOL)


def on_working_sets(K: Any, dual: Dual) -> list[Fit]:
    """On sets of samples that grow."""
    pair = Pair(0, 1, np.arange(len(K)), dual)
    found, _ = Decomposition(TOL, 10**6).solve(ArraySource(K), {0: pair}, Threads(1))
    return found[0]


def in_rounds(K: Any, dual: Dual) -> list[Fit]:
    """Two to some variables at a time."""
    pair = Pair(0, 1, np.arange(len(K)), dual)
    size = max(2, len(K) // 3)
    ((_, fits),) = solve_in_rounds(ArraySource(K), {0: pair}, TOL, size, Threads(1))
    return fits


WAYS: list[Callable[[Any, Dual], list[Fit]]] = [cold, warm, on_working_sets, in_rounds]


def wide(K: Any) -> Any:
    """A padded matrix."""
    out = np.zeros((len(K), padded(len(K))), K.dtype)
    out[:, : len(K)] = K
    return out


def assert_exact(K: Any, s: list[int], boxes: Any, judged: Iterable[Exact | None]) -> None:
    """All ways have the intercepts and decisions of the judge, and sums that are 0 to rounding.

    Boxes without a judge are part of the chain only.
    """
    square = np.array(K, dtype=float)
    dual = Dual(np.array(s, dtype=float), boxes, len(boxes))
    exact = list(judged)
    for way in WAYS:
        for fit, box, known in zip(way(square, dual), boxes, exact, strict=True):
            if known is None:
                continue
            b, intercept = known
            size = 1 + np.abs(fit.coef).sum()
            assert fit.converged
            assert fit.intercept == pytest.approx(float(intercept), abs=CLOSE * size), way
            assert abs(fit.coef.sum()) <= 1e-13 * size
            assert (np.abs(fit.coef) <= box[fit.support]).all()
            decided = square[:, fit.support] @ fit.coef
            expected = square @ np.array(b, dtype=float)
            np.testing.assert_allclose(decided, expected, rtol=0, atol=CLOSE * size)


@pytest.mark.parametrize("kind", ["any", "duplicates", "constant"])
@pytest.mark.parametrize("sizes", [(2, 2), (1, 4), (2, 3), (1, 1)])
@pytest.mark.parametrize("weighted", ["balanced", "equal", "samples"])
def test_small_problems(
    rng: np.random.Generator, kind: str, sizes: tuple[int, int], weighted: str
) -> None:
    """All active sets are tried, for bounds of any kind."""
    values = [0.001, 0.1, 0.7, 20.0]
    s = [1] * sizes[0] + [-1] * sizes[1]
    K = kernel(rng, len(s), kind)
    weights = {
        "balanced": balanced(s),
        "equal": [Fraction(1)] * len(s),
        "samples": [Fraction(int(w), 3) for w in rng.integers(1, 4, len(s))],
    }[weighted]
    judged = (
        active_sets(K, s, bounds_of(s, [w * Fraction(str(C)) for w in weights])) for C in values
    )
    assert_exact(K, s, boxes_of(weights, values), judged)


@pytest.mark.parametrize("sizes", [(11, 19), (13, 13), (1, 40), (23, 47), (60, 7)])
@pytest.mark.parametrize("kind", ["any", "duplicates", "constant"])
def test_all_coefficients_at_their_bounds(
    rng: np.random.Generator, kind: str, sizes: tuple[int, int]
) -> None:
    """No trial is needed: the judge tests the conditions, and takes the middle."""
    values = [1e-4, 1 / 3e3, 0.001, 0.003]
    s = [1] * sizes[0] + [-1] * sizes[1]
    K = kernel(rng, len(s), kind)

    def judged() -> Iterator[Exact]:
        for C in values:
            box = [w * Fraction(C) for w in balanced(s)]
            b = [c * a for c, a in zip(s, box, strict=True)]
            assert sum(b) == 0
            found = interval(K, s, bounds_of(s, box), b)
            assert found is not None
            yield b, sum(found) / 2

    assert_exact(K, s, boxes_of(balanced(s), values), judged())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 2, 5, 6])
def test_some_coefficients_at_their_bounds(seed: int, weighted: bool) -> None:
    """On a flat kernel, after a smaller C; the judge tests the bounds nearest to a solution."""
    values, rng = [0.01, 0.1, 1.0, 10.0], np.random.default_rng(seed)
    s = [1] * 30 + [-1] * 30
    X = rng.normal(size=(60, 2)) + np.array(s)[:, None]
    square = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 200)
    weights = [Fraction(int(w)) for w in (rng.integers(1, 3, 60) if weighted else np.ones(60))]
    boxes = boxes_of(weights, values)
    K = [[Fraction(v) for v in row] for row in square.tolist()]
    exact = []
    for fit, C in zip(cold(square, Dual(np.array(s, float), boxes, 4)), values, strict=True):
        near = np.zeros(60)
        near[fit.support] = fit.coef
        bounds = bounds_of(s, [w * Fraction(str(C)) for w in weights])
        exact.append(at_bounds(K, s, bounds, near))
    assert any(exact)
    assert_exact(K, s, boxes, exact)


@pytest.mark.parametrize("weight", [Fraction(1), Fraction(1, 3), Fraction(30, 7)])
@pytest.mark.parametrize(("nu", "n"), [("0.1", 30), ("0.3", 70), ("0.7", 490), ("0.55", 100)])
def test_one_class_without_free_samples(weight: Fraction, nu: str, n: int) -> None:
    """Where nu n is whole, as many outliers are at their bounds, and the offset is the middle."""
    outside = int(Fraction(nu) * n)
    K = np.full((n, n), 4.0 * outside)  # of e_1, e_2, ... and their sum times 2
    K[outside:, :outside] = K[:outside, outside:] = 2
    K[:outside, :outside] = np.eye(outside)
    limits = Limits(TOL, 1 << 30)
    fit = solve_one_class(ArraySource(K), np.full(n, float(weight)), float(nu), limits)
    assert fit.coef.tolist() == [float(weight)] * outside + [0.0] * (n - outside)
    assert fit.offset == pytest.approx(float(weight * (1 + 2 * outside) / 2), rel=1e-14)
