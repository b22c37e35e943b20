"""Names and reading of what is kept on disk so that a killed run goes on where it was."""

import json
import zlib
from hashlib import blake2b
from typing import Any
from zipfile import BadZipFile

import numpy as np

DAMAGE = (BadZipFile, ValueError, KeyError, EOFError, OSError, RuntimeError, zlib.error)
"""What numpy and zipfile raise of bytes that are not what was written."""


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
