"""What exact SVMs cost in seconds, memory and disk: arithmetic on a plan and measured rates."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.models.fit_plan import FitCounts, FitPlan, least_memory, plan_counts
from dhsk.planning.prediction import Prediction

STEPS: Final = 2.5
"""Steps of the solver for each sample of a pair: assumed. 2.5 were counted on WebKB's pages; labels
decide, and noise among them takes many times more."""

STEP_SECONDS: Final = 0.85e-9
"""Seconds of a step for each sample of its pair, as measured (DESIGN.md, on the solver)."""

ROUND_PASSES: Final = 10
"""Passes over a matrix that does not fit, where few samples are support vectors: the least. It
takes hundreds where most are and C is large (README, Limits)."""


@dataclass(frozen=True)
class GridShape:
    """SVMs to train, counted.

    Attributes
    ----------
    classes
        Classes, at least 2, taken to be of equal size.
    folds, chain, kernels
        Folds, values of C and kernels of a grid; 1 each for one model.
    """

    classes: int = 2
    folds: int = 1
    chain: int = 1
    kernels: int = 1


@dataclass(frozen=True)
class ExactCost:
    """Cost of exact SVMs; make it with `exact_cost`.

    Attributes
    ----------
    prediction
        The Gram matrix on this machine.
    shape
        The SVMs.
    stored
        Whether tiles are stored, or else computed in every pass.
    least
        Bytes of all processes in which the fits could be made.
    fits
        How the memory is divided; None if less than that is allowed.
    """

    prediction: Prediction
    shape: GridShape
    stored: bool
    least: int
    fits: FitPlan | None

    @property
    def fits_memory(self) -> bool:
        """Whether tiles and fits have their memory."""
        return self.fits is not None and self.prediction.plan.fits

    @property
    def whole(self) -> bool:
        """Whether every pair of classes is solved on its whole matrix."""
        return self.fits is not None and self.fits.whole

    @property
    def passes(self) -> int:
        """Passes over the matrix; in rounds the least number."""
        return self.shape.kernels * (1 if self.whole else ROUND_PASSES)

    @property
    def steps(self) -> float:
        """Seconds of the solver, at `STEPS` a sample; a fit is on one thread."""
        if self.fits is None:
            return 0.0
        most = FitCounts.balanced(self.fits.n, self.shape.classes, 1, 1).most
        threads = min(self.fits.at_once, self.prediction.at_once)
        return self.fits.fits * STEPS * STEP_SECONDS * most**2 / threads

    @property
    def seconds(self) -> float:
        """Seconds for the matrix and the fits."""
        p = self.prediction
        return self.steps + (p.stored if self.stored else p.recomputed)(self.passes)

    @property
    def memory(self) -> int:
        """Bytes of all processes together, at most; the least that would do if it does not fit."""
        return max(
            self.prediction.plan.peak_bytes,
            self.least if self.fits is None else self.fits.peak_bytes,
        )

    @property
    def disk(self) -> int:
        """Bytes on disk: mapped samples, and tiles if they are stored."""
        plan = self.prediction.plan
        return plan.disk_bytes - (0 if self.stored else plan.tile_bytes)


def exact_cost(prediction: Prediction, shape: GridShape, *, stored: bool) -> ExactCost:
    """Predict the cost of exact SVMs.

    How often the solver steps depends on the labels, which no plan knows: seconds are those of
    labels that are easy to tell apart.

    Parameters
    ----------
    prediction
        The Gram matrix on some machine, symmetric.
    shape
        The SVMs.
    stored
        Whether its tiles are stored.

    Returns
    -------
    ExactCost
        The cost; `ExactCost.fits_memory` says whether the memory suffices.
    """
    plan = prediction.plan
    counts = FitCounts.balanced(plan.tiling.n_rows, shape.classes, shape.folds, shape.chain)
    dtype = np.dtype(plan.dtype)
    least = least_memory(counts, dtype, plan.resources)
    fits = None
    if least <= plan.resources.memory:
        fits = plan_counts(counts, dtype, shape.kernels, plan.resources)
    return ExactCost(prediction, shape, stored, least, fits)
