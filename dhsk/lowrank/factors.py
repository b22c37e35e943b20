"""Second derivatives as preconditioners: one triangular factor for each class and C."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dhsk.arrays import Floats, Indices
from dhsk.lowrank.losses import Loss
from dhsk.lowrank.primal_passes import Columns, hessians
from dhsk.lowrank.spans import FeatureMatrix

_AT_ONCE: Final = 4
"""Matrices in memory for each one that is being summed: of two spans, the sum, a copy."""

_SHIFTS: Final = 12


class Factors:
    """Cholesky factors of I + C H, H being the second derivatives of the losses of a column.

    Columns of one class and one C share a factor, that of the first of them: folds differ little.

    Parameters
    ----------
    columns
        The columns that it is for.
    """

    def __init__(self, columns: Columns) -> None:
        keys = np.column_stack([columns.positive, columns.C])
        _, first = np.unique(keys, axis=0, return_index=True)
        self._of = columns.only(np.sort(first))
        self._found: dict[tuple[int, float], Any] = {}

    @staticmethod
    def bytes_of(columns: Columns, width: int, itemsize: int) -> int:
        """Bytes that the factors of some columns take, and making them."""
        keys = len(np.unique(np.column_stack([columns.positive, columns.C]), axis=0))
        return (keys + _AT_ONCE) * (width + 1) ** 2 * itemsize

    @property
    def columns(self) -> Columns:
        """One column of each factor."""
        return self._of

    def compute(
        self,
        Z: FeatureMatrix,
        codes: Indices,
        weights: NDArray[Any],
        V: Floats,
        loss: Loss,
        room: int,
    ) -> int:
        """Make all factors anew.

        Parameters
        ----------
        Z
            Features.
        codes, weights
            As for `gradients`, of all samples.
        V
            Coefficients of `columns`, (width + 1, J).
        loss
            The loss.
        room
            Bytes for matrices that are being summed: it decides how many passes are made.

        Returns
        -------
        int
            Passes over the features.
        """
        self._found.clear()
        each = _AT_ONCE * (Z.inner + 1) ** 2 * Z.dtype.itemsize
        count = max(1, room // each)
        passes = 0
        for start in range(0, len(self._of), count):
            some = slice(start, start + count)
            columns = self._of.only(some)
            total = sum_of(Z.map(hessians, (codes, weights), Z.into(V[:, some]), columns, loss))
            passes += 1
            for H, positive, C in zip(total, columns.positive, columns.C, strict=True):
                self._found[int(positive), float(C)] = _factor(Z, H, C)
        return passes

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._found)

    def solve(self, R: Floats, columns: Columns) -> Floats:
        """Apply the inverses to the columns of R, (width + 1, J); R itself without factors."""
        if not self._found:
            return R.copy()
        out = np.empty_like(R)
        keys = list(zip(columns.positive.tolist(), columns.C.tolist(), strict=True))
        for key in dict.fromkeys(keys):
            own = [j for j, other in enumerate(keys) if other == key]
            factor = self._found[key]
            out[:, own] = cho_solve(factor, R[:, own].astype(factor[0].dtype), check_finite=False)
        return out


def sum_of(parts: Iterator[Any]) -> Any:
    """Sum of arrays, in their order, into the first."""
    total = next(parts)
    for part in parts:
        total += part
    return total


def _factor(Z: FeatureMatrix, upper: NDArray[Any], C: float) -> Any:
    """Factor of I + C H for the features, H by its upper triangle for the spans' values."""
    if Z.root is None:
        H = upper
    else:
        whole = np.triu(upper) + np.triu(upper, 1).T
        half = Z.back(whole.astype(np.float64))
        H = Z.back(np.ascontiguousarray(half.T)).astype(upper.dtype)
    H *= H.dtype.type(C)
    diagonal = np.einsum("ii->i", H)
    diagonal += 1
    shift = np.finfo(H.dtype).eps * diagonal.max()
    for _ in range(_SHIFTS):  # rounding of a sum of squares may leave it just indefinite
        try:
            # By columns, as LAPACK wants it, this is the lower triangle: no copy across.
            return cho_factor(H.T, lower=True, check_finite=False)
        except LinAlgError:
            diagonal += shift
            shift *= 4
    raise LinAlgError("second derivatives are indefinite beyond rounding")  # never of real data
