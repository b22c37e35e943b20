"""What is kept on disk so that a killed run goes on where it was."""

import json
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.files import made_folder, parse_json, written_beside

Entry = TypeVar("Entry")

_DAMAGE: Final = (
    BadZipFile,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OSError,
    RuntimeError,
    zlib.error,
)
"""What numpy and zipfile raise of bytes that are not what was written, and those who take them."""


class Checkpoint:
    """Arrays and JSON values under names, a file each; without a folder it keeps nothing.

    Parameters
    ----------
    folder
        Made when the first entry is written.
    prefix
        Of the files' names.
    """

    def __init__(self, folder: Path | None, prefix: str = "") -> None:
        self.folder = folder
        self._prefix = prefix

    def get(self, name: str, made: Callable[[dict[str, Any]], Entry]) -> Entry | None:
        """Entry of a name; None if there is no whole one: damage is the same as absence.

        Parameters
        ----------
        name
            From `digest_of`.
        made
            Makes the entry of arrays, numbers and JSON values by their names.
        """
        if self.folder is None:
            return None
        try:
            whole = BytesIO(self._path(name).read_bytes())
        except FileNotFoundError:
            return None
        try:
            with np.load(whole, allow_pickle=False) as file:
                return made({key: _plain(file[key]) for key in file.files})
        except _DAMAGE:
            return None

    def put(
        self, name: str, arrays: Mapping[str, ArrayLike], values: Mapping[str, Any] | None = None
    ) -> None:
        """Keep an entry in place of an earlier one; it is there whole, or not at all.

        Parameters
        ----------
        name
            From `digest_of`.
        arrays
            Arrays and numbers.
        values
            JSON values.
        """
        if self.folder is None:
            return
        texts = {key: np.array(json.dumps(value)) for key, value in (values or {}).items()}
        with made_folder(self.folder), written_beside(self._path(name)) as file:
            np.savez(file, **arrays, **texts)  # type: ignore[arg-type]  # of allow_pickle

    def drop(self, *names: str) -> None:
        """Forget entries that are of no more use."""
        for name in names if self.folder is not None else ():
            self._path(name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all entries, and the folder if nothing else is in it."""
        if self.folder is None:
            return
        for file in (
            *self.folder.glob(f"{self._prefix}*.npz"),
            *self.folder.glob(f".{self._prefix}*.part"),
        ):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{self._prefix}{name}.npz"


def _plain(value: NDArray[Any]) -> Any:
    """Numbers as Python's, and what JSON text says."""
    if value.ndim:
        return value
    return parse_json(str(value)) if value.dtype.kind == "U" else value.item()


def digest_of(*parts: Any) -> str:
    """Name of what was fitted: a hash of arrays and of JSON values.

    Parameters
    ----------
    parts
        What tells it from everything else.

    Returns
    -------
    str
        Hexadecimal.
    """
    total = blake2b(digest_size=12)
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(f"{part.dtype.str}{part.shape}".encode())
            total.update(np.ascontiguousarray(part).data)
        else:
            total.update(json.dumps(part, sort_keys=True).encode())
    return total.hexdigest()
