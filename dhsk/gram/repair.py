"""Making damaged tiles of a store again."""

from pathlib import Path
from typing import Any

from distributed import Client

from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.lock import sole_writer
from dhsk.execution.resources import Resources
from dhsk.execution.workers import computing, full_disk_is_budget, resources_of
from dhsk.gram.compute import compute_tiles
from dhsk.gram.plan import GramPlan
from dhsk.gram.prepare import open_sides, plan_for, scan_side
from dhsk.gram.storage.staging import in_order_of, stage_samples
from dhsk.gram.storage.store import GramStore
from dhsk.progress import OnProgress, ignore
from dhsk.samples import Samples
from dhsk.units import parse_bytes


def repair_gram(
    path: str | Path,
    X: Any,
    Y: Any = None,
    *,
    memory: int | str | None = None,
    client: Client | None = None,
    progress: OnProgress | None = None,
) -> list[tuple[int, int]]:
    """Compute the damaged and missing tiles of a store again; the others stay.

    Damaged samples in the store, and damaged descriptions of its arrays, are written again too.

    Parameters
    ----------
    path
        Folder of the store.
    X
        The samples that it was made from, as for `compute_gram`.
    Y
        The other samples of a rectangular store.
    memory
        Most bytes that all processes together may hold.
    client
        Where to compute; None takes dask's current client, or threads of this process.
    progress
        Called with a `Progress` after every tile.

    Returns
    -------
    list of (int, int)
        Indices of the tiles that were made again.

    Raises
    ------
    InputError
        The store is of two sets of samples and one was given, or the other way round.
    StoreMismatchError
        These are other samples; the store is left as it is.
    StoreError
        The store cannot be written, or another process writes to it.
    """
    store = GramStore.open(Path(path))
    sides = open_sides(X, Y)
    if len(sides) != len(store.samples.sides):
        raise InputError(
            f"{path} was made from {len(store.samples.sides)} sets of samples, {len(sides)} given: "
            "repair it in Python with dhsk.gram.repair.repair_gram(store, X), or (store, X, Y)"
        )
    limit = None if memory is None else parse_bytes(memory)
    with full_disk_is_budget(), sole_writer(store.path), computing(client) as workers:
        plan = _plan(store, sides, resources_of(workers, limit))
        sides = in_order_of(store, sides)
        _check_samples(store, sides, progress or ignore)
        return _repair(store, sides, workers, plan, progress or ignore)


def _plan(store: GramStore, sides: list[Samples], resources: Resources) -> GramPlan:
    header = store.header
    plan = plan_for(
        sides,
        resources,
        dtype=header.dtype,
        product_dtype=header.product_dtype,
        n_kernels=len(store.kernels),
        tile=header.tile,
    )
    plan.check()
    return plan


def _check_samples(store: GramStore, sides: list[Samples], report: OnProgress) -> None:
    for side, made_from in zip(sides, store.header.fingerprints, strict=True):
        found = scan_side(side, store.kernels, store.header.sphere_map, report).fingerprint
        if found != made_from:
            raise StoreMismatchError(
                f"{store.path} was made from other samples than {side.source} "
                f"({made_from[:8]}, now {found[:8]})"
            )


def _repair(
    store: GramStore, sides: list[Samples], workers: Client, plan: GramPlan, report: OnProgress
) -> list[tuple[int, int]]:
    store.ensure_names(sides[0].feature_names)
    damaged = store.damaged_tiles()
    for tile in damaged:
        store.remove_tile(*tile)
    store.remove_leftovers()
    store.describe()
    for side in store.damaged_sides():
        store.samples.start(side)
    staging = stage_samples(store, sides, report)
    compute_tiles(store, store.kernels, staging, workers, plan, report)
    return damaged
