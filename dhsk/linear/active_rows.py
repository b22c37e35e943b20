"""Sums over the samples that count: at a solution few are on the wrong side of their margin.

A row is read once for all its columns and stays in the first cache; products of matrices read all
rows, twice, and reach a third of the processor's speed where there are few columns. On 30,000 rows
of 2,000 features and ten columns, a tenth of each active, a product with second derivatives took 18
ms a thread where matrix products took 99, and 52 with half of them active.
"""

from typing import Any, Final

import numba
from numpy.typing import NDArray

from dhsk.arrays import Indices

SUMS: Final = {"reassoc", "contract"}
"""What lets LLVM use vectors for a sum."""


@numba.njit(nogil=True, error_model="numpy", cache=True, fastmath=SUMS)
def add_rows(Z: NDArray[Any], factors: NDArray[Any], sums: NDArray[Any]) -> None:
    """Add Z' factors to sums, in place.

    Parameters
    ----------
    Z
        Features, (n, k).
    factors
        (n, J), mostly 0.
    sums
        (J, k).
    """
    for i in range(len(Z)):
        row = Z[i]
        for j in range(factors.shape[1]):
            factor = factors[i, j]
            if factor != 0.0:
                total = sums[j]
                for c in range(row.size):
                    total[c] += factor * row[c]


@numba.njit(nogil=True, error_model="numpy", cache=True, fastmath=SUMS)
def add_curved(
    Z: NDArray[Any],
    curvature: NDArray[Any],
    chosen: Indices,
    D: NDArray[Any],
    sums: NDArray[Any],
) -> None:
    """Add (Z, 1)' (curvature * ((Z, 1) D)) of some columns to sums, in place.

    Parameters
    ----------
    Z
        Features, (n, k).
    curvature
        (n, J), mostly 0.
    chosen
        Columns of it, (c,).
    D
        A direction for each of these, the last number that of the constant feature, (c, k + 1).
    sums
        As D.
    """
    k = Z.shape[1]
    for i in range(len(Z)):
        row = Z[i]
        for number in range(len(chosen)):
            weight = curvature[i, chosen[number]]
            if weight != 0.0:
                along, total = D[number], sums[number]
                step = along[k]
                for c in range(k):
                    step += along[c] * row[c]
                step *= weight
                for c in range(k):
                    total[c] += step * row[c]
                total[k] += step
