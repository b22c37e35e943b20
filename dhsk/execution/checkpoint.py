"""Checkpoints: files from which a killed run resumes."""

import json
import zlib
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from hashlib import blake2b
from io import BytesIO
from itertools import chain
from typing import Any, Final, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.files import parse_json
from dhsk.objects.places import Place, entries_of, made_folder, remove_empty, written

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
"""Errors of numpy, zipfile and `made` on damaged files."""


class Checkpoint:
    """Named entries of arrays and JSON values, a file each; without a folder it stores nothing.

    The folder is made with the first entry; `prefix` begins the name of every file.
    """

    def __init__(self, folder: Place | None, prefix: str = "") -> None:
        self.folder = folder
        self._prefix = prefix

    def get(self, name: str, made: Callable[[dict[str, Any]], Entry]) -> Entry | None:
        """Read an entry; None if it is absent or damaged.

        `made` receives its arrays, numbers and JSON values by name and returns the entry.
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
        """Write an entry of arrays, numbers and JSON values atomically, over an older one."""
        if self.folder is None:
            return
        # As bytes: numpy keeps text in four a character.
        texts = {key: np.array(json.dumps(value).encode()) for key, value in (values or {}).items()}
        with made_folder(self.folder), written(self._path(name)) as file:
            np.savez(file, **arrays, **texts)  # type: ignore[arg-type]  # of allow_pickle

    def drop(self, *names: str) -> None:
        """Remove entries."""
        for name in names if self.folder is not None else ():
            self._path(name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all entries, and the folder if it is then empty."""
        if self.folder is None:
            return
        for name in entries_of(self.folder):
            if fnmatch(name, f"{self._prefix}*.npz") or fnmatch(name, f".{self._prefix}*.part"):
                (self.folder / name).unlink(missing_ok=True)
        remove_empty(self.folder)

    def _path(self, name: str) -> Place:
        assert self.folder is not None
        return self.folder / f"{self._prefix}{name}.npz"


def _plain(value: NDArray[Any]) -> Any:
    """An array in memory of its own, a number as Python's, bytes parsed as JSON.

    numpy reuses temporary arrays that own their memory, which decides the layout of a sum, and so
    the last bits of what is computed from it: a stored array must not differ from a computed one.
    """
    if value.ndim:
        return value if value.base is None else value.copy(order="K")
    text: Any = value.item()
    return parse_json(text.decode()) if isinstance(text, bytes) else text


def digest_of(*parts: Any) -> str:
    """Hexadecimal hash of arrays, dense or CSR, and JSON values: the name of an entry."""
    total = blake2b(digest_size=12)
    for part in chain.from_iterable(map(_parts, parts)):
        if isinstance(part, np.ndarray):
            total.update(f"{part.dtype.str}{part.shape}".encode())
            total.update(np.ascontiguousarray(part).data)
        else:
            total.update(json.dumps(part, sort_keys=True).encode())
    return total.hexdigest()


def _parts(value: Any) -> tuple[Any, ...]:
    """The arrays of a CSR matrix, any other value as it is."""
    return (value.data, value.indices, value.indptr) if hasattr(value, "indptr") else (value,)
