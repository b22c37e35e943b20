"""One-vs-one problems of all pairs of classes, solved in memory or by parts in rounds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.svm.dual import Dual, Fit, certify, gradient, improve, violation_and_intercept
from dhsk.svm.sources import Source

Run: TypeAlias = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]
"""Calls a function on argument tuples, somewhere, and yields the results in any order."""

MAX_ROUNDS: Final = 1000
"""Passes over the matrix after which a problem that does not fit the memory is given up."""

_POLISHES: Final = (
    3  # rounding drifts the gradient during many steps: then it goes on from a new one
)

GOLDEN_RATIO: Final = 0.6180339887498949

_PRODUCT_BYTES: Final = 1 << 28  # vectors that are multiplied with the matrix at a time


@dataclass(frozen=True)
class Pair:
    """Two classes, their samples, and the problems on them."""

    first: int
    second: int
    members: Indices
    """Samples, those of the first class before those of the second."""
    dual: Dual


def make_pairs(codes: Indices, weights: Floats, values_of_C: Sequence[float]) -> list[Pair]:
    """Set up the problems of all pairs of classes.

    Parameters
    ----------
    codes
        Class of each sample, (N,), from 0.
    weights
        Factors of C, one row a fold, (folds, N); 0 for samples that are held out.
    values_of_C
        Ascending.

    Returns
    -------
    list of Pair
        In the order of LIBSVM; their columns are fold by fold, C by C.
    """
    of_class = [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
    factors = np.asarray(values_of_C)[:, None]
    pairs = []
    for a, b in combinations(range(len(of_class)), 2):
        members = np.concatenate([of_class[a], of_class[b]])
        sign = np.where(codes[members] == a, 1.0, -1.0)
        boxes = np.concatenate([weight[members] * factors for weight in weights])
        pairs.append(Pair(a, b, members, Dual(sign, boxes, len(factors))))
    return pairs


def solve_pairs(
    source: Source, pairs: Sequence[Pair], tol: float, room: int, run: Run
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

    Yields
    ------
    int
        Number of a pair.
    list of Fit
        One for each of its columns.
    """
    largest = largest_block(room, source.dtype)
    whole = [k for k, pair in enumerate(pairs) if len(pair.members) <= largest]
    yield from run(solve_whole, ((k, source, pairs[k], tol) for k in whole))
    rest = [k for k in range(len(pairs)) if k not in set(whole)]
    if rest:
        yield from _solve_in_rounds(source, {k: pairs[k] for k in rest}, tol, largest, run)


