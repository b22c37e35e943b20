"""Checkpoints: files from which a killed run resumes.

A method that is deterministic but for its products with a matrix needs no entry of its own, see
`dhsk.execution.kept_pass`. Of any other, `state` keeps what changes between two steps. What is
finished, or is written after every step, are entries by `put` and `get`. Rejected for products: the
basis and the projected matrix, which are rewritten after each pass or need a format for parts.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from hashlib import blake2b
from io import BytesIO
from itertools import chain
from time import perf_counter
from typing import Any, Final, Protocol, TypeVar
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

QUIET: Final = 20.0
"""Time between two entries of a state, as a multiple of the time that one takes to write."""

_MOST_QUIET, _LEAST_QUIET = 15.0, 3.0
"""Most seconds between two entries, unless that is less than this multiple: so much work is done
again after a kill, and no more than a quarter of the time goes into entries."""


class Resumable(Protocol):
    """State of a method between two steps."""

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and JSON values, from which `restore` makes the same state."""

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from arrays and values by name; an error leaves the state as it is."""


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

    def first(self, name: str, make: Callable[[], Entry]) -> Entry:
        """JSON value that the first call has made under a name, for those that go on."""
        found = self.get(name, lambda kept: kept["first"])
        if found is None:
            found = make()
            self.put(name, {}, {"first": found})
        value: Entry = found
        return value

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

    def within(self, prefix: str) -> "Checkpoint":
        """The entries whose names begin so."""
        return Checkpoint(self.folder, f"{self._prefix}{prefix}")

    def state(self, state: Resumable, name: str, unkept: float = 0.0) -> "KeptState":
        """Restore what an earlier process has kept under a name, and keep it there.

        Nothing is kept in the first `unkept` seconds.
        """
        return KeptState(self, name, state, unkept)

    def _path(self, name: str) -> Place:
        assert self.folder is not None
        return self.folder / f"{self._prefix}{name}.npz"


NOWHERE: Final = Checkpoint(None)
"""Stores nothing."""


class KeptState:
    """The entry of a state, made by `Checkpoint.state`."""

    def __init__(self, entries: Checkpoint, name: str, state: Resumable, unkept: float) -> None:
        self._entries, self._name, self._state = entries, name, state
        self._next = perf_counter() + unkept

        def restored(kept: dict[str, Any]) -> bool:
            state.restore(kept)
            return True

        self.resumed = entries.get(name, restored) is not None

    def keep(self, *, last: bool = False) -> None:
        """Write the state, unless it is not the last and an earlier entry is recent."""
        begin = perf_counter()
        if self._entries.folder is None or (begin < self._next and not last):
            return
        self._entries.put(self._name, *self._state.entry())
        end = perf_counter()
        took = end - begin
        self._next = end + min(QUIET * took, max(_MOST_QUIET, _LEAST_QUIET * took))

    def drop(self) -> None:
        """Remove the entry."""
        self._entries.drop(self._name)


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
            one = part.strides == (0,)  # a value that stands for all
            total.update(np.ascontiguousarray(part[:1] if one else part).data)
        else:
            total.update(json.dumps(part, sort_keys=True).encode())
    return total.hexdigest()


def _parts(value: Any) -> tuple[Any, ...]:
    """The arrays of a CSR matrix, any other value as it is."""
    return (value.data, value.indices, value.indptr) if hasattr(value, "indptr") else (value,)
