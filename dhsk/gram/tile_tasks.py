"""Tasks that compute tiles of a store, and write them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from dhsk.execution.resources import Resources
from dhsk.execution.tasks import told_as
from dhsk.execution.workers import leave_slot
from dhsk.gram.graph_plan import plan_of
from dhsk.gram.passes import grouped
from dhsk.gram.plan import GROUPS_PER_THREAD, GramPlan
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tiles import Group, TileSource, extent
from dhsk.gram.writing import TileWriter

Task: TypeAlias = tuple[TileSource, Group]
"""Arguments of `compute_group`."""


def groups_of(
    missing: Sequence[tuple[int, int]], header: Header, plan: GramPlan
) -> Sequence[Group]:
    """Tiles of each task: squares of them, or columns of a graph, the longest first."""
    if header.graph is not None:
        columns = sorted({j for _, j in missing}, reverse=True)
        return [tuple(tile for tile in missing if tile[1] == j) for j in columns]
    edge = plan.group  # that of the whole matrix: where few tiles are missing, they make fewer
    while edge > 1 and len(grouped(missing, edge)) < GROUPS_PER_THREAD * plan.resources.threads:
        edge -= 1
    return grouped(missing, edge)


def samples_of(group: Group, header: Header) -> int:
    """Samples of the last side that a task reads: the first so many, or all of a graph."""
    return header.n_rows if header.graph is not None else extent(header.tiling, group)[1].stop


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
    plan = plan_of(header, Resources(workers=0, threads=1, memory=0))
    return replace(plan, group=math.ceil(rows / header.tile)).task_bytes


@told_as(_words_of, _memory_of)
def compute_group(source: TileSource, group: Group) -> int:
    """Compute and write a group of tiles, as a task; return their number."""
    store = GramStore.open(source.path)
    with TileWriter(store) as writer:
        for values in source(group, in_strips=store.header.layout != "full"):
            writer.put(values)
        leave_slot()
    return len(group)
