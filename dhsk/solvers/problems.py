"""Problems of two classes of which a classifier of several classes is made.

One-vs-one it has a problem of each pair of classes, in LIBSVM's order; one-vs-rest one of each
class, on all samples, whose problems share the whole matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from dhsk.arrays import Codes, Floats, Indices
from dhsk.kernels.base import chosen_parameter
from dhsk.solvers.dual import Dual

MultiClass: TypeAlias = Literal["ovo", "ovr"]
"""Which problems: "ovo" one-vs-one, "ovr" one-vs-rest."""

MULTI_CLASS: Final[tuple[MultiClass, ...]] = get_args(MultiClass)

MANY_CLASSES: Final = 10
"""Number of classes above which fits of a single model are one-vs-rest.

Measured by `HeatSVC()`, five folds, one-vs-one and one-vs-rest (`tests/benchmarks/defaults.py`):
0.679 and 0.750 on 20 groups of posts, 0.348 and 0.448 on 25 kinds of tumours, there in half of the
time; with ten classes 0.988 and 0.984 (digits), 0.940 and 0.945 (1,500 images of MNIST).
"""

WORDS: Final[dict[MultiClass, str]] = {"ovo": "pairs of classes", "ovr": "classes against the rest"}
"""What is fitted, for people."""

REST: Final = -1
"""Stands for all other classes."""


@dataclass(frozen=True)
class Pair:
    """Two classes, or one and the rest, their samples, and their dual problems."""

    first: int
    second: int
    """`REST` against the rest."""
    members: Indices
    """Indices of the samples class by class: of a pair those of the first class come first."""
    dual: Dual

    @property
    def sizes(self) -> dict[int, int]:
        """Number of samples of each class, of a class against the rest its own."""
        first = int((self.dual.sign > 0).sum())
        both = {self.first: first, self.second: len(self.members) - first}
        return {c: count for c, count in both.items() if c != REST}

    def sides(self, samples: Indices) -> list[tuple[int, Indices]]:
        """Some of the samples, in groups that other problems may have too, each with a number.

        A pair of classes shares the samples of each class with others, a class against the rest all
        of them.
        """
        if self.second == REST:
            return [(0, samples)] if len(samples) else []
        first = self.dual.sign[samples] > 0
        sides = (self.first, samples[first]), (self.second, samples[~first])
        return [(number, own) for number, own in sides if len(own)]


def way_of_model(multi_class: MultiClass | Literal["auto"], n_classes: int) -> MultiClass:
    """Which problems a single model has, which compares nothing; of two classes one."""
    if multi_class == "auto":
        return "ovr" if n_classes > MANY_CLASSES else "ovo"
    return multi_class if n_classes > 2 else "ovo"


def check_multi_class(multi_class: object) -> None:
    """Raise InputError if it is no name of fits of several classes."""
    chosen_parameter("multi_class", multi_class, ("auto", *MULTI_CLASS))


def classes_of_problems(n_classes: int, multi_class: MultiClass) -> list[tuple[int, int]]:
    """The two classes of each problem, the positive one first."""
    if multi_class == "ovr":
        return [(c, REST) for c in range(n_classes)]
    return list(combinations(range(n_classes), 2))


def positives(n_classes: int) -> Indices:
    """Classes that linear classifiers fit against the rest, (J,): of two only the second."""
    return np.arange(1 if n_classes == 2 else 0, n_classes)


def problems_of_classes(n_classes: int, multi_class: MultiClass = "ovo") -> Indices:
    """Indices of the problems that the samples of each class are in, (k, problems of a class).

    One-vs-one they are ordered by the other class.
    """
    if multi_class == "ovr":
        return np.tile(np.arange(n_classes), (n_classes, 1))
    numbers = np.zeros((n_classes, n_classes), np.intp)
    first, second = np.triu_indices(n_classes, 1)
    numbers[first, second] = numbers[second, first] = np.arange(len(first))
    return numbers[~np.eye(n_classes, dtype=bool)].reshape(n_classes, n_classes - 1)


def make_pairs(
    codes: Codes,
    weights: Floats,
    values_of_C: Sequence[float],
    multi_class: MultiClass = "ovo",
) -> list[Pair]:
    """All problems, their columns ordered by fold, then by C.

    codes are the classes of the samples as integers from 0, (N,), and weights the factors of C,
    (folds, N), 0 for test samples. The values of C must ascend.
    """
    classes = members_of_classes(codes)
    return [
        make_pair(pair, classes, weights, values_of_C)
        for pair in classes_of_problems(len(classes), multi_class)
    ]


def make_pair(
    pair: tuple[int, int],
    classes: Sequence[Indices],
    weights: Floats,
    values_of_C: Sequence[float],
) -> Pair:
    """One of the problems that `make_pairs` has; classes are their samples."""
    own = classes if pair[1] == REST else [classes[c] for c in pair]
    members, first = np.concatenate(own), pair[0] if pair[1] == REST else 0
    sign = np.full(len(members), -1.0)
    start = sum(map(len, own[:first]))
    sign[start : start + len(own[first])] = 1.0
    factors = np.asarray(values_of_C)[:, None]
    boxes = (weights[:, None, members] * factors).reshape(-1, len(members))
    return Pair(*pair, members, Dual(sign, boxes, len(factors)))


def members_of_classes(codes: Codes) -> list[Indices]:
    """Indices of the samples of each class, ascending."""
    return [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
