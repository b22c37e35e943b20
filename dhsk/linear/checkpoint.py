"""Where Newton's method stands, kept in a file after every step."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import Checkpoint

PREFIX: Final = "newton-"


@dataclass
class State:
    """Where Newton's method stands after a step: all that the rest of it depends on.

    Attributes
    ----------
    V
        Coefficients, (width + 1, J).
    f, G
        Objective and its gradient there, (J,) and (width + 1, J): of other columns side by side
        they would differ in rounding.
    goal
        Lengths of gradients at which columns have converged, (J,).
    first
        Lengths at the start, (J,).
    live
        Columns that go on, (J,).
    newton, passes
        Steps, and passes over the features, so far.
    conjugate
        Conjugate gradients of the last step.
    factored
        Coefficients that the last factors were made at; None where there are none, or they were
        given.
    made
        Columns that these were for, (J,): those that go on are among them.
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
    """Keep nothing."""


class NewtonCheckpoint:
    """Keeps the last state of each batch of problems; without a folder it keeps nothing.

    Parameters
    ----------
    folder
        Made when the first state is kept.
    name
        Of the problems and their features, from `digest_of`: states of others are not found.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self._entries = Checkpoint(folder, PREFIX)
        self._name = name

    def put(self, batch: int, room: int, state: State) -> None:
        """Keep a state in place of the one before.

        Parameters
        ----------
        batch
            Number of the batch.
        room
            Bytes for second derivatives: rounding depends on how many are summed side by side.
        state
            The state.
        """
        values = {name: value for name, value in vars(state).items() if value is not None}
        self._entries.put(f"{self._name}-{batch}", {"room": room, **values})

    def get(self, batch: int) -> tuple[int, State] | None:
        """Room and state that were put last for a batch; None if there is no whole state."""
        return self._entries.get(f"{self._name}-{batch}", _room_and_state)


def _room_and_state(kept: dict[str, Any]) -> tuple[int, State]:
    room = kept.pop("room")
    return room, State(**kept)
