"""Checkpoint of methods that work in rounds."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar, Final, Protocol

from numpy.typing import NDArray

from dhsk.execution.checkpoint import Checkpoint

PREFIX: Final = "sets-"
"""Begins the names of these files."""

QUIET: Final = 20.0
"""Time between two entries, as a multiple of the time that one takes to write."""

_MOST_QUIET, _LEAST_QUIET = 15.0, 3.0
"""Most seconds between two entries, unless that is less than this multiple: so much work is done
again after a kill, and no more than a quarter of the time goes into entries."""


class Resumable(Protocol):
    """State of the problems of a pair between two rounds."""

    ARRAYS: ClassVar[tuple[str, ...]]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of a checkpoint, by the names in `ARRAYS`."""

    def values(self) -> dict[str, Any]:
        """JSON values of a checkpoint."""

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from a checkpoint."""


class RoundCheckpoint:
    """The state of pairs between two rounds, on disk; without a folder nothing is written.

    Pairs that share columns are resumed together, as the blocks in which kernel values are computed
    decide their last bits.
    """

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        self._entries = checkpoint or Checkpoint(None)
        self._next = 0.0

    def resume(self, name: str, states: Sequence[Resumable]) -> dict[str, Any]:
        """Restore the states of pairs; return the values stored with them, or none."""

        def restored(kept: dict[str, Any]) -> dict[str, Any]:
            if len(kept["states"]) != len(states):
                raise ValueError("other pairs")
            arrays = [
                {key: kept[f"{number}-{key}"] for key in states[0].ARRAYS}
                for number in range(len(states))
            ]
            shared = dict(kept["shared"])
            if any(values.keys() != states[0].values().keys() for values in kept["states"]):
                raise ValueError("values of another version")
            # Only now that nothing is lacking: a state must not be that of two runs.
            for state, own, values in zip(states, arrays, kept["states"], strict=True):
                state.restore(own, values)
            return shared

        return self._entries.get(name, restored) or {}

    def put(
        self, name: str, states: Sequence[Resumable], shared: Mapping[str, Any], *, last: bool
    ) -> None:
        """Write an entry, unless it is not the last and an earlier one is recent."""
        begin = perf_counter()
        if self._entries.folder is None or (begin < self._next and not last):
            return
        arrays = {
            f"{number}-{key}": value
            for number, state in enumerate(states)
            for key, value in state.arrays().items()
        }
        own = [state.values() for state in states]
        self._entries.put(name, arrays, {"states": own, "shared": dict(shared)})
        end = perf_counter()
        took = end - begin
        most = max(_MOST_QUIET, _LEAST_QUIET * took)
        self._next = end + min(QUIET * took, most)

    def drop(self, *names: str) -> None:
        """Remove entries."""
        self._entries.drop(*names)
