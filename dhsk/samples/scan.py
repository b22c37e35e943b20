"""One pass over all samples before any work: it checks every row and computes a fingerprint."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Rows, numbered
from dhsk.samples.base import Samples
from dhsk.samples.maps import SphereMap, check_rows, map_of
from dhsk.samples.refusals import naming
from dhsk.samples.zeros import ZeroRows

BLOCK_BYTES: Final = 16 * 2**20
"""Bytes of a block of samples that is read and mapped at a time."""

_DIGEST_BYTES = 16
_VERSION = "dhsk samples 2"


@dataclass(frozen=True)
class Scan:
    """Result of one pass over the samples."""

    n_samples: int
    dim: int
    nnz: int | None
    """Number of nonzero entries; `None` when dense."""
    fingerprint: str
    """32 hexadecimal digits."""
    zero_rows: int = 0
    """Number of all-zero samples, which are mapped to the centre."""
    mapped_nnz: int | None = None
    """Most entries of the mapped samples; the centre has one, see `kernels.centre`."""


def scan(
    samples: Samples,
    sphere_map: SphereMap | None,
    check: Callable[[Rows, int], None] | None = None,
    on_rows: Callable[[int], None] | None = None,
    zero_rows: ZeroRows | None = None,
) -> Scan:
    """Read all samples once, check them, and compute their fingerprint.

    The fingerprint is a hash of the values as float64, before the map. It depends on every value,
    the shape and the order of the rows, but not on the file format or the block size. 0.0 and -0.0
    are equal, as for the kernels. Dense and CSR samples of the same values have different
    fingerprints, because their inner products may differ in the last bit.

    The samples are read in blocks of about 16 MiB; about five are in memory. `check` is called with
    each block and the index of its first row, and raises if a row cannot be used; `on_rows` is
    called after each block with the number of rows read so far. `zero_rows` counts all-zero
    samples; None maps them to the centre.

    Without a map only `check` looks at the values.

    Raises `InputError`, which names the source and the row, if a row or an entry has no image under
    the map, or `check` refuses.
    """
    fingerprint = _Fingerprint(samples.is_sparse, samples.shape)
    zero_rows, (n_samples, dim) = ZeroRows() if zero_rows is None else zero_rows, samples.shape
    done = nnz = zeros = images = 0
    most = None if sphere_map is None else map_of(sphere_map).most_entries
    with ThreadPoolExecutor(1) as other:  # a block is hashed while the next is read and checked
        hashed = other.submit(lambda: None)
        for _, block in in_blocks(samples):
            with naming(samples.source, samples.feature_names):
                if sphere_map is not None:
                    zeros += len(check_rows(sphere_map, block, done, zero_rows))
                if check is not None:
                    check(block, done)
            hashed.result()
            hashed = other.submit(fingerprint.update, block)
            if isinstance(block, csr_array):
                nnz += block.nnz
                images += block.nnz if most is None else int(most(np.diff(block.indptr), dim).sum())
            done += block.shape[0]
            if on_rows is not None:
                on_rows(done)
        hashed.result()
    found = (nnz, images + zeros) if samples.is_sparse else (None, None)
    return Scan(n_samples, dim, found[0], fingerprint.hexdigest(), zeros, found[1])


def in_blocks(samples: Samples) -> Iterator[tuple[int, Rows]]:
    """Blocks of about `BLOCK_BYTES`, with the indices of their first rows."""
    return numbered(samples.blocks(rows_within(samples, BLOCK_BYTES)))


def rows_within(samples: Samples, n_bytes: int) -> int:
    """Return the number of rows, at least one, of which every block fits `n_bytes`.

    If the row pointers are not known, rows are assumed to have the average number of entries.
    """
    n_samples, dim = samples.shape
    row_bytes = 8 * dim if samples.nnz is None else 12 * samples.nnz / n_samples + 4
    rows = max(1, int(n_bytes / row_bytes))
    if samples.indptr is None or rows >= n_samples:
        return rows

    def fullest(count: int) -> int:
        return 12 * int(samples.most_entries(count)) + 4 * count

    if fullest(rows) <= n_bytes:
        return rows
    return max(1, bisect_right(range(1, rows + 1), n_bytes, key=fullest))


class _Fingerprint:
    """Hash of rows that does not depend on the block size."""

    def __init__(self, is_sparse: bool, shape: tuple[int, int]) -> None:
        self._title = f"{_VERSION} {'csr' if is_sparse else 'dense'} {shape[0]} {shape[1]}"
        # Separate streams of values, columns and row lengths, as their interleaving would depend on
        # the blocks. SHA-256 has processor instructions: two to three times as fast as BLAKE2.
        self._streams = [sha256() for _ in range(3 if is_sparse else 1)]

    def update(self, block: Rows) -> None:
        """Add the next block."""
        parts: list[tuple[NDArray[Any], str]]
        if isinstance(block, csr_array):
            lengths = np.diff(block.indptr)
            parts = [(block.data, "<f8"), (block.indices, "<i8"), (lengths, "<i8")]
        else:
            parts = [(block + 0.0, "<f8")]  # -0.0 + 0.0 is 0.0
        for stream, (part, dtype) in zip(self._streams, parts, strict=True):
            stream.update(part.astype(dtype, copy=False).reshape(-1).data)

    def hexdigest(self) -> str:
        """Return the fingerprint of all rows so far."""
        whole = sha256(self._title.encode())
        for stream in self._streams:
            whole.update(stream.digest())
        return whole.hexdigest()[: 2 * _DIGEST_BYTES]
