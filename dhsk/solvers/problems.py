"""One-vs-one problems of all pairs of classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.solvers.dual import Dual


@dataclass(frozen=True)
class Pair:
    """Two classes, their samples, and the problems on them."""

    first: int
    second: int
    members: Indices
    """Samples, those of the first class before those of the second."""
    dual: Dual

    def of_folds(self, folds: Sequence[int]) -> "Pair":
        """The problems of some folds, with every C."""
        chain = self.dual.chain
        columns = [fold * chain + c for fold in folds for c in range(chain)]
        return replace(self, dual=replace(self.dual, boxes=self.dual.boxes[columns]))


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
