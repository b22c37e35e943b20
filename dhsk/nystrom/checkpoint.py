"""Checkpoint of the choice of landmarks, written after every round."""

from typing import Any, Final

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import Checkpoint
from dhsk.nystrom.cholesky import Factor
from dhsk.nystrom.landmarks import PivotState
from dhsk.objects.places import Place

PREFIX: Final = "landmarks-"


class LandmarkCheckpoint:
    """Last round of a choice on disk; without a folder nothing is written.

    The name, from `digest_of`, identifies everything that determines the choice.
    """

    def __init__(self, folder: Place | None, name: str) -> None:
        self._entries = Checkpoint(folder, PREFIX)
        self._name = name

    def last(self) -> tuple[PivotState, Floats] | None:
        """State after the last round, and the root of its factor; None if there is none."""
        return self._entries.get(self._name, _round)

    def keep(self, choice: PivotState, factor: Factor) -> None:
        """Replace the last round."""
        if self._entries.folder is None:  # the root of the factor takes a tenth of all rounds
            return
        arrays: dict[str, Any] = {**vars(choice), "root": factor.root}
        self._entries.put(self._name, arrays, {"random": dict(arrays.pop("random"))})


def _round(kept: dict[str, Any]) -> tuple[PivotState, Floats]:
    root = kept.pop("root")
    return PivotState(**kept), root
