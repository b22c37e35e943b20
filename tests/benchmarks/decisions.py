"""Error rates of the decision between kernels, by simulation: who is taken, and how often.

Run as ``python tests/benchmarks/decisions.py``, some minutes on one core. A simple and a
complicated kernel are compared on samples whose errors are correlated as those of real kernels: a
sample is wrong where a normal variable is above a threshold, and that is a sum of how hard the
sample is for all kernels, for a family, for a candidate, and of the training set. The parts are
such that, at 10 % errors, the figures of `LIKENESS` come out; those of dhsk on 600 digits and 800
pages of WebKB, measured in five repeats, are beside them. The best kernel has an accuracy of 0.9,
the simple one is worse by so many points.

Printed is, for the rule of this version and for that of the one before, how often the simple kernel
is taken; of equal kernels that is right, of one that is worse by a point it costs a point.
"""

import argparse
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dhsk.results.paired import FoldSizes, paired_difference

FOLDS = 5
ACCURACY = 0.9
SIZES = (200, 500, 1000, 2000)
WORSE = (0.0, 0.005, 0.01, 0.02)
CANDIDATES = ((1, 1), (4, 16))

SHARED, FAMILY, CANDIDATE, TRAINING = 0.865, 0.05, 0.01, 0.075
"""Parts of the variance of how hard a sample is."""

OF_FAMILY = 0.85
"""Part of what the training set adds that the candidates of a family share."""

SHIFT = 0.02
"""Standard deviation of the thresholds between training sets: 0.4 points of accuracy."""

LIKENESS = {
    "a kernel in two repeats differs in": (0.55, "0.3 to 0.7"),
    "kernels of two families differ in": (0.75, "0.3 to 1.0"),
    "candidates of a family differ in": (0.3, "0 to 0.3"),
}
"""Samples by whose prediction two differ, in parts of the mean error: here, and measured."""


@dataclass(frozen=True)
class World:
    """Two families of kernels, the simple one worse by some accuracy, on n samples."""

    n: int
    worse: float
    candidates: tuple[int, int]
    repeats: int

    @property
    def families(self) -> NDArray[np.intp]:
        """Family of each candidate, simple ones first."""
        return np.repeat([0, 1], self.candidates)

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """Accuracy of each candidate: of several, some are as good as the best, others worse."""
        best = np.where(self.families == 0, ACCURACY - self.worse, ACCURACY)
        below: NDArray[np.float64] = np.concatenate([_below(count) for count in self.candidates])
        return np.asarray(best - below)

    def scores(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Scores of all candidates in all folds, (candidates, folds)."""
        family = self.families
        m, thresholds = len(family), norm.ppf(self.accuracies)
        hard = np.sqrt(SHARED) * rng.standard_normal(self.n)
        hard = hard + np.sqrt(FAMILY) * rng.standard_normal((2, self.n))[family]
        hard += np.sqrt(CANDIDATE) * rng.standard_normal((m, self.n))
        found = []
        for _ in range(self.repeats):
            shared = rng.standard_normal((2, self.n))[family]
            own = rng.standard_normal((m, self.n))
            z = hard + np.sqrt(TRAINING * OF_FAMILY) * shared
            z += np.sqrt(TRAINING * (1 - OF_FAMILY)) * own
            for part in np.array_split(rng.permutation(self.n), FOLDS):
                at = thresholds + SHIFT * rng.standard_normal(2)[family]
                found.append((z[:, part] < at[:, None]).mean(axis=1))
        return np.array(found).T

    @property
    def sizes(self) -> FoldSizes:
        """Sizes of the folds."""
        test = self.n / FOLDS
        return FoldSizes(FOLDS, self.repeats, self.n - test, test, self.n, repeatable=True)


def _below(count: int) -> NDArray[np.float64]:
    """By how much the candidates of a grid are below the best one."""
    return np.array([0.0] if count == 1 else [0.03 * (k / (count - 1)) ** 2 for k in range(count)])


def now(world: World, scores: NDArray[np.float64]) -> tuple[bool, float]:
    """Whether the simple family is taken, and the standard error of its best candidate."""
    simple, other = (max(scores[world.families == f], key=np.mean) for f in (0, 1))
    sizes = world.sizes
    found = paired_difference(other, simple, n_train=sizes.n_train, n_test=sizes.n_test)
    return found.within, found.standard_error


def before(world: World, scores: NDArray[np.float64]) -> bool:
    """Any simple candidate within the standard error of independent folds, of one repeat."""
    best = max(scores, key=np.mean)
    apart = best - scores[world.families == 0]
    error = apart.std(axis=1, ddof=1) / np.sqrt(FOLDS)
    return bool((apart.mean(axis=1) <= error).any())


def likeness(rng: np.random.Generator) -> None:
    """Print how alike the kernels of these worlds are."""
    n = 200_000
    hard = np.sqrt(SHARED) * rng.standard_normal(n)

    def family() -> Any:
        return hard + np.sqrt(FAMILY) * rng.standard_normal(n)

    def trained(base: Any, shared: Any) -> Any:
        own = np.sqrt(TRAINING * (1 - OF_FAMILY)) * rng.standard_normal(n)
        return base + np.sqrt(TRAINING * OF_FAMILY) * shared + own < norm.ppf(ACCURACY)

    def candidate(base: Any) -> Any:
        return base + np.sqrt(CANDIDATE) * rng.standard_normal(n)

    one, other = family(), family()
    shared = rng.standard_normal(n)
    first, second = candidate(one), candidate(one)
    a = trained(first, shared)
    found = (
        np.mean(a != trained(first, rng.standard_normal(n))),
        np.mean(a != trained(candidate(other), rng.standard_normal(n))),
        np.mean(a != trained(second, shared)),
    )
    for (what, (_, measured)), value in zip(LIKENESS.items(), found, strict=True):
        print(f"{what} {value / (1 - ACCURACY):.2f} of their error (dhsk: {measured})")


def main() -> None:
    """Print a table of all worlds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    trials = parser.parse_args().trials
    likeness(np.random.default_rng(0))
    errors: dict[Any, float] = {}
    print("simple kernel taken, in %, where it is worse by 0, 0.5, 1, 2 points; (before)")
    for candidates, repeats, n in product(CANDIDATES, (1, 5), SIZES):
        cells = []
        for worse in WORSE:
            rng, world = np.random.default_rng(1), World(n, worse, candidates, repeats)
            drawn = [world.scores(rng) for _ in range(trials)]
            found = [now(world, scores) for scores in drawn]
            taken = 100 * np.mean([within for within, _ in found])
            was = 100 * np.mean([before(world, scores) for scores in drawn])
            cells.append(f"{taken:.0f} ({was:.0f})")
            errors[candidates, repeats, n, worse] = float(np.mean([error for _, error in found]))
        error = 100 * errors[candidates, repeats, n, 0.01]
        head = f"{candidates[0]} against {candidates[1]}, repeats {repeats}, n = {n}"
        print(f"{head}: {' | '.join(cells)}; mean standard error {error:.2f} points", flush=True)
    ratios = [
        errors[candidates, 5, n, worse] / errors[candidates, 1, n, worse]
        for candidates, n, worse in product(CANDIDATES, SIZES, WORSE)
    ]
    told = World(1, 0.0, (1, 1), 5).sizes.error_factor / World(1, 0.0, (1, 1), 1).sizes.error_factor
    print(f"five repeats make the standard error {min(ratios):.2f} to {max(ratios):.2f} of that of")
    print(f"one; the program says {told:.2f}")


if __name__ == "__main__":
    main()
