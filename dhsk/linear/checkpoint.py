"""Checkpoint of Newton's method, written after every step."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import Checkpoint
from dhsk.objects.places import Place

PREFIX: Final = "newton-"


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


def forget(_: State) -> None:
    """Write no checkpoint."""


class NewtonCheckpoint:
    """Last state of each batch of problems on disk; without a folder nothing is written.

    The name, from `digest_of`, identifies the problems and their features.
    """

    def __init__(self, folder: Place | None, name: str) -> None:
        self._entries = Checkpoint(folder, PREFIX)
        self._name = name

    def put(self, batch: int, room: int, state: State) -> None:
        """Replace the state of a batch.

        room is the memory for Hessians in bytes: rounding depends on how many are summed at once.
        """
        values = {name: value for name, value in vars(state).items() if value is not None}
        self._entries.put(f"{self._name}-{batch}", {"room": room, **values})

    def get(self, batch: int) -> tuple[int, State] | None:
        """Last room and state of a batch, None if there is no complete one."""
        return self._entries.get(f"{self._name}-{batch}", _room_and_state)


def _room_and_state(kept: dict[str, Any]) -> tuple[int, State]:
    room = kept.pop("room")
    return room, State(**kept)
