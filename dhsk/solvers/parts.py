"""The task that workers run: one pair of classes on some folds.

Kept apart from the rest of cross-validation, so that workers load nothing that they do not need:
scikit-learn takes them a second.
"""

from dataclasses import dataclass
from typing import Final

from dhsk.solvers.ball import smallest_ball
from dhsk.solvers.dual import Dual, Fit
from dhsk.solvers.pairs import solve_block
from dhsk.solvers.problems import Pair
from dhsk.solvers.sources import Source

BALL_TOLERANCE: Final = 1e-3
"""Of squared radii: bounds of the capacity are rounded up to whole numbers."""


@dataclass(frozen=True)
class Part:
    """What one task solves: a pair of classes on some folds, with every C."""

    kernel: int
    pair: int
    folds: tuple[int, ...]


def solve_part(part: Part, source: Source, pair: Pair, tol: float) -> tuple[Part, list[Fit], float]:
    """Solve some folds of a pair whose matrix fits: the task that workers run.

    Parameters
    ----------
    part
        Which.
    source
        The matrix.
    pair
        All its problems.
    tol
        Greatest KKT violation.

    Returns
    -------
    Part
        The part.
    list of Fit
        One for every C of every fold of it.
    float
        Squared radius of the ball that holds the samples of the pair; with the first fold only,
        otherwise 0.
    """
    K = source.block(pair.members)
    chain = pair.dual.chain
    columns = [fold * chain + c for fold in part.folds for c in range(chain)]
    fits = solve_block(K, Dual(pair.dual.sign, pair.dual.boxes[columns], chain), tol)
    return part, fits, smallest_ball(K, BALL_TOLERANCE).radius2 if 0 in part.folds else 0.0
