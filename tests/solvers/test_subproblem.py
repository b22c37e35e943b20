"""Subproblems on working sets, which samples near them may join."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dhsk.solvers.dual import Dual
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.subproblem import SetTask, _GrowingSet, solve_on_set

TOL = 1e-8

SIZE, N = 20, 60


def task(largest: int) -> tuple[SetTask, Any]:
    """Two columns on a set of 20 of 60 samples, and the matrix of all."""
    rng = np.random.default_rng(0)
    sign = np.where(np.arange(N) % 2, 1.0, -1.0)
    X = rng.normal(size=(N, 2)) + 0.7 * sign[:, None]
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1))
    dual = Dual(sign, np.full((2, N), 1.0) * [[1.0], [10.0]])
    return SetTask(3, ArraySource(K), np.arange(N), dual, np.zeros((2, SIZE)), largest), K


def test_violators_join_until_there_are_none() -> None:
    """The solution is that of all samples, and the gradients are those of its coefficients."""
    some, K = task(largest=1000)
    found = solve_on_set(some, [0, 1], TOL)
    assert found.number == 3
    assert SIZE < len(found.inside) < N
    assert not np.delete(found.b, found.inside, axis=1).any()
    np.testing.assert_allclose(found.f, some.dual.sign - found.b @ K, rtol=0, atol=1e-12)
    for b, f, box in zip(found.b, found.f, some.dual.boxes, strict=True):
        lower, upper = np.minimum(some.dual.sign * box, 0), np.maximum(some.dual.sign * box, 0)
        assert f[b < upper].max() - f[b > lower].min() <= 4 * TOL


def test_only_columns_that_are_left_count() -> None:
    """Support vectors of others cost nothing."""
    some, K = task(largest=1000)
    both, one = solve_on_set(some, [0, 1], TOL), solve_on_set(some, [1], TOL)
    np.testing.assert_allclose(one.b[1], both.b[1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(one.f[1], some.dual.sign - one.b[1] @ K, rtol=0, atol=1e-12)
    assert not one.b[0].any()
    assert not one.work[:, 0].any()


@pytest.mark.parametrize("largest", [SIZE, 52, N])
def test_old_and_new_matrix_fit_together(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """While samples join there are two: together no larger than the largest one."""
    sizes = [SIZE]
    original = _GrowingSet.join

    def watched(self: Any, joining: Any) -> None:
        sizes.append(sizes[-1] + len(joining))
        original(self, joining)

    monkeypatch.setattr(_GrowingSet, "join", watched)
    solve_on_set(task(largest)[0], [0, 1], TOL)
    assert all(a**2 + b**2 <= largest**2 for a, b in pairwise(sizes))
    assert (len(sizes) > 1) == (largest == N)
