"""Preconditioner of Newton's method: a Cholesky factor of the Hessian for each class and C.

An eighth of the samples took as many conjugate gradients as 0.4 of them, a 37th took a quarter
more. Squares are summed of features, after the normalization: those of kernel values lose small
components in float32 (101 passes in place of 47).
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dhsk.arrays import Floats, blocks
from dhsk.linear.features import Features, sum_of
from dhsk.linear.losses import Loss
from dhsk.linear.passes import Columns, Estimate, Targets, active, hessians

_AT_ONCE: Final = 4
"""Matrices in memory for each Hessian being summed: those of two spans, the sum, a copy."""

_LEAST_SHARE: Final = 1 / 8
_ENOUGH: Final = 2
"""Hessians are estimated by a share of the samples, at least an eighth, that has two active samples
a feature."""

_SHIFTS: Final = 12


Key: TypeAlias = tuple[int, float]
"""Class and C of a factor."""


class Factors:
    """Cholesky factors of I + C H, where H is the Hessian of the losses of a column.

    Columns of one class and one C share the factor of the first of them: folds differ little.
    `found` has those that were computed, as scipy's `cho_solve` takes them.
    """

    def __init__(self, columns: Columns) -> None:
        keys = np.column_stack([columns.positive, columns.C])
        _, first = np.unique(keys, axis=0, return_index=True)
        self._of = columns.only(np.sort(first))
        self.found: dict[Key, tuple[NDArray[Any], bool]] = {}

    @staticmethod
    def bytes_of(count: int, width: int, itemsize: int) -> int:
        """Bytes of so many factors, and of computing them."""
        return (count + _AT_ONCE) * (width + 1) ** 2 * itemsize

    def columns_like(self, others: Columns) -> Columns:
        """One column for each factor that other columns use."""
        wanted = set(keys_of(others))
        return self._of.only([key in wanted for key in keys_of(self._of)])

    def compute(
        self,
        Z: Features,
        targets: Targets,
        V: Floats,
        columns: Columns,
        loss: Loss,
        room: int,
    ) -> int:
        """Recompute the factors of columns from `columns_like` at V, (width + 1, J).

        room is the memory in bytes for Hessians being summed: it decides on the number of passes,
        which is returned.
        """
        each = _AT_ONCE * (Z.inner + 1) ** 2 * Z.dtype.itemsize
        share = _share(Z, targets, V, columns, loss)
        passes = 1
        for some in blocks(len(columns), max(1, room // each)):
            own = columns.only(some)
            made = _made(Z, targets, V[:, some], own, loss, share[some])
            self.found.update(zip(keys_of(own), made, strict=True))
            passes += 1
        return passes

    def __bool__(self) -> bool:
        """Whether any factor has been computed."""
        return bool(self.found)

    def solve(self, R: Floats, columns: Columns) -> Floats:
        """Apply the inverses to the columns of R, (width + 1, J): the identity without a factor."""
        out = R.copy()
        keys = keys_of(columns)
        for key in dict.fromkeys(keys):
            if key not in self.found:
                continue
            own = [j for j, other in enumerate(keys) if other == key]
            factor = self.found[key]
            out[:, own] = cho_solve(factor, R[:, own].astype(factor[0].dtype), check_finite=False)
        return out


def keys_of(columns: Columns) -> list[Key]:
    """Class and C of each column."""
    return list(zip(columns.positive.tolist(), columns.C.tolist(), strict=True))


def _share(Z: Features, targets: Targets, V: Floats, columns: Columns, loss: Loss) -> Floats:
    """Share of the samples by which Hessians are estimated, (J,)."""
    counts = sum_of(Z.map(active, targets, Z.into(V), columns, loss))
    share: Floats = np.clip(_ENOUGH * Z.width / np.maximum(1, counts), _LEAST_SHARE, 1)
    return share


def _made(
    Z: Features, targets: Targets, V: Floats, columns: Columns, loss: Loss, share: Floats
) -> Iterator[Any]:
    """Factors of all columns, in order."""
    if Z.values is not None:  # a task a column: no sums over spans
        calls = [
            (V[:, [j]], columns.only([j]), loss, Estimate(share[[j]])) for j in range(len(columns))
        ]
        found = [H for (H,) in Z.whole(hessians, targets, calls)]
    else:
        root = None if Z.root is None else Z.root.astype(Z.dtype)
        given = (Z.into(V), columns, loss, Estimate(share, root))
        found = list(sum_of(Z.map(hessians, targets, *given)))
    # LAPACK on one thread: the bits must not depend on the number of threads.
    for j, C in enumerate(columns.C):
        yield _factor(found[j], C)
        found[j] = None


def _factor(H: NDArray[Any], C: float) -> Any:
    """Cholesky factor of I + C H, for `cho_solve`; H is overwritten."""
    H *= H.dtype.type(C)
    diagonal = np.einsum("ii->i", H)
    diagonal += 1
    shift = np.finfo(H.dtype).eps * diagonal.max()
    for _ in range(_SHIFTS):  # rounding may leave a sum of squares slightly indefinite
        try:
            # H.T has the Fortran order of LAPACK: no copy.
            return cho_factor(H.T, lower=True, check_finite=False)
        except LinAlgError:
            diagonal += shift
            shift *= 4
    raise LinAlgError("the Hessian is indefinite beyond rounding")  # never with finite features
