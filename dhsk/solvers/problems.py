"""One-vs-one problems of all pairs of classes."""

from collections.abc import Sequence
from dataclasses import dataclass
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

    @property
    def sizes(self) -> dict[int, int]:
        """Number of samples of each class."""
        first = int((self.dual.sign > 0).sum())
        return {self.first: first, self.second: len(self.members) - first}


def make_pairs(codes: Indices, weights: Floats, values_of_C: Sequence[float]) -> list[Pair]:
    """Problems of all pairs of classes in LIBSVM's order, their columns ordered by fold, then by C.

    codes are the classes of the samples as integers from 0, (N,), and weights the factors of C,
    (folds, N), 0 for test samples. The values of C must ascend.
    """
    classes = members_of_classes(codes)
    return [
        make_pair((a, b), classes, weights, values_of_C)
        for a, b in combinations(range(len(classes)), 2)
    ]


def make_pair(
    pair: tuple[int, int],
    classes: Sequence[Indices],
    weights: Floats,
    values_of_C: Sequence[float],
) -> Pair:
    """Problems of one pair of classes, as `make_pairs` has them; classes are their samples."""
    members = np.concatenate([classes[c] for c in pair])
    sign = np.repeat([1.0, -1.0], [len(classes[c]) for c in pair])
    factors = np.asarray(values_of_C)[:, None]
    boxes = np.concatenate([weight[members] * factors for weight in weights])
    return Pair(*pair, members, Dual(sign, boxes, len(factors)))


def members_of_classes(codes: Indices) -> list[Indices]:
    """Indices of the samples of each class, ascending."""
    return [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]


def pairs_of_classes(n_classes: int) -> Indices:
    """Indices of the pairs that each of k classes is in, by the other class, (k, k - 1)."""
    numbers = np.zeros((n_classes, n_classes), np.intp)
    for number, (a, b) in enumerate(combinations(range(n_classes), 2)):
        numbers[a, b] = numbers[b, a] = number
    return numbers[~np.eye(n_classes, dtype=bool)].reshape(n_classes, n_classes - 1)