def largest_block(room: int, dtype: "np.dtype[Any]") -> int:
    """Samples whose matrix takes at most some bytes, at least two."""
    return max(2, int(np.sqrt(room / dtype.itemsize)) // 64 * 64)


def solve_whole(number: int, source: Source, pair: Pair, tol: float) -> tuple[int, list[Fit]]:
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

    Returns
    -------
    int
        The number.
    list of Fit
        One for each column.
    """
    return number, solve_block(source.block(pair.members), pair.dual, tol)


def solve_block(K: NDArray[Any], dual: Dual, tol: float) -> list[Fit]:
    """Solve all columns on a matrix in memory.

    Parameters
    ----------
    K
        Matrix, (n, padded(n)), see `smo.ascend`.
    dual
        The problems.
    tol
        Greatest KKT violation.

    Returns
    -------
    list of Fit
        One for each column.
    """
    b = np.zeros(dual.shape)
    f = np.broadcast_to(dual.sign, dual.shape).copy()
    steps = improve(K, dual, b, f, range(len(b)), tol)
    for _ in range(_POLISHES):
        f = gradient(K, dual, b)
        left = _unfinished(dual, b, f, tol)
        more = improve(K, dual, b, f, left, tol)
        steps += more
        if not more.any():
            break
    return certify(dual, b, gradient(K, dual, b) if steps.any() else f, steps, tol)


def _unfinished(dual: Dual, b: Floats, f: Floats, tol: float) -> list[int]:
    """Columns whose violation is above the tolerance."""
    columns = range(len(b))
    return [c for c in columns if violation_and_intercept(dual, c, b[c], f[c])[0] > tol]


# Rounds


class _State:
    """Where the problems of a pair stand."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.b = np.zeros(pair.dual.shape)
        self.f = np.broadcast_to(pair.dual.sign, pair.dual.shape).copy()
        self.steps = np.zeros(len(self.b), np.int64)
        self.left = _unfinished(pair.dual, self.b, self.f, 0.0)

    def worst(self, count: int) -> Indices:
        """As many samples of the highest gradients that may grow as of the lowest that may shrink.

        Those come in order of how much they violate, and after them the coefficients within their
        bounds; a sample's rank is its best in any column.
        """
        dual = self.pair.dual
        best = np.full(dual.shape[1], dual.shape[1])
        for c in self.left:
            lower, upper = dual.bounds(c)
            for order, open_ in ((-self.f[c], self.b[c] < upper), (self.f[c], self.b[c] > lower)):
                some = self._spread[open_[self._spread]]
                ranked = some[np.argsort(order[some], kind="stable")]
                best[ranked] = np.minimum(best[ranked], np.arange(len(ranked)))
        return np.sort(np.argsort(best, kind="stable")[:count])

    @cached_property
    def _spread(self) -> Indices:
        """All samples, far apart ones first: of equal violators, as at the start, some of each."""
        return np.argsort(np.arange(self.pair.dual.shape[1]) * GOLDEN_RATIO % 1.0, kind="stable")


def _solve_in_rounds(
    source: Source, pairs: dict[int, Pair], tol: float, largest: int, run: Run
) -> Iterator[tuple[int, list[Fit]]]:
    """Solve pairs whose matrices do not fit; all share each pass over the whole matrix."""
    states = {k: _State(pair) for k, pair in pairs.items()}
    for _ in range(MAX_ROUNDS):
        tasks = [
            (k, source, state.pair, chosen, state.b[:, chosen], state.f[:, chosen], state.left, tol)
            for k, state in states.items()
            for chosen in [state.worst(largest)]
        ]
        moved = False
        for k, chosen, b, steps in run(improve_part, tasks):
            states[k].b[:, chosen] = b
            states[k].steps += steps
            moved |= bool(steps.any())
        _renew_gradients(source, list(states.values()))
        for state in states.values():
            state.left = _unfinished(state.pair.dual, state.b, state.f, tol)
        for k in [k for k, state in states.items() if not state.left or not moved]:
            state = states.pop(k)
            yield k, certify(state.pair.dual, state.b, state.f, state.steps, tol)
        if not states:
            return
    for k, state in states.items():
        yield k, certify(state.pair.dual, state.b, state.f, state.steps, tol)


def improve_part(
    number: int,
    source: Source,
    pair: Pair,
    chosen: Indices,
    b: Floats,
    f: Floats,
    columns: list[int],
    tol: float,
) -> tuple[int, Indices, Floats, Indices]:
    """Solve the problems of a pair in some of their variables: the task that workers run.

    Parameters
    ----------
    number
        Of the pair.
    source
        The matrix.
    pair
        The problems.
    chosen
        Which variables.
    b, f
        Their coefficients and gradients, (columns, chosen).
    columns
        Which problems.
    tol
        Greatest KKT violation.

    Returns
    -------
    int
        The number.
    Indices
        The variables.
    Floats
        Their new coefficients.
    Indices
        Steps of each column.
    """
    K = source.block(pair.members[chosen])
    b, f = b.copy(), f.copy()  # what came with the task may be read-only
    steps = improve(K, pair.dual.part(chosen), b, f, columns, tol / 2)
    return number, chosen, b, steps


def _renew_gradients(source: Source, states: list[_State]) -> None:
    """Gradients s - K b of the columns that are not finished, in as few passes as memory allows."""
    wanted = [(state, c) for state in states for c in state.left]
    at_once = max(1, _PRODUCT_BYTES // (8 * source.n))
    for start in range(0, len(wanted), at_once):
        part = wanted[start : start + at_once]
        V = np.zeros((source.n, len(part)))
        for place, (state, c) in enumerate(part):
            V[state.pair.members, place] = state.b[c]
        products = source.product(V)
        for place, (state, c) in enumerate(part):
            state.f[c] = state.pair.dual.sign - products[state.pair.members, place]
