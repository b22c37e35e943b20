"""Low-rank preconditioner: exact inverse of what it approximates, and as good as it says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh

import dhsk
from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.execution.threads import Threads
from dhsk.nystrom import preconditioner
from dhsk.nystrom.preconditioner import (
    LowRankPreconditioner,
    _cholesky,
    precondition,
    usual_rank,
)

KERNEL = dhsk.HeatKernel.at_scale(12, 1.0)

LARGEST = 1e4
"""Largest eigenvalue of F' F / D below, at most: rounding is eps times that."""


@pytest.fixture
def rows(counts: Callable[[int, int], Any]) -> Any:
    """Mapped samples."""
    return np.asarray(dhsk.hyperspherical_map(counts(300, 12)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_inverse_is_that_of_the_factor(rng: np.random.Generator, dtype: str) -> None:
    """Of the rounded factor: the preconditioner is positive definite in float32 too."""
    F, shift = rng.normal(size=(90, 7)).astype(dtype), rng.uniform(0.05, 2.0, 90)
    P = F.astype(float) @ F.T.astype(float) + np.diag(shift)
    R = rng.normal(size=(90, 3))
    found = LowRankPreconditioner(F, shift, Threads(1)).solve(R)
    eps = np.finfo(float if dtype == "float64" else np.float32).eps
    np.testing.assert_allclose(P @ found, R, atol=LARGEST * eps)


def test_threads_and_blocks(
    rows: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads do not move a bit, blocks move rounding only."""
    R, shift = rng.normal(size=(300, 2)), np.full(300, 0.01)
    whole = precondition(rows, KERNEL, shift, 40, 1)
    assert whole is not None
    monkeypatch.setattr(preconditioner, "_ROWS", 64)
    parts = []
    for threads in (1, 3):
        made = precondition(rows, KERNEL, shift, 40, threads)
        assert made is not None
        parts.append(made.solve(R))
    assert np.array_equal(*parts)
    np.testing.assert_allclose(parts[0], whole.solve(R), rtol=1e-9)


@pytest.mark.parametrize("alpha", [10.0, 1.0])
def test_enough_columns_and_no_more(rows: Any, alpha: float) -> None:
    """Where few columns leave at most alpha, eigenvalues are between 1 and 2, as the theorem says.

    With fewer columns they would not be promised to.
    """
    shift = np.full(300, alpha)
    made = precondition(rows, KERNEL, shift, 300, 1)
    assert made is not None
    assert 0 < made.rank < 300
    A = KERNEL(rows) + np.diag(shift)
    P = np.linalg.inv(made.solve(np.eye(300)))
    values = eigh(A, (P + P.T) / 2, eigvals_only=True)
    assert values[0] > 1 - 1e-9
    assert 1.01 < values[-1] < 2
    left = np.trace(A - P)
    column = left / (300 - made.rank)  # one column less leaves at least the mean of the rest
    assert left <= alpha < left + 300 * column


def test_none_where_the_diagonal_dominates(rows: Any) -> None:
    """If D is above the trace of K, its inverse is all there is to gain."""
    assert precondition(rows, KERNEL, np.full(300, 301.0), 40, 1) is None


@pytest.mark.parametrize("K", [np.zeros((3, 3)), -np.eye(3)])
def test_what_no_rounding_explains_ends_with_an_error(K: Floats) -> None:
    """It was tried for ever."""
    with pytest.raises(InputError, match=r"3 landmarks.* not positive semi-definite"):
        _cholesky(K)


def test_a_singular_matrix_has_a_factor() -> None:
    """Equal samples; what is added is of rounding."""
    root = _cholesky(np.ones((3, 3)))
    np.testing.assert_allclose(root @ root.T, np.ones((3, 3)), atol=1e-10)


@pytest.mark.parametrize(
    ("n", "dim", "room", "computed", "least", "most"),
    [
        (999, 100, 10**9, True, 0, 0),
        (1000, 100, 10**9, True, 100, 250),
        (100_000, 100, 10**10, True, 4000, 6000),
        (100_000, 100, 10**9, True, 950, 1000),  # 1.25 factors of 8 bytes each
        (10_000, 100, 10**10, False, 400, 600),
        (100_000, 100, 10**6, True, 0, 0),
    ],
)
def test_usual_rank(n: int, dim: int, room: int, computed: bool, least: int, most: int) -> None:
    """More columns where passes cost more; none for few samples or in no memory."""
    assert least <= usual_rank(n, dim, 8, room, computed=computed) <= most
