"""State of Newton's method between two steps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats


@dataclass
class State:
    """State of Newton's method after a step; the remaining steps depend on nothing else.

    Attributes
    ----------
    V
        Coefficients, (width + 1, J).
    f, G
        Objective and gradient at V, (J,) and (width + 1, J). They are stored because computing them
        for another set of columns rounds differently.
    goal
        Gradient norms at which columns have converged, (J,).
    first
        Gradient norms at the initial solution, (J,).
    live
        Mask of the active columns, (J,).
    newton, passes
        Newton steps, and passes over the features, so far.
    conjugate
        Conjugate gradient iterations of the last step.
    factored
        Coefficients at which the preconditioner was last computed, None if it was not.
    made
        Mask of the columns that it was computed for, (J,).
    """

    V: Floats
    f: Floats
    G: Floats
    goal: Floats
    first: Floats
    live: NDArray[np.bool_]
    newton: int = 0
    passes: int = 0
    conjugate: int = 0
    factored: Floats | None = None
    made: NDArray[np.bool_] | None = None

    def entry(self) -> dict[str, Any]:
        """Arrays and numbers of a checkpoint."""
        return {name: value for name, value in vars(self).items() if value is not None}


def forget(_: State) -> None:
    """Write no checkpoint."""
