"""Names of features in a store: a JSON file, whose digest is in the description.

It is a separate file, as every task reads the description, and there may be hundreds of thousands
of names.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from dhsk.errors import CorruptTileError
from dhsk.files import parse_json
from dhsk.objects.places import Place, written
from dhsk.systems import quoted

NAMES_FILE: Final = "feature_names.json"


def digest_of_names(names: Sequence[str] | None) -> str | None:
    """Digest of ordered names, 32 hexadecimal digits; None for no names."""
    return None if names is None else sha256(_encoded(names)).hexdigest()[:32]


def write_names(store: Place, names: Sequence[str]) -> None:
    """Write names into the folder of a store atomically."""
    with written(store / NAMES_FILE) as file:
        file.write(_encoded(names))


def read_names(store: Place, digest: str | None) -> tuple[str, ...] | None:
    """Read the names of a store with the digest from its description; None for no names.

    Raises CorruptTileError if they are damaged or missing.
    """
    if digest is None:
        return None
    file = store / NAMES_FILE
    try:
        names = tuple(parse_json(file.read_bytes()))
        if digest_of_names(names) == digest:
            return names
    except (FileNotFoundError, ValueError, TypeError):
        pass
    raise CorruptTileError(
        f"the names of the features of {store} are damaged ({file.name}): write them again with "
        f"dhsk verify {quoted(str(store))} --repair SAMPLES"
    )


def _encoded(names: Sequence[str]) -> bytes:
    return json.dumps(list(names), separators=(",", ":")).encode()
