"""Memory of an approximation, the tier that fits, and whether a device computes it."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from dhsk.devices import current_device
from dhsk.execution.limits import core_count, own_room
from dhsk.execution.memory import MemoryNeed, Share, require_room
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.kernels.on_device import pays_on
from dhsk.nystrom.landmarks import block_of, searched
from dhsk.nystrom.spans import BLOCK_BYTES, span_rows
from dhsk.samples import Samples
from dhsk.samples.scan import BLOCK_BYTES as READ_BYTES

Tier = Literal[
    "features in memory", "samples in memory", "samples read in every pass", "on workers"
]
"""Data in memory, and where passes run."""

_HERE: Final[tuple[Tier, ...]] = get_args(Tier)[:3]
"""Tiers of this process, the fastest first."""

_VECTORS: Final = 6
"""Vectors of the samples that are searched: the diagonal, its residual, sums, squares."""

_SQUARES: Final = 5
"""Matrices of landmarks by landmarks in memory at a time, in float64."""

_HASH: Final = 4
"""Bytes by which a sample is known when it is read again."""

_COPIES: Final = 4
"""Blocks that a task has in memory: kernel values, a product, its squares in float64."""

_READING: Final = 4
"""Blocks in memory while samples are read and mapped."""

_CHOOSING: Final = 4
"""Threads of this process that choose landmarks beside workers, at most: it is little work."""

_INSTEAD: Final = "take fewer landmarks"


def computed_on_device(samples: Samples, row_map: RowMap, m: int) -> bool:
    """Whether a device computes features by m landmarks in every pass; sparse rows it does not."""
    device, (n, dim) = current_device(), samples.shape
    if device is None or samples.is_sparse:
        return False
    dtype = np.dtype(row_map.dtype)
    passes = row_map.kernel.device_pass(dtype) is not None
    return passes and pays_on(device, n * m, dim, n * dim * dtype.itemsize)


def choosing_threads() -> int:
    """Threads of this process that choose landmarks beside workers."""
    return min(_CHOOSING, core_count())


@dataclass(frozen=True)
class ApproximationNeed:
    """Memory of an approximation, in bytes."""

    what: str
    """Landmarks and samples, for messages."""
    samples: int
    """All mapped samples."""
    factor: int
    """Features of all samples, one for each landmark."""
    small: int
    """Landmarks, their matrices, what is searched for them, and hashes of the samples as they were
    read, which this process always needs."""
    task: int
    """One running task of a pass."""
    span: int
    """One span of samples."""
    on_device: bool = False
    """Whether a device computes features in every pass, and none are kept in memory."""

    @classmethod
    def of(
        cls, n: int, mapped: int, item: int, m: int, *, on_device: bool = False
    ) -> "ApproximationNeed":
        """Memory for m landmarks of n samples of `mapped` bytes, with kernel values of `item`."""
        row = mapped / n
        block = min(BLOCK_BYTES, item * n * max(m, block_of(m)))
        part = searched(n, row, m)
        small = 8 * (_VECTORS * part + _SQUARES * m * m) + int(3 * row * m) + _HASH * n
        if part < n:  # in memory; twice while they are taken, but no task runs meanwhile
            small += int(row * part)
        span = min(int(row * span_rows(n, row, on_device=on_device)), int(row * n))
        task = _COPIES * block + int(row * m) + item * m * m
        what = f"{m} landmarks of {n} samples"
        return cls(what, mapped, item * n * m, small, task, span, on_device)

    def within(self, tier: Tier, threads: int) -> MemoryNeed:
        """Memory of this process by part, with a running task in every thread."""
        parts = {"landmarks": self.small, "running tasks": threads * self.task}
        if tier == "samples read in every pass":
            read = (threads + 2) * min(self.span, READ_BYTES) + _READING * READ_BYTES
            parts["samples as they are read"] = read
        if tier in _HERE[:2]:
            parts["samples"] = self.samples
        if tier == "features in memory":
            parts["features"] = self.factor
        return MemoryNeed("an approximation", parts)

    def share(self, tier: Tier, threads: int, at_once: int | None = None) -> Share:
        """That tier with so many tasks at a time, by default one in every thread."""
        need = self.within(tier, threads)
        return Share(need, at_once or threads, tier, tier == "features in memory")


def least_here(need: ApproximationNeed) -> int:
    """Bytes that would do in this process, for one task at a time."""
    return min(need.within(tier, 1).total for tier in _tiers_of(need))


def _tiers_of(need: ApproximationNeed) -> tuple[Tier, ...]:
    return _HERE[1:] if need.on_device else _HERE


def plan_here(need: ApproximationNeed, room: int, threads: int) -> Share:
    """Keep in memory what fits in room bytes: features, else mapped samples, else neither.

    Raises BudgetError if not even one task fits beside the landmarks.
    """
    counts = sorted({threads, 1}, reverse=True)
    tried = [need.share(tier, at_once) for tier in _tiers_of(need) for at_once in counts]
    found = next((one for one in tried if one.need.total <= room), tried[-1])
    where = ", even with samples read in every pass,"
    require_room(found.need.total, room, need.what, _INSTEAD, where)
    return found


def plan_on_workers(need: ApproximationNeed, run: Run) -> Share:
    """Leave samples and passes to workers, within the memory of the run.

    Raises BudgetError if the landmarks do not fit in this process, or a task on a worker.
    """
    resources = run.resources
    found = need.share("on workers", choosing_threads(), 2 * resources.threads)
    each = (resources.memory - resources.idle_bytes) // resources.threads
    require_room(found.need.total, own_room(None), need.what, _INSTEAD, " of this process,")
    require_room(need.task + need.span, each, need.what, _INSTEAD, " of a worker's thread,")
    return found
