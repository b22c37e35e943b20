"""State of Newton's method between two steps, and where a killed solve finds it."""

from dataclasses import dataclass, field, fields
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import NOWHERE, Checkpoint
from dhsk.linear.preconditioner import Factors, Key


@dataclass
class State:
    """State of Newton's method after a step; the rest depends on it and on the preconditioner."""

    V: Floats
    """Coefficients, (width + 1, J)."""
    f: Floats
    G: Floats
    """Objective and gradient at V, (J,) and (width + 1, J). They are stored because computing them
    for another set of columns rounds differently."""
    goal: Floats
    """Gradient norms at which columns have converged, (J,)."""
    first: Floats
    """Gradient norms at the initial solution, (J,)."""
    live: NDArray[np.bool_]
    """Mask of the active columns, (J,)."""
    newton: int = 0
    passes: int = 0
    """Newton steps, and passes over the features, so far."""
    conjugate: int = 0
    """Conjugate gradient iterations of the last step; 0 once the preconditioner is computed
    anew."""
    makes: int = 0
    """Number of times that the preconditioner was computed."""


@dataclass(eq=False)
class KeptSolve:
    """Entries of a solve: its state after each step, and the factors of its preconditioner."""

    entries: Checkpoint = NOWHERE
    name: str = ""
    """Where they are, and the name that begins theirs."""
    unkept: float = 0.0
    """Seconds before the first entry: less is done again."""
    _begin: float = field(default_factory=perf_counter, init=False)
    _written: "dict[Key, tuple[str, NDArray[Any]]]" = field(default_factory=dict, init=False)

    def keep(self, state: State, factors: Factors) -> None:
        """Write a state, and those of its factors that are new.

        What it replaces is removed last: at any time one state is whole.
        """
        if self.entries.folder is None or perf_counter() < self._begin + self.unkept:
            return
        before, self._written = self._written, {}
        for number, (key, (matrix, _)) in enumerate(factors.found.items()):
            name, earlier = before.get(key, ("", None))
            if matrix is not earlier:
                name = f"{self.name}-{state.makes}-{number}"
                self.entries.put(name, {"factor": matrix})
            self._written[key] = name, matrix
        names = {key: name for key, (name, _) in self._written.items()}
        self.entries.put(self.name, vars(state), {"factors": [[*key, names[key]] for key in names]})
        self.entries.drop(*{name for name, _ in before.values()} - set(names.values()))

    def last(self, factors: Factors) -> State | None:
        """Last state, whose factors are put into `factors`; None if there is none that is whole."""
        found = self.entries.get(self.name, lambda kept: (kept["factors"], _state_of(kept)))
        if found is None:
            return None
        names, state = found
        written = {}
        for positive, C, name in names:
            matrix = self.entries.get(name, lambda kept: kept["factor"])
            if matrix is None:
                return None
            written[positive, C] = name, matrix
        factors.found.update({key: (matrix, True) for key, (_, matrix) in written.items()})
        self._written = written
        return state

    def drop(self) -> None:
        """Remove all entries."""
        self.entries.drop(self.name, *(name for name, _ in self._written.values()))


def _state_of(kept: dict[str, Any]) -> State:
    return State(**{own.name: kept[own.name] for own in fields(State)})
