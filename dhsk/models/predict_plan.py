"""Memory of predictions: samples of a block, and blocks at a time."""

from dataclasses import dataclass
from typing import Final

from dhsk.arrays import ROWS, SUPPORT
from dhsk.execution.memory import Allowance, MemoryNeed
from dhsk.gram.memory import product_bytes
from dhsk.gram.row_map import BLOCK_BYTES
from dhsk.models.fit_plan import PROCESS_BYTES
from dhsk.models.sources import RowsShape
from dhsk.samples import Samples
from dhsk.samples.scan import rows_within

_BLOCKS: Final = 16
"""Number of blocks that few samples are divided into, so that several cores have some."""

_LEAST_VALUES: Final = 1 << 18
"""Least kernel values of a block: some 3 ms of work. Half of that took 1.2 times as long."""

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


@dataclass(frozen=True)
class PredictPlan:
    """Blocks of a prediction, by `plan_prediction`."""

    need: MemoryNeed
    rows: int
    """Samples of a block."""
    at_once: int
    """Concurrent blocks."""


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
        least = max(least, _LEAST_VALUES // max(1, self.fitted.n))
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
) -> PredictPlan:
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
    fitting = (allowed.room - beside - read) // each
    at_once = max(1, min(fitting, allowed.cores, -(-block.samples.shape[0] // rows)))
    parts = {
        "process": allowed.held + PROCESS_BYTES,
        "results": result_bytes,
        "models of the workers": workers * block.fitted.nbytes,
        "blocks of samples and kernel values": at_once * each + read,
    }
    need = MemoryNeed("a prediction", parts)
    need.check(allowed.held + allowed.room, "allow more, or predict fewer samples at a time")
    return PredictPlan(need, rows, at_once)
