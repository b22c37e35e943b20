"""Features of all samples in a store: one zarr array, row block = chunk.

Layout, schema 2: an array (N, r) of chunks (rows, r), fill NaN, crc32c. The attribute
"dhsk_features" describes samples, landmarks and kernel; "dhsk_crc32c" is its checksum;
"feature_names" are the names of the input features, if they have names, with a digest in
"dhsk_features". As in Gram stores, a chunk appears in one step, so its presence at full size is the
record of a finished block, and a finished array records the checksums of its chunks by their
places. "map.npz" beside them has the landmarks and the normalization, see `held_map`; the command
`dhsk features` adds "model.dhsk", the estimator.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import (
    BudgetError,
    CorruptTileError,
    IncompleteStoreError,
    StoreError,
    StoreMismatchError,
)
from dhsk.execution.lock import is_occupied
from dhsk.files import REFUSED, refusal_of
from dhsk.gram.storage.descriptions import (
    DESCRIPTION,
    SUM,
    attributes_of,
    checksum_of,
    read_description,
)
from dhsk.gram.storage.header import short
from dhsk.gram.storage.names import digest_of_names
from dhsk.gram.storage.stored_array import StoredArray
from dhsk.objects.places import Place, free_bytes, remove_below
from dhsk.progress import Progress
from dhsk.run_progress import passes_of_call
from dhsk.units import format_bytes

ATTRIBUTE: Final = "dhsk_features"
NAMES: Final = "feature_names"
SCHEMA: Final = 2
"""Version of the format of stores; no other one is read."""

_NAMED: Final = 8
"""Blocks that a message lists."""


class FeatureStore:
    """Reader and writer of one store: an array of shape (N, r) in blocks of rows."""

    def __init__(
        self, path: Place, shape: tuple[int, int], rows: int, dtype: "np.dtype[Any]"
    ) -> None:
        self.path = path
        self.shape = shape
        self.rows = rows
        self.dtype = dtype
        self._array = StoredArray(path, shape, (rows, shape[1]), dtype, float("nan"))

    @classmethod
    def open(cls, path: Place) -> "FeatureStore":
        """Open an existing store, complete or not, to verify it.

        Raises CorruptTileError if its description is damaged, StoreError if it is no store of
        features.
        """
        _described(path)
        said = read_description(path) or {}
        try:
            (n, width), dtype = said["shape"], np.dtype(said["data_type"])
            rows = said["chunk_grid"]["configuration"]["chunk_shape"][0]
            store = cls(path, (int(n), int(width)), int(rows), dtype)
            sound = store._is_described()
        except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError):
            sound = False
        if not sound:
            raise CorruptTileError(_DAMAGED.format(path))
        return store

    @property
    def described(self) -> dict[str, Any]:
        """Description of the features, as JSON."""
        return _described(self.path)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.shape[0] // self.rows)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block on disk."""
        return self._array.chunk_bytes

    def missing(self) -> list[int]:
        """Indices of the blocks that are not stored in their full size."""
        present = self._array.present()
        return [n for n in range(self.n_blocks) if (n, 0) not in present]

    def check_sound(self) -> None:
        """Read and verify all blocks.

        Raises CorruptTileError, which names the damaged blocks, or IncompleteStoreError if blocks
        are missing and the others are sound.
        """
        missing = self.missing()
        damaged, report = [], passes_of_call().report
        for number in range(self.n_blocks):
            if not self._array.is_sound((number, 0)):
                damaged.append(number)
            report(Progress("checking", number + 1, self.n_blocks))
        damaged = sorted(set(damaged) - set(missing))
        if damaged:
            files = ", ".join(str(self._file(number)) for number in damaged[:_NAMED])
            raise CorruptTileError(
                f"{len(damaged)} of {self.n_blocks} blocks of features are damaged: delete "
                f"{files}{', ...' if len(damaged) > _NAMED else ''}, and write the features again: "
                "only what is missing is computed"
            )
        if missing:
            raise IncompleteStoreError(
                f"{self.path} lacks {len(missing)} of {self.n_blocks} blocks of features: write "
                "them again, only what is missing is computed"
            )

    def read(self, number: int) -> NDArray[Any]:
        """Read a block, (rows, r), and test its checksum.

        Raises CorruptTileError if it is damaged, and IncompleteStoreError if it is missing.
        """
        out: NDArray[Any] = np.empty(self._array.chunks, self.dtype)
        self._array.read((number, 0), out)
        return out[: self.shape[0] - number * self.rows]

    def check_kind(self) -> None:
        """Raise StoreError if the path holds anything but features.

        Raises CorruptTileError if it holds features whose description is damaged.
        """
        if is_occupied(self.path):
            _described(self.path)

    def check_disk(self) -> None:
        """Raise BudgetError if the missing blocks do not fit on disk."""
        needed, free = len(self.missing()) * self.block_bytes, free_bytes(self.path)
        if free is not None and needed > free:
            raise BudgetError(
                f"the features need {format_bytes(needed)} on disk but only "
                f"{format_bytes(free)} are free: choose another disk, or dtype='float32'"
            )

    def take_up(
        self, described: dict[str, Any], feature_names: Sequence[str] | None = None
    ) -> None:
        """Create the array, or resume the one on disk.

        Names of the input features are compared if both the samples and the array have them. Raises
        StoreMismatchError if the array on disk has another description.
        """
        described = {"schema": SCHEMA, **described, "blocks": f"{self.rows} rows"}
        if not is_occupied(self.path):
            described = _with_names(described, feature_names)
            self._array = replace(self._array, attributes=_attributes(described, feature_names))
            self._array.begin()
            return
        found, stored = _described(self.path), _names(self.path)
        own = stored if feature_names is None or stored is None else feature_names
        described = _with_names(described, own)
        differences = [
            f"{name} ({short(found.get(name))}, now {short(value)})"
            for name, value in described.items()
            if found.get(name) != value
        ]
        if differences:
            raise StoreMismatchError(
                f"{self.path} holds features of other {', '.join(differences)}: choose another "
                "path, or delete it first"
            )
        if not self._is_described():
            raise CorruptTileError(_DAMAGED.format(self.path))

    def _is_described(self) -> bool:
        """Whether zarr.json follows from the header and the shape; its attributes are adopted."""
        header, names = _described(self.path), _names(self.path)
        array = replace(self._array, attributes=_attributes(header, names))
        if not array.is_described():
            return False
        self._array = array
        return header.get(NAMES) == digest_of_names(names)

    def forget(self, numbers: Sequence[int]) -> None:
        """Remove blocks that will be rewritten from the record of checksums."""
        self._array.forget((number, 0) for number in numbers)

    def record(self) -> None:
        """Record the checksums of all blocks, which must be complete, by their places."""
        self._array.complete()

    def remove(self) -> None:
        """Delete the store; its description goes last."""
        remove_below(self.path / "c")
        (self.path / DESCRIPTION).unlink()

    def write(self, number: int, values: NDArray[Any]) -> None:
        """Write a block, (rows, r), atomically."""
        self._array.write((number, 0), values)

    def _file(self, number: int) -> Place:
        return self._array.path_of((number, 0))


