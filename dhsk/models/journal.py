"""Finished fits of a grid in a folder, so that a grid that was killed goes on where it was."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dhsk.execution.checkpoint import DAMAGE
from dhsk.files import made_folder, parse_json, written_beside
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
        self.folder = folder

    def get(self, name: str) -> tuple[list[Fit], Any] | None:
        """Entry of a name.

        Parameters
        ----------
        name
            From `digest_of`.

        Returns
        -------
        list of Fit, and the JSON value that was put with them
            None if there is no whole entry.
        """
        if self.folder is None:
            return None
        try:
            whole = BytesIO((self.folder / f"{name}.npz").read_bytes())
        except FileNotFoundError:
            return None
        try:
            with np.load(whole, allow_pickle=False) as file:
                numbers, rest = parse_json(str(file["numbers"])), parse_json(str(file["rest"]))
                lengths = file["lengths"].astype(np.int64)
                ends = np.cumsum(lengths)
                arrays = {key: file[key] for key in _ARRAYS}
        except DAMAGE:
            return None  # it is fitted again
        parts = [slice(end - size, end) for end, size in zip(ends, lengths, strict=True)]
        return [
            Fit(**{key: values[part] for key, values in arrays.items()}, **own)
            for part, own in zip(parts, numbers, strict=True)
        ], rest

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
        if self.folder is None:
            return
        numbers = [{k: v for k, v in asdict(fit).items() if k not in _ARRAYS} for fit in fits]
        path = self.folder / f"{name}.npz"
        with made_folder(self.folder), written_beside(path) as file:
            np.savez(
                file,
                support=np.concatenate([np.empty(0, np.int64), *(fit.support for fit in fits)]),
                coef=np.concatenate([np.empty(0), *(fit.coef for fit in fits)]),
                lengths=np.array([len(fit.support) for fit in fits], dtype=np.int64),
                numbers=np.array(json.dumps(numbers)),
                rest=np.array(json.dumps(rest)),
            )

    def drop(self, names: Sequence[str]) -> None:
        """Forget entries that are of no more use.

        Parameters
        ----------
        names
            Of the entries.
        """
        if self.folder is None:
            return
        for name in names:
            (self.folder / f"{name}.npz").unlink(missing_ok=True)
