"""Where Newton's method stands, kept in a file after every step."""

from contextlib import suppress
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import DAMAGE
from dhsk.files import made_folder, written_beside


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


class Steps:
    """Keeps the last state of each batch of problems; without a folder it keeps nothing.

    Parameters
    ----------
    folder
        Made when the first state is kept.
    name
        Of the problems and their features, from `digest_of`: states of others are not found.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self._folder = folder
        self._name = name

    def put(self, batch: int, room: int, state: State) -> None:
        """Keep a state; it is there whole, or the one before it is.

        Parameters
        ----------
        batch
            Number of the batch.
        room
            Bytes for second derivatives: rounding depends on how many are summed side by side.
        state
            The state.
        """
        if self._folder is None:
            return
        values = {f.name: getattr(state, f.name) for f in fields(State)}
        kept = {name: value for name, value in values.items() if value is not None}
        with made_folder(self._folder), written_beside(self._path(batch)) as file:
            np.savez(file, room=room, **kept)

    def get(self, batch: int) -> tuple[int, State] | None:
        """What was put last.

        Parameters
        ----------
        batch
            Number of the batch.

        Returns
        -------
        tuple of room and State
            None if there is no whole state.
        """
        if self._folder is None:
            return None
        try:
            whole = BytesIO(self._path(batch).read_bytes())
            with np.load(whole, allow_pickle=False) as file:
                values = {name: _plain(file[name]) for name in file.files}
            return values.pop("room"), State(**values)
        except FileNotFoundError:
            return None
        except (*DAMAGE, TypeError):
            return None  # it is solved again

    def _path(self, batch: int) -> Path:
        assert self._folder is not None
        return self._folder / f"newton-{self._name}-{batch}.npz"


def _plain(value: NDArray[Any]) -> Any:
    """Numbers as Python's."""
    return value if value.ndim else value.item()


def remove_journal(folder: Path) -> None:
    """Remove what a training that has ended kept, and the folder if nothing else is in it."""
    for kind in ("landmarks", "newton"):
        for file in (*folder.glob(f"{kind}-*.npz"), *folder.glob(f".{kind}-*.part")):
            file.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