_DAMAGED: Final = (
    "the description of the features in {} is damaged (zarr.json): restore that file from a copy, "
    "delete that folder, or choose another path"
)

_SIGNS: Final = (ATTRIBUTE.encode(), b'"landmarks"')
"""Two signs of a description of features; one flipped bit leaves at least one of them."""


def _attributes(described: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """Attributes of the array, without the record of checksums."""
    own = {} if names is None else {NAMES: list(names)}
    return {ATTRIBUTE: described, SUM: checksum_of(described), **own}


def _described(path: Place) -> dict[str, Any]:
    """Description of the features of a store.

    Raises CorruptTileError if it is damaged, StoreError if the folder holds something else, or
    features of another schema.
    """
    attributes = attributes_of(path)
    found, total = attributes.get(ATTRIBUTE), attributes.get(SUM)
    if isinstance(found, dict) and total in (None, checksum_of(found)):
        if found.get("schema") != SCHEMA:
            raise StoreMismatchError(
                f"{path} holds features of schema {found.get('schema')}, this version reads "
                f"{SCHEMA}: compute them again in another folder, or read them with the version "
                "that wrote them"
            )
        if total is not None:
            return found
    if _was_of_features(path):
        raise CorruptTileError(_DAMAGED.format(path))
    raise StoreError(
        f"{path} holds something else than features: choose another path, or delete it first"
    )


def is_of_features(path: Place) -> bool:
    """Whether a folder holds features, even if their description is damaged."""
    return "dhsk" not in attributes_of(path) and _was_of_features(path)


def _was_of_features(path: Place) -> bool:
    """Whether an unreadable description was one of features before it was damaged."""
    try:
        text = (path / DESCRIPTION).read_bytes()
    except OSError as error:
        if error.errno in REFUSED:
            raise refusal_of(error) from error
        return False
    return any(sign in text for sign in _SIGNS)


def _names(path: Place) -> list[str] | None:
    """Stored names of the input features."""
    names = attributes_of(path).get(NAMES)
    return names if isinstance(names, list) else None


def _with_names(described: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """A description with the digest of the names, if any."""
    digest = digest_of_names(names)
    return described | ({} if digest is None else {NAMES: digest})
