"""Features of all samples on disk: one zarr array, row block = chunk.

Layout, schema 1: an array (N, r) of chunks (rows, r), fill NaN, crc32c, whose attribute
"dhsk_features" says of which samples, landmarks and kernel it is, and "feature_names" how the
columns of the samples are called, if they have names (a digest is in the former). As in Gram
stores, a chunk appears in one step, so its presence at full size is the record of a finished block.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec
from zarr.storage import MemoryStore

from dhsk.errors import BudgetError, StoreError, StoreMismatchError
from dhsk.files import parse_json
from dhsk.gram.chunks import chunk_size, write_chunk
from dhsk.gram.header import short
from dhsk.gram.names import digest_of_names
from dhsk.gram.sizes import human_bytes
from dhsk.gram.store import is_described, is_occupied

ATTRIBUTE: Final = "dhsk_features"
NAMES: Final = "feature_names"
SCHEMA: Final = 1


class FeatureStore:
    """Writer of one store.

    Parameters
    ----------
    path
        Folder of the zarr array.
    shape
        Samples and features.
    rows
        Rows of a block.
    dtype
        Type of the features.
    """

    def __init__(
        self, path: Path, shape: tuple[int, int], rows: int, dtype: "np.dtype[Any]"
    ) -> None:
        self.path = path
        self.shape = shape
        self.rows = rows
        self.dtype = dtype

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.shape[0] // self.rows)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block on disk."""
        return chunk_size(self._chunk, self.dtype)

    def missing(self) -> list[int]:
        """Numbers of the blocks that are not there in full size."""
        return [number for number in range(self.n_blocks) if not self._has(number)]

    def check_kind(self) -> None:
        """Refuse a path that holds something else.

        Raises
        ------
        StoreError
            It does.
        """
        if is_occupied(self.path):
            self._found()

    def check_disk(self) -> None:
        """Refuse what the disk has no room for.

        Raises
        ------
        BudgetError
            The missing blocks do not fit.
        """
        needed, free = len(self.missing()) * self.block_bytes, shutil.disk_usage(self.path).free
        if needed > free:
            raise BudgetError(
                f"the features need {human_bytes(needed)} on disk but only {human_bytes(free)} are "
                "free: choose another disk, or dtype='float32'"
            )

    def take_up(
        self, described: dict[str, Any], feature_names: Sequence[str] | None = None
    ) -> None:
        """Make the array, or go on with the one that is there.

        Parameters
        ----------
        described
            Of what it is, in JSON.
        feature_names
            Names of the samples' features; None where they have none, and then, as where the array
            that is there was written without, they are not compared.

        Raises
        ------
        StoreMismatchError
            The one that is there is of something else.
        """
        described = {"schema": SCHEMA, **described, "blocks": f"{self.rows} rows"}
        if not is_occupied(self.path):
            self._create(str(self.path), *_with_names(described, feature_names))
            return
        found = self._found()
        stored = self._names()
        own = stored if feature_names is None or stored is None else feature_names
        described, names = _with_names(described, own)
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
        if not self._is_described(described, names):
            raise StoreMismatchError(
                f"the description of {self.path} is damaged (zarr.json): delete that folder first, "
                "or choose another path"
            )
        for file in self.path.rglob("*.partial"):  # of writes that were killed
            file.unlink(missing_ok=True)

    def write(self, number: int, values: NDArray[Any]) -> None:
        """Write a block, (rows, r); it is there whole or not at all."""
        write_chunk(self._file(number), values, self._chunk)

    @property
    def _chunk(self) -> tuple[int, int]:
        return self.rows, self.shape[1]

    def _file(self, number: int) -> Path:
        return self.path / "c" / str(number) / "0"

    def _has(self, number: int) -> bool:
        try:
            return self._file(number).stat().st_size == self.block_bytes
        except FileNotFoundError:
            return False

    def _create(
        self, place: Any, described: dict[str, Any], feature_names: Sequence[str] | None
    ) -> "zarr.Array[Any]":
        names = {} if feature_names is None else {NAMES: list(feature_names)}
        return zarr.create_array(
            place,
            shape=self.shape,
            chunks=self._chunk,
            dtype=self.dtype,
            fill_value=float("nan"),
            filters=None,
            compressors=[Crc32cCodec()],
            attributes={ATTRIBUTE: described, **names},
        )

    def _names(self) -> list[str] | None:
        """Names of the samples' features, as they were written."""
        names = parse_json((self.path / "zarr.json").read_text())["attributes"].get(NAMES)
        return names if isinstance(names, list) else None

    def _found(self) -> dict[str, Any]:
        try:
            found = parse_json((self.path / "zarr.json").read_text())["attributes"][ATTRIBUTE]
            return dict(found)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.path} holds something else than features: choose another path, or delete "
                "it first"
            ) from error

    def _is_described(self, described: dict[str, Any], feature_names: Sequence[str] | None) -> bool:
        return is_described(self.path, self._create(MemoryStore(), described, feature_names))


def _with_names(
    described: dict[str, Any], feature_names: Sequence[str] | None
) -> tuple[dict[str, Any], Sequence[str] | None]:
    """A description, with the digest of the names if there are any; and the names."""
    digest = digest_of_names(feature_names)
    return described | ({} if digest is None else {NAMES: digest}), feature_names
