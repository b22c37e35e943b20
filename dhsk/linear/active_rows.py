"""Sums over active samples: near a solution, few have a margin below 1.

A row is read once for all its columns and stays in the L1 cache. Matrix products read all rows
twice, and reach a third of the processor's speed with few columns. Measured on 30,000 rows of 2,000
features and ten columns, a Hessian product took 18 ms a thread with a tenth of the rows active and
52 ms with half of them; matrix products took 99 ms.
"""

from typing import Any, Final

from numpy.typing import NDArray

from dhsk.arrays import Indices
from dhsk.compiled import compiled

SUMS: Final = {"reassoc", "contract"}
"""Flags that let LLVM vectorise a sum."""


@compiled(error_model="numpy", fastmath=SUMS)
def add_rows(Z: NDArray[Any], factors: NDArray[Any], sums: NDArray[Any]) -> None:
    """Add factors' Z to sums, (J, k), in place: Z is (n, k), factors (n, J), mostly 0."""
    for i in range(len(Z)):
        row = Z[i]
        for j in range(factors.shape[1]):
            factor = factors[i, j]
            if factor != 0.0:
                total = sums[j]
                for c in range(row.size):
                    total[c] += factor * row[c]


@compiled(error_model="numpy", fastmath=SUMS)
def add_curved(
    Z: NDArray[Any],
    curvature: NDArray[Any],
    chosen: Indices,
    D: NDArray[Any],
    sums: NDArray[Any],
) -> None:
    """Add the Hessian products (Z, 1)' (curvature * ((Z, 1) D')) to sums, in place.

    Z is (n, k) and curvature (n, J), mostly 0. D holds a direction for each chosen column, (c,), of
    curvature: (c, k + 1), the constant feature last. sums has the shape of D.
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
