"""Finished fits of a grid in a folder, so that a grid that was killed goes on where it was."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dhsk.execution.checkpoint import Checkpoint
from dhsk.solvers.dual import Fit

_ARRAYS = ("support", "coef")


class Journal:
    """Keeps fits, and rows of results, under names; without a folder it keeps nothing.

    Parameters
    ----------
    folder
        Made when the first entry is written.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._entries = Checkpoint(folder)

    def get(self, name: str) -> tuple[list[Fit], Any] | None:
        """Fits of a name, and the JSON value that was put with them; None without a whole entry.

        Parameters
        ----------
        name
            From `digest_of`.
        """
        return self._entries.get(name, _fits)

    def put(self, name: str, fits: Sequence[Fit], rest: Any) -> None:
        """Keep an entry; it is there whole, or not at all.

        Parameters
        ----------
        name
            From `digest_of`.
        fits
            Fits.
        rest
            A JSON value to go with them.
        """
        numbers = [{k: v for k, v in vars(fit).items() if k not in _ARRAYS} for fit in fits]
        arrays = {
            "support": np.concatenate([np.empty(0, np.int64), *(fit.support for fit in fits)]),
            "coef": np.concatenate([np.empty(0), *(fit.coef for fit in fits)]),
            "lengths": np.array([len(fit.support) for fit in fits], dtype=np.int64),
        }
        self._entries.put(name, arrays, {"numbers": numbers, "rest": rest})

    def drop(self, names: Sequence[str]) -> None:
        """Forget entries that are of no more use.

        Parameters
        ----------
        names
            Of the entries.
        """
        self._entries.drop(*names)


def _fits(kept: dict[str, Any]) -> tuple[list[Fit], Any]:
    lengths = kept["lengths"].astype(np.int64)
    parts = [slice(end - size, end) for end, size in zip(np.cumsum(lengths), lengths, strict=True)]
    return [
        Fit(**{key: kept[key][part] for key in _ARRAYS}, **own)
        for part, own in zip(parts, kept["numbers"], strict=True)
    ], kept["rest"]
