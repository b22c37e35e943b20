"""Dual problems of two classes solved in rational arithmetic: the judge of the tests of SVMs."""

from fractions import Fraction
from itertools import combinations, product
from typing import Any

Exact = tuple[list[Fraction], Fraction]
"""Coefficients b, and the intercept."""


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


def at_bounds(K: Any, s: Any, bounds: Any, near: Any) -> Exact | None:
    """The optimum at the bounds that are nearest to some coefficients; None if it is not there."""
    b = [
        min(ends, key=lambda end, own=float(own): abs(end - own))  # type: ignore[misc]
        for own, *ends in zip(near, *bounds, strict=True)
    ]
    found = None if sum(b) else interval(K, s, bounds, b)
    return found and (b, sum(found) / 2)
