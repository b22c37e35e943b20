"""Objects as files that are read: seekable, with a read-ahead that grows.

Rejected: zarr's store on obstore, and `open_reader`: both give up after obstore's five seconds. An
`.npy` file on a disk stays a memory map, as ranges take 1.45 times the processor time.
"""

import errno
import io
import os
from collections.abc import Callable
from typing import Any, Final

FIRST_BYTES: Final = 1 << 20
"""Bytes that are read after a jump, at most: they take about as long as the request itself."""

MOST_BYTES: Final = 16 << 20
"""Bytes that are read ahead of a reader that does not jump, at most."""


class ObjectReader(io.RawIOBase):
    """A source of `size` bytes as a file, for an `io.BufferedReader` of `MOST_BYTES`.

    `fill` reads the bytes from some place on into a buffer: twice as many each time, so that the
    header of a file takes a small request and its content few large ones.
    """

    def __init__(self, fill: Callable[[int, memoryview], None], size: int) -> None:
        self._fill, self._size = fill, size
        self._at = self._after = 0
        self._ahead = FIRST_BYTES

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Position, in bytes."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to a position, also beyond the end."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Read at most as many bytes as a buffer takes; return their number, 0 at the end."""
        into = memoryview(buffer).cast("B")
        self._ahead = min(2 * self._ahead, MOST_BYTES) if self._at == self._after else FIRST_BYTES
        count = max(0, min(len(into), self._ahead, self._size - self._at))
        if count:
            self._fill(self._at, into[:count])
        self._at = self._after = self._at + count
        return count
