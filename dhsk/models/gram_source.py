"""A Gram matrix for solvers: read from tiles, or computed from its samples where that pays."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Marked, Rows, blocks, stacked, union
from dhsk.execution.kept_pass import pass_of_call
from dhsk.execution.limits import core_count
from dhsk.execution.threads import Threads
from dhsk.execution.workers import current_executor
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.memory import CSR_ROW_BYTES, csr_entry_bytes
from dhsk.gram.passes import grouped
from dhsk.gram.plan import LARGEST_GROUP
from dhsk.gram.storage.indexing import by_block
from dhsk.gram.storage.staged import DENSE_CHUNK_BYTES, StagedSamples
from dhsk.kernels import Kernel
from dhsk.kernels.centre import marked_rows
from dhsk.models.class_blocks import ClassBlocks
from dhsk.models.combined import column_blocks, combined, rows_at_once
from dhsk.models.sources import RowsSource
from dhsk.solvers.sources import (
    Combination,
    Panel,
    Source,
    gathered,
    parts_of,
    repeat_to_padded,
)

MULTIPLY_RATE: Final = 2.5e10
"""Assumed float64 operations of a core in a second. Measured on one core, the others idle: 45e9."""

SPARSE_SECONDS: Final = 10e-9
"""Assumed seconds for an entry of the matrix of very sparse samples. Measured on one core, the
others busy: 5e-9 to 9e-9 with 10 entries in a sample of 6,714 features."""

SPARSE_ENTRY_SECONDS: Final = 0.5e-9
"""Assumed seconds for each entry of a sample, at most: few of them meet one of the other sample."""

READ_RATE: Final = 1.5e9
"""Assumed bytes of tiles that a core reads and evaluates in a second. Measured on one core, on
WebKB's cosines in the page cache: 2.6e9."""


HELD_ROWS: Final = 1024
"""Most rows of the panels of values in memory, which are as wide as a class."""

SPAN_BYTES: Final = 32 * 2**20
"""Bytes of the samples that a task reads to combine columns."""

SPAN_ROWS: Final = 1024
"""Fewest samples of a task."""

SPANS: Final = 16
"""Tasks of a combination at least, if they have so many samples: all cores have some."""

KEPT_BYTES: Final = 128 * 2**20
"""Most bytes of rows that are kept beside those that were asked for last."""

STEPPED_BYTES: Final = 2**30
"""Most bytes of samples that this process reads for steps on blocks: it may be on a login node."""

_PARTS: Final = 4
"""Parts a core, in which rows are read."""


def row_bytes(G: GramMatrix) -> float:
    """Mean bytes of a sample of a store in memory."""
    header, nnz = G.header, G.header.nnz[0]
    if nnz is None:
        return float(header.dim * np.dtype(header.product_dtype).itemsize)
    return csr_entry_bytes(header.product_dtype) * nnz / header.n_rows + CSR_ROW_BYTES


