"""Second derivatives as preconditioners: one triangular factor for each class and C."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dhsk.arrays import Floats, Indices, blocks
from dhsk.linear.features import Features, sum_of
from dhsk.linear.losses import Loss
from dhsk.linear.passes import Columns, Estimate, active, hessians

_AT_ONCE: Final = 4
"""Matrices in memory for each one that is being summed: of two spans, the sum, a copy."""

_LEAST_SHARE: Final = 1 / 8
_ENOUGH: Final = 2
"""Second derivatives are estimated by a share of the active samples, but by no less than 2 a
feature."""

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

    def columns_like(self, others: Columns) -> Columns:
        """One column of each factor that some columns use."""
        wanted = set(keys_of(others))
        return self._of.only([key in wanted for key in keys_of(self._of)])

    def compute(
        self,
        Z: Features,
        codes: Indices,
        weights: NDArray[Any],
        V: Floats,
        columns: Columns,
        loss: Loss,
        room: int,
    ) -> int:
        """Make some factors anew.

        Parameters
        ----------
        Z
            Features.
        codes, weights
            As for `gradients`, of all samples.
        V
            Coefficients of `columns`, (width + 1, J).
        columns
            From `columns_like`.
        loss
            The loss.
        room
            Bytes for matrices that are being summed: it decides how many passes are made.

        Returns
        -------
        int
            Passes over the features.
        """
        each = _AT_ONCE * (Z.inner + 1) ** 2 * Z.dtype.itemsize
        count = max(1, room // each)
        share = _share(Z, codes, weights, V, columns, loss)
        passes = 1
        for some in blocks(len(columns), count):
            own = columns.only(some)
            made = _made(Z, codes, weights, V[:, some], own, loss, share[some])
            self._found.update(zip(keys_of(own), made, strict=True))
            passes += 1
        return passes

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._found)

    def solve(self, R: Floats, columns: Columns) -> Floats:
        """Apply the inverses to the columns of R, (width + 1, J); without a factor, nothing."""
        out = R.copy()
        keys = keys_of(columns)
        for key in dict.fromkeys(keys):
            if key not in self._found:
                continue
            own = [j for j, other in enumerate(keys) if other == key]
            factor = self._found[key]
            out[:, own] = cho_solve(factor, R[:, own].astype(factor[0].dtype), check_finite=False)
        return out


def keys_of(columns: Columns) -> list[tuple[int, float]]:
    """Class and C of each column."""
    return list(zip(columns.positive.tolist(), columns.C.tolist(), strict=True))


def _share(
    Z: Features,
    codes: Indices,
    weights: NDArray[Any],
    V: Floats,
    columns: Columns,
    loss: Loss,
) -> Floats:
    """Part of the samples by which second derivatives are estimated, (J,)."""
    counts = sum_of(Z.map(active, (codes, weights), Z.into(V), columns, loss))
    share: Floats = np.clip(_ENOUGH * Z.width / np.maximum(1, counts), _LEAST_SHARE, 1)
    return share


def _made(
    Z: Features,
    codes: Indices,
    weights: NDArray[Any],
    V: Floats,
    columns: Columns,
    loss: Loss,
    share: Floats,
) -> Iterator[Any]:
    """Factors of some columns."""
    if Z.values is not None:  # a task a column: no matrices of spans to be added up
        calls = [
            (V[:, [j]], columns.only([j]), loss, Estimate(share[[j]])) for j in range(len(columns))
        ]
        found = [H for (H,) in Z.whole(hessians, (codes, weights), calls)]
    else:
        root = None if Z.root is None else Z.root.astype(Z.dtype)
        given = (Z.into(V), columns, loss, Estimate(share, root))
        found = list(sum_of(Z.map(hessians, (codes, weights), *given)))
    # LAPACK on one thread: on several it rounds differently, whatever else the process does.
    for j, C in enumerate(columns.C):
        yield _factor(found[j], C)
        found[j] = None


def _factor(H: NDArray[Any], C: float) -> Any:
    """Factor of I + C H; H is used up."""
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
