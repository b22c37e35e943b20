"""Exact fits of at most some steps, as scikit-learn's `max_iter` bounds them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from dhsk.models.pair_fits import PairSolver
from dhsk.models.pair_tasks import PairFits
from dhsk.solvers.dual import Fit, certify
from dhsk.solvers.limited import LimitedSteps
from dhsk.solvers.problems import Pair
from dhsk.solvers.sources import Source


@dataclass(eq=False)
class LimitedSolver(PairSolver):
    """Solves pairs of classes one by one, each in at most some steps."""

    most: int = 0
    """Most steps of a pair of classes."""

    def solved(self, wanted: Sequence[int] = (0,)) -> Iterator[tuple[int, PairFits]]:
        """Solve the problems of some kernels; yield each index and its fits."""
        for k in wanted:
            problem, fits = self.problems[k], []
            for pair in self.pairs(k):
                fits.append(self._improved(problem.source, pair))
                self.on_fits(len(fits[-1]), False)
            yield k, PairFits(fits, [0.0] * len(fits), problem.unit)

    def _improved(self, source: Source, pair: Pair) -> list[Fit]:
        """Improve the coefficients of a pair from 0 on, and certify them."""
        how = LimitedSteps(source, pair.members, self.share.room, self.told)
        dual, b, work = pair.dual, np.zeros(pair.dual.shape), np.zeros((2, pair.dual.shape[0]))
        for c in range(len(b)):
            if not dual.trivial(c):
                begin = perf_counter()
                steps = how.ascend(dual.sign, dual.bounds(c), b[c], self.tol, self.most)
                work[:, c] = steps, perf_counter() - begin
        f = np.stack([how.gradient(dual.sign, own) for own in b])
        return certify(dual, b, f, work, self.tol)
