"""One-vs-one problems of all pairs of classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.solvers.dual import Dual


@dataclass(frozen=True)
class Pair:
    """Two classes, their samples, and their dual problems."""

    first: int
    second: int
    members: Indices
    """Indices of the samples, those of the first class before those of the second."""
    dual: Dual

    def of_folds(self, folds: Sequence[int]) -> "Pair":
        """The problems of some folds, with all C."""
        chain = self.dual.chain
        columns = [fold * chain + c for fold in folds for c in range(chain)]
        return replace(self, dual=replace(self.dual, boxes=self.dual.boxes[columns]))


def make_pairs(codes: Indices, weights: Floats, values_of_C: Sequence[float]) -> list[Pair]:
    """Problems of all pairs of classes in LIBSVM's order, their columns ordered by fold, then by C.

    codes are the classes of the samples as integers from 0, (N,), and weights the factors of C,
    (folds, N), 0 for test samples. The values of C must ascend.
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
