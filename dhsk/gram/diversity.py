"""Diversity of samples: numbers that count how many different ones there seem to be."""

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
from scipy.linalg import eigvalsh

from dhsk.arrays import Floats
from dhsk.bars import Show, passes_shown
from dhsk.errors import InputError, warn
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.run import Run
from dhsk.gram.features import FeatureGeometry
from dhsk.gram.moments import squared_norm
from dhsk.gram.spectra import Spectra, many_products
from dhsk.gram.tiled import TiledMatrix
from dhsk.kernels.base import positive_parameter, whole_parameter
from dhsk.objects.places import Place
from dhsk.run_progress import passes_reported
from dhsk.solvers.eigenpairs import WHOLE_COPIES
from dhsk.solvers.trace import (
    PROBES,
    STEPS,
    TraceEstimate,
    checked_eigenvalues,
    trace_bytes,
    trace_estimates,
)

WHOLE: Final = 5_000
"""Most samples of which all eigenvalues are computed: 16 s on two cores, and a gigabyte."""

SHARE: Final = 0.25
"""Share of the tolerance that the quadrature may take, before other random vectors begin."""


@dataclass(frozen=True)
class Order:
    """Order q of Rényi's entropy: the score is made from tr f(K / tr K)."""

    q: float

    def function(self, values: Floats) -> Floats:
        """f, at eigenvalues: -x log x at 1, else x^q."""
        if self.q == 1:
            return np.asarray(-values * np.log(np.maximum(values, np.finfo(np.float64).tiny)))
        return np.asarray(values**self.q)

    def score(self, trace: float) -> float:
        """Exponential of the entropy."""
        return math.exp(trace) if self.q == 1 else trace ** (1 / (1 - self.q))

    def error(self, found: TraceEstimate, *, quadrature: bool = False) -> float:
        """Relative error of the score: half of the bracket, and that of the draws with it."""
        error = (found.high - found.low) / 2 + (0.0 if quadrature else found.error)
        return error if self.q == 1 else error / (found.value * abs(1 - self.q))


