"""Descriptions of arrays and groups, zarr.json: derived from their content, compared whole."""

import json
import math
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np

from dhsk.files import parse_json
from dhsk.objects.places import Place, write_whole

DESCRIPTION: Final = "zarr.json"

SUM: Final = "dhsk_crc32c"
"""Attribute with the checksum of the header, which is another attribute."""

_UNSAID: Final[dict[str, Any]] = {
    "attributes": {},
    "consolidated_metadata": None,
    "dimension_names": None,
    "storage_transformers": [],
}
"""What some versions of zarr write and others leave out."""


def described_array(
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: Any,
    fill_value: float,
    attributes: dict[str, Any],
) -> dict[str, Any]:
    """Description of an array of chunks with checksums, as zarr v3 writes it."""
    kind, edges = np.dtype(dtype), [int(n) for n in chunks]
    return {
        "shape": [int(n) for n in shape],
        "data_type": kind.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": edges}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN" if math.isnan(fill_value) else kind.type(fill_value).item(),
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "attributes": attributes,
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


@dataclass(frozen=True)
class StoredGroup:
    """A group of zarr: a folder whose description has attributes."""

    folder: Place
    attributes: dict[str, Any]

    def is_described(self) -> bool:
        """Whether the folder has this description, see `agree`."""
        return agree(read_description(self.folder), self._described)

    def describe(self) -> None:
        """Write the description."""
        write_description(self.folder, self._described)

    @property
    def _described(self) -> dict[str, Any]:
        return {"attributes": self.attributes, "zarr_format": 3, "node_type": "group"}


def read_description(folder: Place) -> dict[str, Any] | None:
    """Description of a folder; None if it is absent or damaged."""
    try:
        said = parse_json((folder / DESCRIPTION).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def agree(said: dict[str, Any] | None, described: dict[str, Any]) -> bool:
    """Whether a folder's description says this and no more, whatever version of zarr wrote it."""
    expected = json.loads(json.dumps(described))
    return said is not None and _UNSAID | said == _UNSAID | expected


def attributes_of(folder: Place) -> dict[str, Any]:
    """Attributes in the description of a folder; empty if it is damaged."""
    return attributes_in(read_description(folder))


def attributes_in(said: dict[str, Any] | None) -> dict[str, Any]:
    """Attributes in a description; empty if it is damaged."""
    attributes = (said or {}).get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def write_description(folder: Place, described: dict[str, Any]) -> None:
    """Write the description of a folder atomically."""
    write_whole(folder / DESCRIPTION, json.dumps(described, indent=2).encode())


def checksum_of(described: object) -> str:
    """CRC-32C of JSON, as eight hexadecimal digits."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return f"{google_crc32c.value(text.encode()):08x}"
