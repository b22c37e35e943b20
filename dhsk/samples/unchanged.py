"""Detection of samples that change between readings.

Rejected: the fingerprint once more after staging (SHA-256 takes three times as long, and sees a
change when tiles of mixed rows exist); times of files (`rsync -t`, arrays).
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows
from dhsk.errors import InputError, SamplesChangedError
from dhsk.kernels.duplicates import row_hashes

_UNREAD: Final = np.uint32(0)


class SeenRows:
    """Hashes of `n` rows at their first reading, four bytes per row.

    A row whose hash differs later has changed; of changed rows, one in 2^32 is missed. Each row has
    its own hash, because passes may end early and have blocks of any size, and so that a changed
    row is found before it is used.
    """

    def __init__(self, n: int) -> None:
        self._seen: NDArray[np.uint32] = np.zeros(n, np.uint32)  # pages take memory once written

    def readable(self, blocks: Iterator[Rows]) -> Iterator[Rows]:
        """Yield the same blocks; `SamplesChangedError` if they cannot be read any more."""
        before = bool(self._seen[-1] != _UNREAD)
        try:
            yield from blocks
        except InputError as error:
            if not before:
                raise
            raise SamplesChangedError(
                f"{error}: it changed while it was read; run the same again when nothing writes to "
                "it"
            ) from error

    def check(self, source: str, block: Rows, first: int) -> None:
        """Record the hashes of rows that are read for the first time, and compare the others.

        `block`, dense or canonical CSR, begins with row `first`. Raises `SamplesChangedError` if a
        row has changed.
        """
        seen = self._seen[first : first + block.shape[0]]
        now = _folded(row_hashes(block))
        new = seen == _UNREAD
        other = np.flatnonzero((seen != now) & ~new)
        if other.size:
            raise SamplesChangedError(
                f"{source} changed while it was read: row {first + other[0]} (counted from 0) is "
                "not what it was before; run the same again when nothing writes to it"
            )
        seen[new] = now[new]


def _folded(hashes: Any) -> NDArray[np.uint32]:
    """Hashes folded to 32 bits, none of which is `_UNREAD`."""
    folded: NDArray[np.uint32] = (hashes ^ (hashes >> np.uint64(32))).astype(np.uint32)
    return np.maximum(folded, np.uint32(1))
