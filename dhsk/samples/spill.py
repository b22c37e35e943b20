"""Records in a temporary file, for samples whose order or columns are known only at the end."""

from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any, Final
from weakref import finalize

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dhsk.arrays import blocks
from dhsk.systems import AnyPlace

PART: Final = 2**16
"""Number of records that are read together."""

_MOST_BYTES: Final = 2**30
"""Most bytes of one call of the system, which takes at most 2 GiB."""


class Spill:
    """Records of one type in a file without a name, which ends with the object.

    Any thread may read. It is in the folder for temporary files, TMPDIR.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._file = TemporaryFile(prefix="dhsk-", buffering=0)  # noqa: SIM115  # as long as self
        finalize(self, self._file.close)
        self._content = AnyPlace(self._file.fileno())
        self.dtype = np.dtype(dtype)
        self.size = 0
        """Number of records."""

    def append(self, records: NDArray[Any]) -> None:
        """Write records after all others."""
        self.write(self.size, records)

    def write(self, first: int, records: NDArray[Any]) -> None:
        """Write consecutive records from the number `first` on."""
        self.size = max(self.size, first + len(records))
        left, at = _bytes_of(records.astype(self.dtype, copy=False)), first * self.dtype.itemsize
        while left:
            done = self._content.write(at, left[:_MOST_BYTES])
            left, at = left[done:], at + done

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Records from `first` to before `last`."""
        records = np.empty(last - first, self.dtype)
        left, at = _bytes_of(records), first * self.dtype.itemsize
        while left:
            done = self._content.read(at, left[:_MOST_BYTES])
            if done == 0:
                raise EOFError("a temporary file ends early")
            left, at = left[done:], at + done
        return records

    def parts(self) -> Iterator[NDArray[Any]]:
        """All records, `PART` at a time."""
        for part in blocks(self.size, PART):
            yield self.read(part.start, part.stop)


def _bytes_of(records: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(records).view(np.uint8).data
