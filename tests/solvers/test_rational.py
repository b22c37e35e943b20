"""Every solver against rational arithmetic: coefficients at their bounds, and the intercept.

The judge knows the weights as fractions, such as 60/42. In floating point the bounds of two classes
then differ in their sums by roundings, which must not decide between the ends of an interval.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from dhsk.execution.threads import Threads
from dhsk.solvers.decomposition import Decomposition
from dhsk.solvers.dual import Dual, Fit
from dhsk.solvers.one_class import solve_one_class
from dhsk.solvers.pairs import solve_block
from dhsk.solvers.problems import Pair
from dhsk.solvers.rounds import solve_in_rounds
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import ArraySource

TOL = 1e-11
"""Violations; kernel values and coefficients are of the order of 1."""

CLOSE = 1e-9
"""Intercepts of solutions of that violation."""

Exact = tuple[list[Fraction], Fraction]
"""Coefficients b, and the intercept."""


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets begin with few samples."""
    for name, count in (("FIRST", 4), ("LEAST", 4), ("LEAST_OF_CLASS", 2), ("SPARE", 2)):
        monkeypatch.setattr(f"dhsk.solvers.working_set.{name}", count)


# The judge


def root(A: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Solution of a linear system by elimination; None if it is singular."""
    rows, n = [[*row, r] for row, r in zip(A, right, strict=True)], len(A)
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]


def interval(K: Any, s: Any, bounds: Any, b: Any) -> tuple[Fraction, Fraction] | None:
    """Intercepts that make feasible coefficients optimal; None if there are none."""
    lower, upper = bounds
    f = [s[i] - sum(k * c for k, c in zip(K[i], b, strict=True) if c) for i in range(len(s))]
    low = max((f[i] for i in range(len(s)) if b[i] < upper[i]), default=None)
    high = min((f[i] for i in range(len(s)) if b[i] > lower[i]), default=None)
    low, high = (high if low is None else low), (low if high is None else high)
    assert low is not None
    assert high is not None
    return (low, high) if low <= high else None


def active_sets(K: Any, s: Any, bounds: Any) -> Exact:
    """Optimum with sum 0 by trial of all sets of free coefficients, the smallest sets first."""
    lower, upper = bounds
    n = len(s)
    for count in range(n + 1):
        for free in combinations(range(n), count):
            others = [i for i in range(n) if i not in free]
            for ends in product(*({lower[i], upper[i]} for i in others)):
                b = [Fraction(0)] * n
                for i, end in zip(others, ends, strict=True):
                    b[i] = end
                if not free and sum(b):
                    continue
                if free:
                    system = [[*(K[i][j] for j in free), Fraction(1)] for i in free]
                    system += [[Fraction(1)] * count + [Fraction(0)]]
                    rest = [s[i] - sum(K[i][j] * b[j] for j in others) for i in free]
                    solved = root(system, [*rest, -sum(b)])
                    if solved is None:
                        continue
                    for i, value in zip(free, solved[:-1], strict=True):
                        b[i] = value
                    if not all(lower[i] < b[i] < upper[i] for i in free):
                        continue
                if found := interval(K, s, bounds, b):
                    return b, sum(found) / 2
    raise AssertionError("a convex problem has an optimum")


def bounds_of(s: Any, box: Any) -> tuple[list[Fraction], list[Fraction]]:
    """Bounds of b = s alpha."""
    return [min(c * a, 0) for c, a in zip(s, box, strict=True)], [
        max(c * a, 0) for c, a in zip(s, box, strict=True)
    ]


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
    (fits,) = Decomposition(TOL, 10**6).solve(ArraySource(K), {0: pair}, Threads(1)).values()
    return fits


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


def assert_exact(K: Any, s: list[int], boxes: Any, judged: Iterator[Exact]) -> None:
    """All ways have the intercepts and decisions of the judge, and sums that are 0 to rounding."""
    square = np.array(K, dtype=float)
    dual = Dual(np.array(s, dtype=float), boxes, len(boxes))
    exact = list(judged)
    for way in WAYS:
        for fit, box, (b, intercept) in zip(way(square, dual), boxes, exact, strict=True):
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


@pytest.mark.parametrize("weight", [Fraction(1), Fraction(1, 3), Fraction(30, 7)])
@pytest.mark.parametrize(("nu", "n"), [("0.1", 30), ("0.3", 70), ("0.7", 490), ("0.55", 100)])
def test_one_class_without_free_samples(weight: Fraction, nu: str, n: int) -> None:
    """Where nu n is whole, as many outliers are at their bounds, and the offset is the middle."""
    outside = int(Fraction(nu) * n)
    K = np.full((n, n), 4.0 * outside)  # of e_1, e_2, ... and their sum times 2
    K[outside:, :outside] = K[:outside, outside:] = 2
    K[:outside, :outside] = np.eye(outside)
    fit = solve_one_class(wide(K), np.full(n, float(weight)), float(nu), TOL)
    assert fit.coef.tolist() == [float(weight)] * outside + [0.0] * (n - outside)
    assert fit.offset == pytest.approx(float(weight * (1 + 2 * outside) / 2), rel=1e-14)
