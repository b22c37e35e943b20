"""Cholesky's factorisation in the memory of the matrix, on all threads of an executor.

LAPACK's runs on the threads of BLAS, which is on one beside tasks, and its last bits depend on
their number. Here tiles are factored and multiplied in a fixed order.
"""

from typing import Any, Final, Literal

from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from dhsk.arrays import blocks
from dhsk.execution.tasks import Executor

_EDGE: Final = 1024
"""Edge of tiles."""


class TiledFactor:
    """The lower factor L of a symmetric positive definite A = L L', in place of A.

    Parameters
    ----------
    A
        Symmetric matrix, (n, n), with contiguous rows, which is overwritten: its lower triangle by
        L.
    executor
        Runs the products of tiles.

    Raises
    ------
    LinAlgError
        A is not positive definite to rounding.
    """

    def __init__(self, A: NDArray[Any], executor: Executor) -> None:
        self._L = A
        self._tiles = list(blocks(len(A), _EDGE))
        for number, own in enumerate(self._tiles):
            A[own, own] = cholesky(A[own, own], lower=True, check_finite=False)
            below = self._tiles[number + 1 :]
            for _ in executor.run(self._solve_tile, ((i, own) for i in below), ordered=True):
                pass
            left = ((i, j, own) for k, i in enumerate(below) for j in below[: k + 1])
            for _ in executor.run(self._subtract, left, ordered=True):
                pass

    def _solve_tile(self, i: slice, own: slice) -> None:
        """L[i, own] = A[i, own] L[own, own]'^-1: the task of a thread."""
        A = self._L
        A[i, own] = _triangular(A[own, own], A[i, own].T).T

    def _subtract(self, i: slice, j: slice, own: slice) -> None:
        """A[i, j] less the product of two tiles: the task of a thread."""
        A = self._L
        A[i, j] -= A[i, own] @ A[j, own].T

    def solve(self, R: NDArray[Any]) -> NDArray[Any]:
        """A^-1 R for the columns of R, (n, k), in the type of A."""
        L, X = self._L, R.astype(self._L.dtype)
        for own in self._tiles:
            known = slice(0, own.start)
            X[own] = _triangular(L[own, own], X[own] - L[own, known] @ X[known])
        for own in reversed(self._tiles):
            known = slice(own.stop, None)
            rest = X[own] - L[known, own].T @ X[known]
            X[own] = _triangular(L[own, own], rest, trans="T")
        return X


def _triangular(L: Any, R: Any, trans: Literal["N", "T"] = "N") -> NDArray[Any]:
    found: NDArray[Any] = solve_triangular(L, R, trans, lower=True, check_finite=False)
    return found
