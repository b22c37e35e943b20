"""Small problems of a pair of classes, all columns in one compiled call.

They take the steps of `dhsk.solvers.whole`, but in float64 alone, and are certified in the same
way. What takes so many steps that Newton steps would follow is left to that module.

Measured on 4,950 pairs of ten samples: 32 us a pair, where calls of numpy took 0.3 ms.
"""

from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.compiled import assign, compiled
from dhsk.solvers.dual import (
    Dual,
    Fit,
    certificate,
    fit_of,
    judge,
    scale_into_box,
    subtract_products,
)
from dhsk.solvers.newton import steps_between
from dhsk.solvers.smo import ascend_in_chunk, rounding_of, settle

SMALL_SAMPLES: Final = 256
"""Most samples of a small problem, whose matrix takes at most half a megabyte."""


def is_small(K: NDArray[Any]) -> bool:
    """Whether a matrix is that of a small problem."""
    return len(K) <= SMALL_SAMPLES and K.dtype == np.float64


def fits_of_small(
    K: NDArray[Any], dual: Dual, tols: tuple[float, float], limits: tuple[int, int], entry: float
) -> list[Fit] | None:
    """Certified fits of all columns of a small problem; None where they take many steps.

    Columns are solved to the first of two tolerances, and then on to the second unless it is 0.
    Limits are those of restarts from a recomputed gradient, and of the steps to the second
    tolerance as a multiple of those to the first; entry is the largest one of the matrix.
    """
    begin, chunk = perf_counter(), steps_between(len(K))
    done, b, found = _solve(K, dual.sign, dual.boxes, dual.chain, tols, (*limits, chunk), entry)
    if not done:
        return None
    seconds = (perf_counter() - begin) / len(b)
    return [
        fit_of(own, numbers[:5], int(numbers[5]), seconds, tols[0])
        for own, numbers in zip(b, found, strict=True)
    ]


@compiled(error_model="numpy")
def _solve(
    K: NDArray[Any],
    sign: Floats,
    boxes: Floats,
    chain: int,
    tols: tuple[float, float],
    limits: tuple[int, int, int],
    entry: float,
) -> tuple[bool, Floats, Floats]:
    """Whether all columns are solved, their coefficients, and by column certificate and steps."""
    (columns, n), (polishes, more, chunk) = boxes.shape, limits
    b, f, found = np.zeros((columns, n)), np.zeros((columns, n)), np.zeros((columns, 6))
    diagonal = np.zeros(K.shape[1])
    for i in range(n):
        diagonal[i] = K[i, i]
    for c in range(columns):
        box, part = boxes[c], slice(c, c + 1)
        assign(f[c], sign)
        signed, steps = sign * box, 0
        bounds = np.minimum(signed, 0.0), np.maximum(signed, 0.0)
        if c % chain:
            scale_into_box(sign, boxes[c - 1], box, (b[c - 1], f[c - 1]), (b[c], f[c]))
            settle(b[c], *bounds)
        violation = np.inf
        for _ in range(1 + polishes):
            done = _climb(K, diagonal, sign, bounds, (b[part], f[part]), tols[0], chunk)
            if done == chunk:
                return False, b, found
            steps += done
            violation, _ = judge(sign, box, b[c], f[c])
            least = rounding_of(np.abs(f[c]).max(), entry, np.abs(b[c]).sum())
            if violation <= max(tols[0], least):
                break
        if tols[1] > 0.0:
            most, before = min(more * steps, chunk), b[c].copy()
            done = _climb(K, diagonal, sign, bounds, (b[part], f[part]), tols[1], most)
            if done == chunk:
                return False, b, found
            steps += done
            # Violations rise and fall on the way, and the limit may end it anywhere.
            if judge(sign, box, b[c], f[c])[0] > max(tols[0], violation):
                assign(b[c], before)
                assign(f[c], sign)
                subtract_products(K, b[part], f[part])
        assign(found[c, :5], certificate(sign, box, b[c], f[c]))
        found[c, 5] = steps
    return True, b, found


@compiled(error_model="numpy")
def _climb(
    K: NDArray[Any],
    diagonal: Floats,
    sign: Floats,
    bounds: tuple[Floats, Floats],
    state: tuple[Floats, Floats],
    tol: float,
    most: int,
) -> int:
    """Make steps on one column, and recompute its gradient; the number of steps."""
    b, f = state
    steps, _ = ascend_in_chunk(K, diagonal, bounds, b[0], f[0], (tol, 0.0), most)
    settle(b[0], *bounds)
    assign(f[0], sign)
    subtract_products(K, b, f)
    return steps