class Diversity(FeatureGeometry, Spectra):
    """Scores of diversity of `GramMatrix` and its views."""

    def rke(self, *, progress: Show = None) -> float:
        """Rényi kernel entropy score [1]_: the number of modes of the samples, tr(K)² / ||K||².

        It is 1 if all samples are alike and N if all are orthogonal: `vendi` of order 2, which
        takes one pass over the matrix and no eigenvalues.

        Parameters
        ----------
        progress
            Function that is called with a `Progress` after every group of tiles; True for bars.

        Returns
        -------
        float
            From 1 to N.

        Raises
        ------
        InputError
            The matrix is rectangular, or its trace is not positive.

        References
        ----------
        .. [1] M. Jalali, C. T. Li and F. Farnia, "An information-theoretic evaluation of generative
           models in learning multi-modal distributions", NeurIPS 36 (2023).

        Examples
        --------
        >>> import dhsk
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(64, time_scale=0.3))
        >>> round(G.rke(), 1)
        126.6
        """
        trace = _checked_trace(self)
        with passes_shown(progress):
            return trace**2 / squared_norm(self.source, self.tiling)

    def vendi(
        self,
        order: float = 1.0,
        *,
        tol: float = 0.01,
        seed: int = 0,
        max_passes: int = 100,
        memory: int | str | None = None,
        journal: str | Place | None = None,
        progress: Show = None,
    ) -> float:
        """Vendi score [1]_: the number of different samples that there seem to be.

        It is the exponential of Rényi's entropy of the eigenvalues of K / tr K [2]_, Shannon's at
        order 1. Of at most 5,000 samples, all eigenvalues are computed. Of more, the entropy is
        estimated from products with random vectors, in about ten passes over the matrix at order
        1, until a 95 % interval is within `tol`; a rare sample weighs more at a small order, and
        takes more passes. Order 2 is `rke`, exact and of one pass; infinity takes the largest
        eigenvalue, to a residual of `tol` / 4.

        Parameters
        ----------
        order
            Order of the entropy, above 0; infinity too.
        tol
            What the score may be off by, as a share of it: half of the interval that has the exact
            score for 95 % of all seeds. The error of the quadrature, which is bounded, is in it.
        seed
            Seed of the random vectors.
        max_passes
            Most passes over the matrix.
        memory, journal, progress
            As for `eigh`.

        Returns
        -------
        float
            From 1 to N.

        Raises
        ------
        InputError
            The matrix is rectangular, has an eigenvalue below 0 or no positive trace, or a
            parameter is invalid.
        BudgetError
            The vectors need more memory than there is.

        Warns
        -----
        ConvergenceWarning
            The error exceeds `tol`.

        References
        ----------
        .. [1] D. Friedman and A. B. Dieng, "The Vendi score: a diversity evaluation metric for
           machine learning", Transactions on Machine Learning Research (2023).
        .. [2] A. P. Pasarkar and A. B. Dieng, "Cousins of the Vendi score: a family of
           similarity-based diversity metrics for science and machine learning", AISTATS (2024).

        Examples
        --------
        >>> import dhsk
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(64, time_scale=0.3))
        >>> for order in (0.5, 1, 2):
        ...     print(round(G.vendi(order), 1))
        1017.1
        480.7
        126.6
        """
        # Any order but infinity is a number for `positive_parameter`.
        asked = Order(order if order == math.inf else positive_parameter("order", order))
        positive_parameter("tol", tol)
        whole_parameter("max_passes", max_passes, 5)
        seed = whole_parameter("seed", seed, 0)
        if asked.q == 2:
            return self.rke(progress=progress)
        n, trace = self.shape[0], _checked_trace(self)
        common: Any = {"memory": memory, "journal": journal, "progress": progress}
        if asked.q == math.inf:
            values, _, _ = self.eigh(1, tol=tol / 4, seed=seed, max_passes=max_passes, **common)
            return trace / float(values[0])
        begun = Run.begun(tiles=1, passes=10, **common)
        with begun as (run, told), passes_reported(told) as passes:
            if n <= WHOLE:
                return asked.score(float(asked.function(_eigenvalues(self, run) / trace).sum()))
            passes.begin(max_passes, tol)
            need = MemoryNeed(f"random vectors of {n:,} samples", {"vectors": trace_bytes(n)})
            with many_products(self, need, PROBES, run) as (used, products):
                norm2 = Checkpoint(run.journal, "norm-").first(
                    digest_of(self.description), lambda: squared_norm(used.source, used.tiling)
                )
                estimates = trace_estimates(
                    lambda V: products(V) / trace,
                    n,
                    asked.function,
                    narrow=lambda found: asked.error(found, quadrature=True) <= SHARE * tol,
                    seed=seed,
                    known=(1.0, norm2 / trace**2),
                    fewest=min(math.ceil(asked.q / 2), STEPS),
                )
                for number, found in enumerate(islice(estimates, max_passes - 1), start=2):
                    error = asked.error(found)
                    passes.passed(number, error)
                    if error <= tol:
                        break
        _warn_unless_close(error, tol, number)
        return min(max(asked.score(found.value), 1.0), float(n))


def _checked_trace(G: FeatureGeometry) -> float:
    """Trace of a square matrix, or InputError if it is not positive."""
    trace = float(G._square("scored for diversity")._norms2().sum())
    if trace <= 0:
        raise InputError("all samples have K(x, x) = 0, so that none differs from another")
    return trace


def _eigenvalues(G: TiledMatrix, run: Run) -> Floats:
    """All eigenvalues, of a matrix in memory."""
    n = G.shape[0]
    need = MemoryNeed(f"all eigenvalues of {n:,} samples", {"matrices": WHOLE_COPIES * 8 * n * n})
    need.check(run.room, "give more memory, or choose order 2")
    values: Any = eigvalsh(G[:, :].astype(np.float64), overwrite_a=True, check_finite=False)
    return checked_eigenvalues(values)


def _warn_unless_close(error: float, tol: float, passes: int) -> None:
    """Warn, with numbers, where a score is off by more."""
    if error <= tol:
        return
    from sklearn.exceptions import ConvergenceWarning  # loading it takes a second

    warn(
        f"the score may be off by {error:.1%} after {passes} passes, tol={tol:g}: raise max_passes "
        "or tol, or choose a larger order",
        ConvergenceWarning,
    )
