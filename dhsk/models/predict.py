"""Predictions block by block, on threads of this process or on the workers of a client.

Rejected: tasks over support vectors too (sums to keep in order, for less than a block); several
BLAS threads for a single block (other bits on other machines).
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray

from dhsk.arrays import Indices, Rows
from dhsk.execution.memory import Allowance
from dhsk.execution.resources import TASKS_PER_THREAD
from dhsk.execution.run import Run
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.tasks import Executor, told_as
from dhsk.execution.threads import Threads
from dhsk.execution.workers import Workers, borrow_client, in_task, resources_of
from dhsk.gram.row_map import RowMap, numbered
from dhsk.models.predict_plan import BlockNeed, PredictPlan, plan_prediction
from dhsk.models.sources import RowsShape
from dhsk.progress import Progress
from dhsk.samples import Samples


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
        client = run.client
        if client is not None and (few or client.status == "closed"):
            client = None
        if few and run.memory is None:  # needs no plan, which takes longer than a sample
            rows, executor = block.rows, _executor(None, 1)
        else:
            plan = _plan(block, result_bytes, run.memory, client)
            rows, executor = plan.rows, _executor(client, plan.at_once)
        total = samples.shape[0]
        run.report(Progress("predictions", 0, total))
        with executor as run_by, closing(self._run(samples, rows, run_by)) as results:
            for done, found in results:
                yield found
                run.report(Progress("predictions", done, total))

    def _run(
        self, samples: Samples, rows: int, executor: Executor
    ) -> Generator[tuple[int, Any], None, None]:
        """Number of samples done, and the results of the last block."""
        shared = executor.share((self.row_map, self.function))
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
    shared: tuple[RowMap, Callable[[Rows], Any]], source: str, block: Rows, first_row: int
) -> tuple[int, Any, Indices]:
    """Task of a block: number of its samples, their results, and which of them are all zero."""
    row_map, function = shared
    row_map = row_map.anew()
    rows = row_map.named(source, block, first_row)
    return rows.shape[0], function(rows), row_map.zero_rows.numbers


def _plan(
    block: BlockNeed, result_bytes: int, memory: int | None, client: Client | None
) -> PredictPlan:
    """Plan for this process, or for the workers of a client."""
    allowed = Allowance.now(memory)
    if client is None:
        return plan_prediction(block, result_bytes, allowed)
    found = resources_of(client, memory)
    in_flight = TASKS_PER_THREAD * found.threads
    if found.workers:
        room = max(0, found.memory - found.idle_bytes)
        allowed = Allowance(memory, found.idle_bytes, room, in_flight)
    else:  # threads of this process
        allowed = replace(allowed, cores=in_flight)
    return plan_prediction(block, result_bytes, allowed, found.workers)


@contextmanager
def _executor(client: Client | None, at_once: int) -> Iterator[Executor]:
    """Executor of so many blocks at a time, each with one BLAS thread."""
    if client is None:
        with one_blas_thread():
            yield Threads(1 if in_task() else at_once)
        return
    with borrow_client(client) as borrowed:
        assert borrowed is not None
        yield Workers(borrowed, at_once)
