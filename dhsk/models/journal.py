"""Checkpoint of the finished fits of a grid."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.execution.checkpoint import Checkpoint
from dhsk.objects.places import Place
from dhsk.solvers.dual import Fit

_ARRAYS = ("support", "coef")


class Journal:
    """Finished fits on disk, by name; without a folder nothing is written.

    Names are from `digest_of`; `prefix` begins those of the files.
    """

    def __init__(self, folder: Place | None = None, prefix: str = "") -> None:
        self._entries = Checkpoint(folder, prefix)

    def get(self, name: str) -> tuple[list[Fit], Any] | None:
        """Fits of a name, and the JSON value stored with them; None without a complete entry."""
        return self._entries.get(name, _fits)

    def arrays(self, name: str) -> dict[str, Any]:
        """Other arrays that are stored with a name; empty without a complete entry."""
        found = self._entries.get(name, lambda kept: {key: kept[key] for key in kept["others"]})
        return found or {}

    def put(
        self,
        name: str,
        fits: Sequence[Fit],
        rest: Any,
        others: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Write an entry of fits, a JSON value and other arrays atomically."""
        if self._entries.folder is None:
            return
        numbers = [{k: v for k, v in vars(fit).items() if k not in _ARRAYS} for fit in fits]
        arrays = {
            "support": np.concatenate([np.empty(0, np.int64), *(fit.support for fit in fits)]),
            "coef": np.concatenate([np.empty(0), *(fit.coef for fit in fits)]),
            "lengths": np.array([len(fit.support) for fit in fits], dtype=np.int64),
        }
        values = {"numbers": numbers, "rest": rest}
        if others:
            values["others"] = list(others)
        self._entries.put(name, arrays | dict(others or {}), values)

    def drop(self, names: Sequence[str]) -> None:
        """Delete entries."""
        self._entries.drop(*names)


def _fits(kept: dict[str, Any]) -> tuple[list[Fit], Any]:
    lengths = kept["lengths"].astype(np.int64)
    parts = [slice(end - size, end) for end, size in zip(np.cumsum(lengths), lengths, strict=True)]
    return [
        Fit(**{key: kept[key][part] for key in _ARRAYS}, **own)
        for part, own in zip(parts, kept["numbers"], strict=True)
    ], kept["rest"]
