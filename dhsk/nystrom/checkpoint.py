"""The choice of landmarks on disk after every round, so that a killed one goes on where it was."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import DAMAGE
from dhsk.files import made_folder, parse_json, written_beside
from dhsk.nystrom.cholesky import Factor
from dhsk.nystrom.landmarks import Choice


class Rounds:
    """Keeps the last round of one choice; without a folder it keeps nothing.

    Parameters
    ----------
    folder
        Made when the first round is written.
    name
        From `digest_of` all that determines the choice.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self._path = None if folder is None else folder / f"landmarks-{name}.npz"

    def last(self) -> tuple[Choice, Floats] | None:
        """Choice after the last round, and the root of its factor; None without a whole one."""
        if self._path is None:
            return None
        try:
            with np.load(BytesIO(self._path.read_bytes()), allow_pickle=False) as file:
                choice = Choice(
                    left=file["left"],
                    error=float(file["error"]),
                    pivots=file["pivots"],
                    random=parse_json(str(file["random"])),
                )
                return choice, file["root"]
        except FileNotFoundError:
            return None
        except DAMAGE:
            return None  # it is chosen again

    def keep(self, choice: Choice, factor: Factor) -> None:
        """Keep a round in place of the one before; it is there whole, or not at all."""
        if self._path is None:
            return
        with made_folder(self._path.parent), written_beside(self._path) as file:
            np.savez(
                file,
                left=choice.left,
                error=np.array(choice.error),
                pivots=choice.pivots,
                random=np.array(json.dumps(dict(choice.random))),
                root=factor.root,
            )