class RowsCache:
    """Rows of the samples of a matrix, kept in memory once they were read.

    Samples that are anywhere in a store take as long to read as most of it: few entries are all
    read at once.
    """

    def __init__(self, G: GramMatrix) -> None:
        self._G = G
        self._kept: tuple[Indices, Any] = np.empty(0, np.intp), None  # threads see both or neither

    @property
    def holds_all(self) -> bool:
        """Whether the first use reads all rows, as they are few bytes."""
        return self._G.shape[0] * row_bytes(self._G) <= DENSE_CHUNK_BYTES

    def take(self, samples: Indices) -> Rows:
        """Rows of some samples, each once, in their order, (m, dim)."""
        known, kept = self._kept
        if not np.isin(samples, known, assume_unique=True).all():
            n = self._G.shape[0]
            known = np.arange(n) if self.holds_all else union([known, samples], n)
            if len(known) * row_bytes(self._G) > KEPT_BYTES:
                known = np.sort(samples)
            kept = self.read(known)
            self._kept = known, kept
        rows: Rows = kept[np.searchsorted(known, samples)]
        return rows

    def read(self, samples: Indices) -> Any:
        """Rows of some samples, ascending, which are not kept."""
        if self.holds_all:
            return self._G.staged_rows(samples)
        cores = core_count()
        size = max(1, -(-len(samples) // (_PARTS * cores)))
        parts = ((samples[part],) for part in blocks(len(samples), size))
        return stacked(list(Threads(cores).run(self._G.staged_rows, parts, ordered=True)))


class GramSource(Source):
    """A symmetric Gram matrix: stored, derived, or computed from its samples on demand.

    `held` are the stored values in memory, if they fit there.
    """

    bilinear = False

    def __init__(self, G: GramMatrix, held: ClassBlocks | None = None) -> None:
        self.n = G.shape[0]
        self.dtype = G.dtype
        self.G = G
        self._held = held
        self._rows = RowsCache(G)

    def __getstate__(self) -> dict[str, Any]:
        """Without the rows that this process keeps."""
        return self.__dict__ | {"_rows": RowsCache(self.G)}

    @property
    def computes(self) -> bool:
        """Whether entries are computed when they are read."""
        return self.G.computed

    def block(self, members: Indices) -> NDArray[Any]:
        """Matrix of some samples, read from tiles, or computed if that takes less time."""
        K = None if self._held is None else self._held.whole(self.G.kernel, members)
        if K is not None:
            return K
        if not self._computing_pays(len(members)):
            return self.G.submatrix(members, repeat_to_padded(members))
        few = self.computes and self._rows.holds_all
        read = self._rows.take if few else self.G.staged_rows
        rows = RowsSource(read(members), self.G.kernel)
        return rows.block(np.arange(rows.n)).astype(self.dtype, copy=False)

    def _computing_pays(self, count: int) -> bool:
        """Whether multiplying samples takes less time than reading the tiles of their entries."""
        header = self.G.header
        if not self.G.kernel.of_samples:
            return False
        if self.G.computed:
            return True
        entry = header.dim / MULTIPLY_RATE
        if header.nnz[0] is not None:
            entry = SPARSE_SECONDS + min(entry, header.nnz[0] / self.n * SPARSE_ENTRY_SECONDS)
        return count**2 * entry < self.n**2 / 2 * self.dtype.itemsize / READ_RATE

    def panels(self, rows: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Entries between some samples and groups of samples, each of one class."""
        if self._held is None:
            yield from self._panels_of_tiles(rows, groups)
            return
        columns = [np.arange(len(group)) for group in groups]
        for places, number, values in self._held.panels(self.G.kernel, rows, groups):
            yield Panel(places, number, columns[number], values)

    def row_parts(self, rows: Indices, most: int) -> list[Indices]:
        """Positions among some samples in parts, by class or by tile."""
        by = rows // self.G.tiling.tile if self._held is None else self._held.codes[rows]
        order = np.argsort(by, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(by[order])) + 1)
        most = most if self._held is None else min(most, HELD_ROWS)
        return [part for group in groups for part in parts_of(group, most)]

    def _panels_of_tiles(self, samples: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Parts of tiles, each of which is read once."""
        tiling = self.G.tiling
        own = by_block(samples, tiling.tile)
        others = [by_block(group, tiling.tile) for group in groups]
        used = (tile for tile in tiling.tiles() if not own.keys().isdisjoint(tile))
        for tile in chain.from_iterable(map(self.G.source, grouped(used, LARGEST_GROUP))):
            sides = ((tile.i, tile.j), (tile.j, tile.i))
            for row, column in sides[: 1 + (tile.i != tile.j)]:
                if row not in own:
                    continue
                places, rows = own[row]
                for number, group in enumerate(others):
                    if column not in group:
                        continue
                    among, columns = group[column]
                    # Rows of the tile are read one after the other, also for its transpose.
                    if row == tile.i:
                        part = gathered(tile.values, rows, columns, self.dtype)
                    else:
                        part = gathered(tile.values, columns, rows, self.dtype).T
                    yield Panel(places, number, among, part)

    def rows(self, samples: Indices) -> Rows:
        """Mapped rows of some samples, each once, which are kept in this process."""
        return self._rows.take(samples)

    def approximate(self, room: int) -> Source | None:
        """Samples in this process, if they fit there, in single precision where that is safe."""
        needed = self.n * row_bytes(self.G)
        both = 1.5 * needed  # as they are, and in single precision
        if not self.G.kernel.of_samples or both > room or needed > STEPPED_BYTES:
            return None
        rows = self._rows.read(np.arange(self.n))
        return RowsSource(rows, self.G.kernel, core_count()).approximate(room)

    def product(self, V: Floats) -> Floats:
        """Product with V, on the workers of the current client if there is one."""
        return self.G @ V

    def combine(self, parts: Sequence[Combination]) -> list[Floats]:
        """Combinations of columns, on the workers of the current client if there is one."""
        found = [np.zeros((len(part.rows), part.coef.shape[1])) for part in parts]
        kept = pass_of_call(*found)
        columns = union([part.columns for part in parts], self.n)
        own = [
            replace(part, rows=part.rows[:0], columns=np.searchsorted(columns, part.columns))
            for part in parts
        ]
        with current_executor() as executor:
            shared = executor.share((self._rows.take(columns), own))
            spans = islice(self._spans(parts), kept.done, None)
            tasks = ((self.G, *wanted, shared) for wanted in spans)
            for first, values in executor.run(combine_span, tasks, ordered=True):
                for out, part, some in zip(found, parts, values, strict=True):
                    start = int(np.searchsorted(part.rows, first))
                    out[start : start + len(some)] = some
                kept.advance()
        return found

    def _spans(self, parts: Sequence[Combination]) -> Iterator[tuple[Marked, list[Marked]]]:
        """Samples of each task, and places among them of the rows of each part."""
        rows = union([part.rows for part in parts], self.n)
        most = min(int(SPAN_BYTES / row_bytes(self.G)), -(-len(rows) // SPANS))
        each = max(SPAN_ROWS, most)
        for some in blocks(len(rows), each):
            span = rows[some]
            ends = [np.searchsorted(part.rows, [span[0], span[-1] + 1]) for part in parts]
            own = [part.rows[slice(*end)] for part, end in zip(parts, ends, strict=True)]
            yield Marked.of(span), [Marked.of(np.searchsorted(span, wanted)) for wanted in own]

    def for_task(self, samples: Indices) -> tuple[Source, Indices]:
        """Rows of the samples in memory, if values are computed: workers need not look for them."""
        if not self.computes:
            return self, samples
        return RowsSource(self._rows.take(samples), self.G.kernel), np.arange(len(samples))

    def diagonal(self) -> Floats:
        """Diagonal entries."""
        return self.G.diagonal().astype(np.float64)


def combine_span(
    G: GramMatrix,
    marked: Marked,
    places: list[Marked],
    shared: tuple[Rows, list[Combination]],
) -> tuple[int, list[Floats]]:
    """Combinations at some samples: the task that workers run.

    places are those of each part's rows among the samples. Of the columns, shared has all rows, and
    the parts, whose columns are places among these. Returns the first sample too.
    """
    span, (rows_of_columns, parts) = marked.indices, shared
    rows, found = _read(G, span), []
    both = rows, rows_of_columns
    bilinear = G.kernel.bilinear and all(marked_rows(some) is None for some in both)
    combine = _summed if bilinear else partial(_evaluated, G.kernel)
    for place, part in zip(places, parts, strict=True):
        found.append(combine(rows, place.indices, rows_of_columns[part.columns], part))
    return int(span[0]), found


def _evaluated(
    kernel: Kernel, rows: Rows, own: Indices, columns: Rows, part: Combination
) -> Floats:
    """Kernel values between some rows and columns, times coefficients."""
    out = np.empty((len(own), part.coef.shape[1]))
    in_blocks = column_blocks(columns, part.coef, part.ends)
    for some in blocks(len(own), rows_at_once(len(own))):
        out[some] = combined(kernel.of_rows, rows[own[some]], in_blocks, out.shape[1])
    return out


def _summed(rows: Any, own: Indices, columns: Any, part: Combination) -> Floats:
    """The same of a linear kernel, by the sum of the columns."""
    return np.asarray(rows[own] @ (columns.T @ part.coef))


def _read(G: GramMatrix, span: Indices) -> Rows:
    """Rows of some samples, ascending: without copies if no sample is left out."""
    if len(span) < span[-1] + 1 - span[0]:
        return G.staged_rows(span)
    return StagedSamples(G.path, G.header).read("rows", slice(span[0], span[-1] + 1))
