"""Descriptions of arrays and groups, zarr.json: derived from their content, compared whole."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import google_crc32c

from dhsk.files import parse_json
from dhsk.objects.places import Place, write_whole

if TYPE_CHECKING:  # zarr is loaded where a store is opened: estimators save its half a second
    import zarr

DESCRIPTION: Final = "zarr.json"

CONSOLIDATED: Final = "consolidated_metadata"
"""Key of groups that zarr 3.0 writes as null, and later versions leave out."""

SUM: Final = "dhsk_crc32c"
"""Attribute with the checksum of the header, which is another attribute."""


class ArrayDescription:
    """Description of an array of chunks with checksums; arguments as for `zarr.create_array`."""

    def __init__(
        self,
        shape: tuple[int, ...],
        chunks: tuple[int, ...],
        dtype: Any,
        fill_value: float | None,
        attributes: dict[str, Any],
    ) -> None:
        import zarr
        from zarr.codecs import Crc32cCodec
        from zarr.storage import MemoryStore

        written: dict[str, Any] = {}
        self._array = zarr.create_array(
            MemoryStore(written),
            shape=shape,
            chunks=chunks,
            dtype=dtype,
            fill_value=fill_value,
            filters=None,
            compressors=[Crc32cCodec()],
            attributes=attributes,
        )
        self.text: bytes = written[DESCRIPTION].to_bytes()

    def is_that_of(self, folder: Place) -> bool:
        """Whether a folder has this description, perhaps as another version of zarr writes it.

        That may omit defaults, but may not have more keys.
        """
        said = read_description(folder)
        if said is None:
            return False
        if said == json.loads(self.text):
            return True
        try:
            found = _opened(json.dumps(said))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # zarr's on damage
            return False
        understood, expected = (_plain(array) for array in (found, self._array))
        return understood == expected and _is_within(said, json.loads(understood))


@dataclass(frozen=True)
class StoredGroup:
    """A group of zarr: a folder whose description has attributes."""

    folder: Place
    attributes: dict[str, Any]

    def is_described(self) -> bool:
        """Whether the folder has this description, perhaps as another version of zarr writes it."""
        said, expected = read_description(self.folder), json.loads(self._text())
        for one in (said or {}, expected):
            if one.get(CONSOLIDATED, "") is None:
                del one[CONSOLIDATED]
        return bool(said == expected)

    def describe(self) -> None:
        """Write the description."""
        write_description(self.folder, self._text())

    def _text(self) -> bytes:
        import zarr
        from zarr.storage import MemoryStore

        written: dict[str, Any] = {}
        zarr.create_group(MemoryStore(written), attributes=self.attributes)
        text: bytes = written[DESCRIPTION].to_bytes()
        return text


def read_description(folder: Place) -> dict[str, Any] | None:
    """Description of a folder; None if it is absent or damaged."""
    try:
        said = parse_json((folder / DESCRIPTION).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def attributes_of(folder: Place) -> dict[str, Any]:
    """Attributes in the description of a folder; empty if it is damaged."""
    attributes = (read_description(folder) or {}).get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def write_description(folder: Place, text: bytes) -> None:
    """Write the description of a folder atomically."""
    write_whole(folder / DESCRIPTION, text)


def checksum_of(described: object) -> str:
    """CRC-32C of JSON, as eight hexadecimal digits."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return f"{google_crc32c.value(text.encode()):08x}"


def _opened(text: str) -> "zarr.Array[Any]":
    """Array of a description alone."""
    import zarr
    from zarr.core.buffer import default_buffer_prototype
    from zarr.storage import MemoryStore

    buffer = default_buffer_prototype().buffer.from_bytes(text.encode())
    return zarr.open_array(MemoryStore({DESCRIPTION: buffer}), mode="r", zarr_format=3)


def _plain(array: "zarr.Array[Any]") -> str:
    """Metadata that zarr has read of an array, as text, in which NaN equals itself."""
    return json.dumps(array.metadata.to_dict(), sort_keys=True, default=str)


def _is_within(said: Any, understood: Any) -> bool:
    """Whether zarr has read every key of a description."""
    if isinstance(said, dict) and isinstance(understood, dict):
        return all(k in understood and _is_within(v, understood[k]) for k, v in said.items())
    if isinstance(said, list) and isinstance(understood, list):
        return len(said) == len(understood) and all(map(_is_within, said, understood))
    return not isinstance(said, dict | list)
