"""States of several pairs of classes, which are kept and resumed together."""

from collections.abc import Sequence
from typing import Any, ClassVar

PREFIX = "sets-"
"""Begins the names of the entries of a grid."""


class PairState:
    """State of the problems of a pair between two rounds: named attributes."""

    ARRAYS: ClassVar[tuple[str, ...]]
    """Names of the arrays of an entry."""

    VALUES: ClassVar[tuple[str, ...]]
    """Names of the JSON values of an entry."""

    def values(self) -> dict[str, Any]:
        """JSON values of an entry."""
        return {name: getattr(self, name) for name in self.VALUES}

    def take_up(self, kept: dict[str, Any]) -> None:
        """Go on from arrays and values of an entry."""
        for name, value in kept.items():
            setattr(self, name, value)


class Together:
    """States of pairs that share columns or passes, and numbers of all of them.

    They are resumed together, as the blocks in which kernel values are computed decide their last
    bits.
    """

    def __init__(self, states: Sequence[PairState], shared: dict[str, Any]) -> None:
        self._states, self._shared = states, shared

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and values of all states."""
        arrays = {
            f"{number}-{name}": getattr(state, name)
            for number, state in enumerate(self._states)
            for name in state.ARRAYS
        }
        values = [state.values() for state in self._states]
        return arrays, {"states": values, "shared": dict(self._shared)}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from an entry of the same pairs."""
        found = []
        for number, (state, values) in enumerate(zip(self._states, kept["states"], strict=True)):
            if values.keys() != state.values().keys():
                raise ValueError("values of another version")
            found.append({name: kept[f"{number}-{name}"] for name in state.ARRAYS} | values)
        shared = {name: kept["shared"][name] for name in self._shared}
        # Only now that nothing is lacking: a state must not be that of two runs.
        for state, own in zip(self._states, found, strict=True):
            state.take_up(own)
        self._shared.update(shared)
