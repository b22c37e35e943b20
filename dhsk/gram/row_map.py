"""Map of samples to the rows of a kernel: checked, mapped, in the type of the products."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from dhsk.arrays import Floats, Indices, Rows, numbered, stacked
from dhsk.errors import InputError
from dhsk.execution.memory import require_room
from dhsk.execution.run import Run
from dhsk.execution.threads import Threads
from dhsk.gram.prepare import Data
from dhsk.kernels import Kernel, SmoothedKernel, require_unit_rows, squared_norms
from dhsk.progress import Progress
from dhsk.samples import Samples, Scan, SphereMap, ZeroRows, apply_map, of_counts
from dhsk.samples.clipped import ClippedSamples
from dhsk.samples.looks import warn_of_logarithms
from dhsk.samples.refusals import naming
from dhsk.samples.scan import BLOCK_BYTES, rows_within
from dhsk.samples.taken import rows_taken
from dhsk.samples.weighted import weigh


@dataclass(frozen=True)
class RowMap:
    """Map of samples to rows of a kernel."""

    kernel: Kernel
    """Kernel that checks the rows."""
    sphere_map: SphereMap
    dtype: str = "float64"
    """Type of the rows, "float64" or "float32"."""
    zero_rows: ZeroRows = field(default_factory=ZeroRows)
    """Rule for all-zero samples, and their count."""
    weights: Floats | None = None
    """Weights of the features before the map, see `weigh`; None for none."""
    new: bool = False
    """Whether the rows only meet others that were checked, as in predictions."""

    def anew(self) -> Self:
        """The same map, with a new count of all-zero samples."""
        return replace(self, zero_rows=ZeroRows(self.zero_rows.rule))

    def to_predict(self, samples: Samples) -> Samples:
        """Samples to predict: those whose fit refused values below 0 have 0 in their place."""
        counts = of_counts(self.sphere_map) or isinstance(self.kernel, SmoothedKernel)
        return ClippedSamples(samples) if counts else samples

    def scan(self, samples: Samples, run: Run) -> Scan:
        """Read all samples once: check each row, and compute their fingerprint."""
        return Data([samples], [self.kernel], self.sphere_map, self.zero_rows).scan(run)[0]

    def warn(self, samples: Samples) -> None:
        """Warn of all-zero samples, of values below 0, and of logarithms, if there were any."""
        self.zero_rows.warn(samples.source, samples.shape[0])
        if isinstance(samples, ClippedSamples):
            samples.warn()
        if self.new and self.kernel.spherical and of_counts(self.sphere_map):
            warn_of_logarithms(samples)

    def __call__(self, block: Rows, first_row: int = 0) -> Rows:
        """Map a block of samples, dense or canonical CSR, (rows, dim), to rows of `dtype`.

        A CSR row that stands for the centre has one entry, see `dhsk.kernels.centre`. Raises
        InputError for a row that has no image or on which the kernel is not defined; the message
        counts rows from `first_row`.
        """
        if self.weights is not None:
            block = weigh(block, self.weights)
        rows = apply_map(self.sphere_map, block, first_row, self.zero_rows)
        self.kernel.check_rows(rows, first_row, dtype=self.dtype)
        if not self.new:
            self.kernel.check_products(rows, first_row, dtype=self.dtype)
        if self.kernel.spherical and self.sphere_map == "identity":
            require_unit_rows(squared_norms(rows), "X", first_row)
        return rows.astype(self.dtype, copy=False)  # type: ignore[return-value]

    def blocks(
        self,
        samples: Samples,
        most_rows: int | None = None,
        run: Run = Run(),  # noqa: B008  # frozen
        threads: int = 1,
        *,
        first_row: int = 0,
    ) -> Iterator[tuple[int, Rows]]:
        """Map samples block by block; yield the index of a block's first row, and the block.

        Blocks have at most `most_rows` rows and about 16 MiB. `threads` blocks are mapped at the
        same time, while one more is read. Raises InputError as `__call__`, with the source.
        """
        total = samples.shape[0]
        run.report(Progress("reading", 0, total))
        fitting = rows_within(samples, BLOCK_BYTES)
        blocks = samples.blocks(fitting if most_rows is None else min(most_rows, fitting))
        source = samples.source
        tasks = ((source, block, first_row + first) for first, block in numbered(blocks))
        named = partial(self.named, features=samples.feature_names)
        for first, rows in numbered(Threads(threads).run(named, tasks, ordered=True)):
            yield first, rows
            run.report(Progress("reading", first + rows.shape[0], total))

    def all_of(
        self,
        samples: Samples,
        run: Run,
        instead: str = "use fewer samples",
        room: int | None = None,
        threads: int = 1,
    ) -> Rows:
        """Map all samples, (N, dim), in memory.

        Raises BudgetError, with the advice `instead`, if they take more than `room` bytes, by
        default those of the run.
        """
        held, room = self.bytes_of(samples), run.room if room is None else room
        require_room(held, room, "the mapped samples", instead)
        blocks = self.blocks(samples, run=run, threads=threads)
        if samples.is_sparse:
            return stacked([rows for _, rows in blocks])
        whole = np.empty(samples.shape, self.dtype)
        for first, rows in blocks:
            whole[first : first + rows.shape[0]] = rows
        return whole

    def some_of(self, samples: Samples, chosen: Indices) -> Rows:
        """Map chosen samples, in any order, with repeats, to (chosen, dim)."""
        ascending, back = np.unique(chosen, return_inverse=True)
        parts: list[Any] = []
        for first, block, inside in rows_taken(samples, ascending):
            if len(inside):
                parts.append(self._inside(samples, block, first, inside))
            if first + block.shape[0] > ascending[-1]:
                break
        return stacked(parts)[back]

    def _inside(self, samples: Samples, block: Rows, first: int, inside: Indices) -> Rows:
        """Map chosen rows of a block."""
        try:
            return self.anew()(block[inside], first)
        except InputError:  # it counts rows among these; mapping the whole block names the row
            return self.named(samples.source, block, first, samples.feature_names)[inside]

    def named(
        self, source: str, block: Rows, first_row: int, features: Sequence[str] | None = None
    ) -> Rows:
        """Map a block as `__call__` does; errors name the source of the samples, and a feature."""
        with naming(source, features):
            return self(block, first_row)

    def bytes_of(self, samples: Samples) -> int:
        """Peak memory of `all_of`, in bytes, besides a few blocks."""
        return mapped_bytes(*samples.shape, samples.nnz, np.dtype(self.dtype).itemsize)


def mapped_bytes(n_samples: int, dim: int, nnz: int | None, itemsize: int) -> int:
    """Peak bytes of mapping all samples, for sparse ones twice those of the result."""
    if nnz is None:
        return itemsize * n_samples * dim
    return 2 * ((itemsize + 4) * nnz + 4 * n_samples)  # the blocks, and their concatenation
