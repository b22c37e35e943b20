"""Map of samples to the rows that a kernel takes: checked, mapped, in the type of the products."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
from scipy.sparse import csr_array, vstack

from dhsk.arrays import Indices, Rows
from dhsk.errors import BudgetError, InputError
from dhsk.execution.threads import Threads
from dhsk.kernels import Kernel, require_unit_rows, squared_norms
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import Samples, SphereMap, ZeroRows, apply_map
from dhsk.samples.scan import rows_within
from dhsk.units import human_bytes

BLOCK_BYTES: Final = 16 * 2**20
"""Size of a block of samples that is mapped at a time, in bytes."""


@dataclass(frozen=True)
class RowMap:
    """Map of samples to rows of a kernel.

    Attributes
    ----------
    kernel
        The kernel, which checks the rows.
    sphere_map
        Name of the map to the sphere.
    dtype
        Type of the rows, "float64" or "float32".
    zero_rows
        Rule for all-zero samples, and their count.
    """

    kernel: Kernel
    sphere_map: SphereMap
    dtype: str = "float64"
    zero_rows: ZeroRows = field(default_factory=ZeroRows)

    def anew(self) -> Self:
        """The same map, with a new count of all-zero samples."""
        return replace(self, zero_rows=ZeroRows(self.zero_rows.rule))

    def warn(self, samples: Samples) -> None:
        """Warn of all-zero samples, if there were any."""
        self.zero_rows.warn(samples.source, samples.shape[0])

    def __call__(self, block: Rows, first_row: int = 0) -> Rows:
        """Map a block of samples.

        Parameters
        ----------
        block
            Dense or canonical CSR, (rows, dim).
        first_row
            Index of its first row among all samples, for messages.

        Returns
        -------
        Rows
            (rows, dim), of `dtype`. A CSR row that stands for the centre has one entry, see
            `dhsk.kernels.centre`.

        Raises
        ------
        InputError
            A row has no image, or the kernel is not defined on it; the message names the row.
        """
        rows = apply_map(self.sphere_map, block, first_row, self.zero_rows)
        self.kernel.check_rows(rows, first_row, dtype=self.dtype)
        if self.kernel.spherical and self.sphere_map == "identity":
            require_unit_rows(squared_norms(rows), "X", first_row)
        return rows.astype(self.dtype, copy=False)  # type: ignore[return-value]

    def blocks(
        self,
        samples: Samples,
        most_rows: int | None = None,
        report: OnProgress = ignore,
        threads: int = 1,
        *,
        first_row: int = 0,
    ) -> Iterator[tuple[int, Rows]]:
        """Map samples block by block.

        Parameters
        ----------
        samples
            The samples.
        most_rows
            Largest number of rows of a block; None for blocks of about 16 MiB.
        report
            Called with `Progress` events.
        threads
            Number of blocks that are mapped at the same time, while one more is read.
        first_row
            Index of the first of these samples among all samples, for messages.

        Yields
        ------
        int
            Index of the block's first row among these samples.
        Rows
            The block, mapped.

        Raises
        ------
        InputError
            As `__call__`; the message names the source too.
        """
        total = samples.shape[0]
        report(Progress("reading", 0, total))
        fitting = rows_within(samples, BLOCK_BYTES)
        blocks = samples.blocks(fitting if most_rows is None else min(most_rows, fitting))
        tasks = ((samples, block, first_row + first) for first, block in _numbered(blocks))
        for first, rows in _numbered(Threads(threads).run(self._named, tasks, ordered=True)):
            yield first, rows
            report(Progress("reading", first + rows.shape[0], total))

    def all_of(
        self,
        samples: Samples,
        room: int,
        report: OnProgress = ignore,
        instead: str = "use fewer samples",
        threads: int = 1,
    ) -> Rows:
        """Map all samples, (N, dim), in memory.

        Parameters
        ----------
        samples
            The samples.
        room
            Upper bound on their memory, in bytes.
        report
            Called with `Progress` events.
        instead
            Advice in the message if they do not fit.
        threads
            As for `blocks`.

        Raises
        ------
        BudgetError
            They do not fit.
        """
        held = self.bytes_of(samples)
        if held > room:
            raise BudgetError(
                f"the mapped samples take {human_bytes(held)} but {human_bytes(room)} of memory "
                f"are left: allow more, or {instead}"
            )
        blocks = self.blocks(samples, report=report, threads=threads)
        if samples.is_sparse:
            return _stacked([rows for _, rows in blocks])
        whole = np.empty(samples.shape, self.dtype)
        for first, rows in blocks:
            whole[first : first + rows.shape[0]] = rows
        return whole

    def some_of(self, samples: Samples, chosen: Indices) -> Rows:
        """Map chosen samples, in any order, with repeats: (chosen, dim)."""
        ascending, back = np.unique(chosen, return_inverse=True)
        parts: list[Any] = []
        first = done = 0
        for block in samples.blocks(rows_within(samples, BLOCK_BYTES)):
            stop = int(np.searchsorted(ascending, first + block.shape[0]))
            if stop > done:
                parts.append(self._inside(samples, block, first, ascending[done:stop] - first))
            first, done = first + block.shape[0], stop
            if done == len(ascending):
                break
        return _stacked(parts)[back]

    def _inside(self, samples: Samples, block: Rows, first: int, inside: Indices) -> Rows:
        """Map chosen rows of a block."""
        try:
            return self.anew()(block[inside], first)
        except InputError:  # names a row among these; mapping the whole block names the right one
            return self._named(samples, block, first)[inside]

    def _named(self, samples: Samples, block: Rows, first: int) -> Rows:
        """Map a block; errors name the source of the samples."""
        try:
            return self(block, first)
        except InputError as error:
            raise InputError(f"{samples.source}: {error}") from None

    def bytes_of(self, samples: Samples) -> int:
        """Peak memory of `all_of`, in bytes, besides a few blocks."""
        return mapped_bytes(*samples.shape, samples.nnz, np.dtype(self.dtype).itemsize)


def mapped_bytes(n_samples: int, dim: int, nnz: int | None, itemsize: int) -> int:
    """Peak memory of mapping all samples, in bytes; of sparse ones twice what then stays."""
    if nnz is None:
        return itemsize * n_samples * dim
    return 2 * ((itemsize + 4) * nnz + 4 * n_samples)  # the blocks, and their concatenation


def _numbered(blocks: Iterable[Rows]) -> Iterator[tuple[int, Rows]]:
    """Blocks with the number of their first row."""
    first = 0
    for block in blocks:
        yield first, block
        first += block.shape[0]


def _stacked(blocks: list[Any]) -> Rows:
    sparse = isinstance(blocks[0], csr_array)
    rows: Rows = vstack(blocks, format="csr") if sparse else np.concatenate(blocks)
    return rows
