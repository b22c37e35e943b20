"""Tasks that compute the missing tiles of a store."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TypeAlias

import numpy as np
from distributed import Client

from dhsk.errors import SamplesChangedError
from dhsk.execution.tasks import told_as
from dhsk.execution.workers import executor_of, leave_slot
from dhsk.gram.memory import csr_entry_bytes, task_bytes
from dhsk.gram.passes import grouped
from dhsk.gram.plan import GROUPS_PER_THREAD, GramPlan
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.parts import TilePart, forget_parts, share_of
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, TileSource, extent
from dhsk.gram.writing import TileWriter
from dhsk.kernels import Kernel
from dhsk.objects.places import remove_unfinished
from dhsk.progress import OnProgress, Progress

Task: TypeAlias = tuple[TileSource, Group]
"""Arguments of `compute_group`."""


def compute_tiles(
    store: GramStore,
    kernels: Sequence[Kernel],
    staging: Iterator[int],
    client: Client | None,
    plan: GramPlan,
    report: OnProgress,
) -> None:
    """Compute the missing tiles, the first ones while later samples are staged.

    `staging`, from `stage_samples`, stages samples when it is advanced. The plan determines the
    tiles of a task, and the tasks in flight.
    """
    total = store.header.tiling.n_tiles
    missing = store.missing_tiles()
    store.forget(missing)
    found = total - len(missing)
    report(Progress("tiles", found, total, found=found))
    source = TileSource(store.path.absolute(), kernels, compute=True)
    groups = grouped(missing, plan.group)
    tasks = _when_staged(source, groups, store.header.tiling, staging)
    changed: list[SamplesChangedError] = []
    _run(_until_changed(tasks, changed), client, plan, report, (found, total))
    if changed:
        raise changed[0]
    deque(staging, maxlen=0)
    remove_unfinished(store.path)  # of workers that were killed
    store.check_complete()
    store.record()
    forget_parts(store.path)


def compute_share(
    store: GramStore,
    kernels: Sequence[Kernel],
    part: TilePart,
    client: Client | None,
    plan: GramPlan,
    report: OnProgress,
) -> None:
    """Compute the missing tiles of a part; the samples are staged."""
    share = share_of(store.header.tiling, part)
    missing = [tile for tile in store.missing_tiles() if tile in share]
    found = len(share) - len(missing)
    report(Progress("tiles", found, len(share), found=found))
    source = TileSource(store.path.absolute(), kernels, compute=True)
    edge = plan.group  # that of the whole matrix: a part may have too few such squares
    while edge > 1 and len(grouped(missing, edge)) < GROUPS_PER_THREAD * plan.resources.threads:
        edge -= 1
    tasks = ((source, group) for group in grouped(missing, edge))
    _run(tasks, client, plan, report, (found, len(share)))


def _run(
    tasks: Iterator[Task],
    client: Client | None,
    plan: GramPlan,
    report: OnProgress,
    done_of: tuple[int, int],
) -> None:
    """Run tasks, and report their tiles; so many are done, of so many."""
    found, total = done_of
    done = found
    with closing(executor_of(client, plan.window).run(compute_group, tasks)) as counts:
        for count in counts:
            done += count
            report(Progress("tiles", done, total, found=found))


def _when_staged(
    source: TileSource, groups: list[Group], tiling: Tiling, staging: Iterator[int]
) -> Iterator[Task]:
    """Tasks in the order of their last samples, each when that is staged."""
    staged = 0
    for needed, group in sorted((extent(tiling, group)[1].stop, group) for group in groups):
        while staged < needed:
            staged = next(staging)
        yield source, group


def _until_changed(tasks: Iterator[Task], changed: list[SamplesChangedError]) -> Iterator[Task]:
    """The same tasks, until samples have changed; the error is appended to `changed`.

    The tasks in flight finish before it is raised, so that none writes to a store being removed.
    """
    try:
        yield from tasks
    except SamplesChangedError as error:
        changed.append(error)


def _words_of(_source: TileSource, group: Group) -> str:
    """Tiles of a group, in words."""
    return f"tile {group[0]}" if len(group) == 1 else f"tiles {group[0]} to {group[-1]}"


def _memory_of(source: TileSource, group: Group) -> int:
    """Bytes that the task of a group takes, by the mean of its samples."""
    header = GramStore.open(source.path).header
    rows = extent(header.tiling, group)[0]
    return bytes_of_task(header, rows.stop - rows.start)


def bytes_of_task(header: Header, rows: int) -> int:
    """Bytes of a task that computes tiles of so many rows, by the mean of the samples."""
    item, product = (np.dtype(kind).itemsize for kind in (header.dtype, header.product_dtype))
    nnz = header.nnz[0]
    entries = None if nnz is None else nnz / header.n_rows
    each = csr_entry_bytes(header.product_dtype)
    row = header.dim * product if entries is None else entries * each
    return task_bytes(
        header.tile,
        header.dim,
        row * header.tile,
        row * rows,
        entries,
        product,
        item if header.layout == "full" or item != product else 0,
    )


@told_as(_words_of, _memory_of)
def compute_group(source: TileSource, group: Group) -> int:
    """Compute and write a group of tiles, as a task; return their number."""
    store = GramStore.open(source.path)
    with TileWriter(store) as writer:
        for values in source(group, in_strips=store.header.layout != "full"):
            writer.put(values)
        leave_slot()
    return len(group)
