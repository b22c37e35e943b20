"""Cholesky's factorisation by tiles: right, with the same bits on any number of threads."""

from typing import Any

import numpy as np
import pytest
from numpy.linalg import LinAlgError

from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import Threads
from dhsk.solvers.factor import TiledFactor

N = 2500
"""Samples: two whole tiles and a part of one."""


@pytest.fixture(scope="module")
def A() -> Any:
    """A matrix of condition about 1e4."""
    B = np.random.default_rng(0).normal(size=(N, 40))
    return B @ B.T + np.eye(N)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_solves(A: Any, dtype: Any) -> None:
    """To rounding: the backward error of Cholesky is at most some n eps |A| |x|."""
    R = np.random.default_rng(1).normal(size=(N, 3))
    X = TiledFactor(A.astype(dtype), Threads(2)).solve(R)
    assert X.dtype == dtype
    left = np.abs(A @ X.astype(np.float64) - R).max()
    assert left <= np.sqrt(N) * np.finfo(dtype).eps * np.linalg.norm(A, 2) * np.abs(X).max()


def test_bits_do_not_depend_on_threads(A: Any) -> None:
    """Tiles are the same on one thread and on three."""
    R = np.ones((N, 1))
    with one_blas_thread():
        one, three = (TiledFactor(A.copy(), Threads(k)).solve(R) for k in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_indefinite_matrices_are_refused(A: Any) -> None:
    """In the first tile, and in the last."""
    for place in (0, N - 1):
        wrong = A.copy()
        wrong[place, place] = -1.0
        with pytest.raises(LinAlgError):
            TiledFactor(wrong, Threads(2))
