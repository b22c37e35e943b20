"""Solve the problems of all pairs of classes: those that fit the memory whole, others in rounds."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.execution.tasks import Run
from dhsk.solvers.dual import Dual, Fit, certify, gradient, improve, unfinished
from dhsk.solvers.problems import Pair
from dhsk.solvers.rounds import solve_in_rounds
from dhsk.solvers.smo import largest_entry, matrix_bytes
from dhsk.solvers.sources import Source

SINGLE_TOLERANCE: Final = 1e-4
"""Violation down to which steps are made in single precision; below it they chase rounding."""

FINE_TOLERANCE: Final = 1e-10
"""Violation at which decisions of one problem put in two ways, such as by weights or by repeated
samples, agree to what scikit-learn asks: nine digits."""

MORE_STEPS: Final = 4
"""As many times more steps may go on to `FINE_TOLERANCE` as were made before. From 1e-3 twice to
three times as many were seen."""

FINE_SAMPLES: Final = 2048
"""Samples of a problem up to which steps go on. On pairs of about 4,000 MNIST images it took 8 and
25 % more processor time for the whole fit (s = 1, C = 100 and s = 0.7, C = 10)."""

_POLISHES: Final = 3
"""Rounding drifts the gradient during many steps: so often a solution goes on from a new one."""

_LARGEST_SINGLE: Final = 1e30
"""Entries of a matrix up to which steps in float32 do not overflow."""


def solve_pairs(
    source: Source,
    pairs: Sequence[Pair],
    tol: float,
    room: int,
    run: Run,
    *,
    fine: bool = False,
) -> Iterator[tuple[int, list[Fit]]]:
    """Solve all pairs to the same tolerance.

    Parameters
    ----------
    source
        The matrix.
    pairs
        The problems.
    tol
        Greatest KKT violation.
    room
        Bytes that the matrix of one task may take. A pair that does not fit is solved in rounds:
        the worst violators on a part of the matrix, then the gradients of all by one pass over it.
    run
        Runs the tasks.
    fine
        Whether pairs that fit go on beyond the tolerance, see `solve_block`.

    Yields
    ------
    int
        Number of a pair.
    list of Fit
        One for each of its columns.
    """
    largest = largest_block(room, source.dtype)
    sizes = [len(pair.members) for pair in pairs]
    whole = [k for k, n in enumerate(sizes) if matrix_bytes(n, source.dtype) <= room]
    yield from run(solve_whole, ((k, source, pairs[k], tol, fine) for k in whole))
    rest = [k for k in range(len(pairs)) if k not in set(whole)]
    if rest:
        yield from solve_in_rounds(source, {k: pairs[k] for k in rest}, tol, largest, run)


def largest_block(room: int, dtype: "np.dtype[Any]") -> int:
    """Samples whose matrix takes at most some bytes, at least two."""
    return max(2, int(np.sqrt(room / dtype.itemsize)) // 64 * 64)


def solve_whole(
    number: int, source: Source, pair: Pair, tol: float, fine: bool
) -> tuple[int, list[Fit]]:
    """Solve a pair whose matrix fits the memory: the task that workers run.

    Parameters
    ----------
    number
        Of the pair.
    source
        The matrix.
    pair
        The problems.
    tol
        Greatest KKT violation.
    fine
        Whether to go on beyond the tolerance, see `solve_block`.

    Returns
    -------
    int
        The number.
    list of Fit
        One for each column.
    """
    return number, solve_block(source.block(pair.members), pair.dual, tol, fine=fine)


def solve_block(K: NDArray[Any], dual: Dual, tol: float, *, fine: bool = False) -> list[Fit]:
    """Solve all columns on a matrix in memory.

    Parameters
    ----------
    K
        Matrix, (n, padded(n)), see `smo.ascend`.
    dual
        The problems.
    tol
        Greatest KKT violation.
    fine
        Go on to `FINE_TOLERANCE`, where `MORE_STEPS` are enough for that, for matrices in float64
        of up to `FINE_SAMPLES`. It is for a model that is used: in a grid, where the steps take
        most of the time, the tolerance is enough.

    Returns
    -------
    list of Fit
        One for each column.
    """
    b = np.zeros(dual.shape)
    f = np.broadcast_to(dual.sign, dual.shape).copy()
    # Steps wait for the memory: in half of the bytes they take 0.7 to 0.8 of the time. The rest of
    # the way, if rounding left any, goes on from an exact gradient in the matrix's own type.
    coarse = max(tol, SINGLE_TOLERANCE)
    entry = largest_entry(K)
    half = K.astype(np.float32, copy=False) if entry <= _LARGEST_SINGLE else K
    work = improve(half, dual, b, f, range(len(b)), coarse)
    del half
    f = gradient(K, dual, b)
    for _ in range(_POLISHES):
        left = unfinished(dual, b, f, tol, entry)
        if not left:
            break
        work += improve(K, dual, b, f, left, tol)
        f = gradient(K, dual, b)
    if fine and K.dtype == np.float64 and len(K) <= FINE_SAMPLES:
        for column in unfinished(dual, b, f, FINE_TOLERANCE, entry):
            most = int(MORE_STEPS * work[0, column])
            work += improve(K, dual, b, f, [column], FINE_TOLERANCE, most)
        f = gradient(K, dual, b)
    return certify(dual, b, f, work, tol)
