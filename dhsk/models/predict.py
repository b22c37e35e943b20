"""Predictions block by block, on threads of this process or on the workers of a client.

Rejected: tasks over support vectors too (sums to keep in order, for less than a block); several
BLAS threads for a single block (other bits on other machines).
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import ROWS, SUPPORT, Indices, Rows, numbered
from dhsk.execution.memory import Allowance, MemoryNeed, Share, share_memory
from dhsk.execution.resources import TASKS_PER_THREAD
from dhsk.execution.run import Run
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.tasks import Executor, told_as
from dhsk.execution.threads import Threads
from dhsk.execution.workers import borrow_client, executor_of, in_task
from dhsk.gram.memory import product_bytes
from dhsk.gram.row_map import RowMap
from dhsk.models.fit_plan import PROCESS_BYTES
from dhsk.models.sources import RowsShape
from dhsk.progress import Progress
from dhsk.samples import Samples
from dhsk.samples.scan import BLOCK_BYTES, rows_within

_BLOCKS: Final = 16
"""Number of blocks that few samples are divided into, so that several cores have some."""

_LEAST_WORK: Final = 1 << 27
_EVALUATION: Final = 24
"""Least multiplications of a block, some 6 ms, and of a kernel value beside its inner product.

Threads wait for one another between the steps of a block. With 6,383 support vectors of 10 features
and two threads 5,000 samples in blocks of 313, not 556, took 1.1 times as long, and 700 in blocks
of 117, not 350, 1.7 times.
"""

_LEAST_DENSE: Final = 128
_LEAST_SPARSE: Final = 256
"""Least samples of a block. Measured on 784 features and one thread, against blocks of 1,024:
128 take 1.2 times as long, 64 take 1.4 times. Sparse fitted rows are made dense for every block."""

_MOST_DECISIONS: Final = 1 << 22
"""Most decision values of a block: 32 MiB, with many classes."""

_COPIES: Final = 16
"""Numbers in memory for each decision value, in the coupling of class probabilities."""

_MEMORY_SHARE: Final = 16
"""Divisor of the allowed memory: the share of a block, at most."""

_SMALLEST: Final = 16
"""Samples of the smallest block."""


@dataclass(frozen=True, eq=False)
class BlockNeed:
    """What the memory of a block of a prediction depends on."""

    samples: Samples
    fitted: RowsShape
    """Shape of the support vectors or landmarks."""
    width: int
    """Decision values of a sample."""

    @property
    def rows(self) -> int:
        """Samples of a block where memory is ample.

        It depends on samples and model alone: values may differ in the last bit with it.
        """
        n = self.samples.shape[0]
        least = _LEAST_DENSE if self.fitted.nnz is None else _LEAST_SPARSE
        entries = self.fitted.dim * self.fitted.n if self.fitted.nnz is None else self.fitted.nnz
        least = max(least, _LEAST_WORK // (_EVALUATION * self.fitted.n + entries + 1))
        most = min(ROWS, max(1, _MOST_DECISIONS // self.width))
        rows = min(most, max(least, -(-n // _BLOCKS)))
        even = -(-n // -(-n // rows))
        return min(even, rows_within(self.samples, BLOCK_BYTES))

    def read_bytes(self, rows: int) -> int:
        """Bytes of a block as it is read."""
        entries = self.samples.most_entries(rows)
        return int(8 * entries if self.samples.nnz is None else 12 * entries + 4 * rows)

    def task_bytes(self, rows: int) -> int:
        """Peak bytes of a task: a block as it is read and mapped, kernel values and decisions."""
        columns, item = max(1, min(SUPPORT, self.fitted.n)), self.fitted.itemsize
        # This block of kernel values, in float64 too, and a temporary of the kernel.
        bytes_ = 3 * 8 * rows * columns + _COPIES * 8 * rows * self.width
        bytes_ += 3 * self.read_bytes(rows)
        if self.fitted.nnz is not None and self.fitted.n:
            entries = self.fitted.most_entries(columns)
            block = (item + 4) * max(entries, self.samples.most_entries(rows))
            of_row, dim = entries / columns, self.fitted.dim
            bytes_ += int(2 * block) + product_bytes(rows, dim, block, of_row, item, columns)
        return bytes_


def plan_prediction(
    block: BlockNeed, result_bytes: int, allowed: Allowance, workers: int = 0
) -> Share:
    """Divide memory and cores among blocks.

    result_bytes is the size of all results, and workers the number of processes that each have the
    model. Blocks are smaller than usual if they would take a large share of the allowed memory, or
    more than is left. Raises BudgetError if not even a small block fits.
    """
    beside = PROCESS_BYTES + result_bytes + workers * block.fitted.nbytes

    def too_large(rows: int) -> bool:
        each = block.task_bytes(rows)
        share = allowed.memory is not None and _MEMORY_SHARE * each > allowed.memory
        return share or beside + each + 2 * block.read_bytes(rows) > allowed.room

    rows = block.rows
    while rows > _SMALLEST and too_large(rows):
        rows = max(_SMALLEST, rows // 2)
    each, read = block.task_bytes(rows), 2 * block.read_bytes(rows)
    most = min(allowed.cores, -(-block.samples.shape[0] // rows))
    at_once, _ = share_memory(allowed.room - beside - read, each, most)
    parts = {
        "process": allowed.held + PROCESS_BYTES,
        "results": result_bytes,
        "models of the workers": workers * block.fitted.nbytes,
        "blocks of samples and kernel values": at_once * each + read,
    }
    need = MemoryNeed("a prediction", parts)
    fewer = "predict fewer samples at a time"
    if workers:  # most of it is that of their processes
        fewer = "predict in this process (client=None, or neither --workers nor --cluster)"
    need.check(allowed.held + allowed.room, f"allow more, or {fewer}")
    return Share(need, at_once, rows=rows)


@dataclass(frozen=True, eq=False)
class Predictor:
    """A function of the kernel values between samples and fitted rows."""

    row_map: RowMap
    """Maps samples to rows, and counts all-zero samples."""
    fitted: Rows
    """Support vectors or landmarks, mapped, (m, dim)."""
    function: Callable[[Rows], Any]
    """Arrays of a row for each mapped sample. Workers get it pickled."""
    width: int
    """Decision values of a sample."""

    def whole(self, samples: Samples, run: Run, row_bytes: int) -> NDArray[Any]:
        """Results of all samples in memory, of row_bytes each; see `blocks`."""
        n, done = samples.shape[0], 0
        whole: Any = None
        with closing(self.blocks(samples, run, row_bytes * n)) as parts:
            for part in parts:
                if whole is None:
                    whole = np.empty((n, *part.shape[1:]), part.dtype)
                whole[done : done + len(part)] = part
                done += len(part)
        return np.asarray(whole)

    def blocks(
        self, samples: Samples, run: Run, result_bytes: int = 0
    ) -> Generator[Any, None, None]:
        """Results of consecutive blocks, in order; the same bits on any number of cores.

        The caller keeps result_bytes of them. Samples are read here, and mapped where the kernel
        values are computed. A few samples are predicted here even if there is a client, and so are
        all samples if it has been closed.

        Raises InputError for a row that cannot be mapped, BudgetError if not even a small block
        fits the allowed memory, and ClusterError if the client has lost its scheduler.
        """
        block = BlockNeed(samples, RowsShape.of(self.fitted), self.width)
        few = block.rows >= samples.shape[0]
        if few or (run.client is not None and run.client.status == "closed"):
            run = replace(run, client=None)
        share = Share(MemoryNeed("a prediction", {}), 1, rows=block.rows)
        if not few or run.memory is not None:  # few need no plan, which takes longer than a sample
            share = _plan(block, result_bytes, run)
        total = samples.shape[0]
        run.report(Progress("predictions", 0, total))
        with (
            _executor(run, share.at_once) as executor,
            closing(self._run(samples, share.rows, executor)) as results,
        ):
            for done, found in results:
                yield found
                run.report(Progress("predictions", done, total))

    def _run(
        self, samples: Samples, rows: int, executor: Executor
    ) -> Generator[tuple[int, Any], None, None]:
        """Number of samples done, and the results of the last block."""
        shared = executor.share((self.row_map, self.function, samples.feature_names))
        source = samples.source
        tasks = ((shared, source, block, first) for first, block in numbered(samples.blocks(rows)))
        done = 0
        for count, found, zeros in executor.run(_of_block, tasks, ordered=True):
            self.row_map.zero_rows.add(zeros)
            done += count
            yield done, found


def _words_of(_shared: Any, _source: str, block: Rows, first_row: int) -> str:
    """Samples of a block, in words."""
    return f"the predictions of samples {first_row} to {first_row + block.shape[0] - 1}"


@told_as(_words_of)
def _of_block(
    shared: tuple[RowMap, Callable[[Rows], Any], Sequence[str] | None],
    source: str,
    block: Rows,
    first_row: int,
) -> tuple[int, Any, Indices]:
    """Task of a block: number of its samples, their results, and which of them are all zero."""
    row_map, function, features = shared
    row_map = row_map.anew()
    rows = row_map.named(source, block, first_row, features)
    return rows.shape[0], function(rows), row_map.zero_rows.numbers


def _plan(block: BlockNeed, result_bytes: int, run: Run) -> Share:
    """Plan for this process, or for the workers of a client."""
    if run.client is None:
        return plan_prediction(block, result_bytes, run.allowance)
    found = run.resources
    allowed = run.allowance if found.workers else Allowance.now(run.memory)
    allowed = replace(allowed, cores=TASKS_PER_THREAD * found.threads)
    return plan_prediction(block, result_bytes, allowed, found.workers)


@contextmanager
def _executor(run: Run, at_once: int) -> Iterator[Executor]:
    """Executor of so many blocks at a time, each with one BLAS thread."""
    if run.client is None:
        with one_blas_thread():
            yield Threads(1 if in_task() else at_once)
        return
    with borrow_client(run.client) as borrowed:
        yield executor_of(borrowed, at_once)
