"""The choice of landmarks on disk after every round, so that a killed one goes on where it was."""

from pathlib import Path
from typing import Any, Final

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import Checkpoint
from dhsk.nystrom.cholesky import Factor
from dhsk.nystrom.landmarks import PivotState

PREFIX: Final = "landmarks-"


class LandmarkCheckpoint:
    """Keeps the last round of one choice; without a folder it keeps nothing.

    Parameters
    ----------
    folder
        Made when the first round is written.
    name
        From `digest_of` all that determines the choice.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self._entries = Checkpoint(folder, PREFIX)
        self._name = name

    def last(self) -> tuple[PivotState, Floats] | None:
        """Choice after the last round, and the root of its factor; None without a whole one."""
        return self._entries.get(self._name, _round)

    def keep(self, choice: PivotState, factor: Factor) -> None:
        """Keep a round in place of the one before."""
        arrays: dict[str, Any] = {**vars(choice), "root": factor.root}
        self._entries.put(self._name, arrays, {"random": dict(arrays.pop("random"))})


def _round(kept: dict[str, Any]) -> tuple[PivotState, Floats]:
    root = kept.pop("root")
    return PivotState(**kept), root
