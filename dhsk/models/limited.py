"""Exact fits of at most some steps, as scikit-learn's `max_iter` bounds them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dhsk.models.pair_fits import PairSolver
from dhsk.models.pair_tasks import PairFits
from dhsk.models.single import check_whole
from dhsk.solvers.dual import Fit, Steps, certify, gradient, improve
from dhsk.solvers.problems import Pair
from dhsk.solvers.sources import Source


@dataclass(eq=False)
class LimitedSolver(PairSolver):
    """Solves pairs of classes one by one, each on its whole matrix in at most some steps."""

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
        check_whole(len(pair.members), source.dtype, self.share.room, self.most)
        K, dual = source.block(pair.members), pair.dual
        b, f = np.zeros(dual.shape), np.broadcast_to(dual.sign, dual.shape).copy()
        columns = [c for c in range(len(b)) if not dual.trivial(c)]
        work = improve(K, dual, b, f, columns, self.tol, Steps(self.most, self.most * len(b)))
        return certify(dual, b, gradient(K, dual, b), work, self.tol)
