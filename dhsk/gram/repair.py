"""Making damaged tiles of a store again."""

from pathlib import Path
from typing import Any

from distributed import Client

from dhsk.errors import InputError, StoreMismatchError
from dhsk.gram.compute import compute_tiles, plan_for, scan_side, stage_samples
from dhsk.gram.sizes import parse_bytes
from dhsk.gram.store import GramStore
from dhsk.gram.workers import borrow_client, resources_of
from dhsk.progress import OnProgress, ignore
from dhsk.samples import open_samples


def repair_gram(
    path: str | Path,
    X: Any,
    *,
    memory: int | str | None = None,
    client: Client | None = None,
    progress: OnProgress | None = None,
) -> list[tuple[int, int]]:
    """Compute the damaged and missing tiles of a square store again; the others stay.

    Parameters
    ----------
    path
        Folder of the store.
    X
        The samples that it was made from, as for `compute_gram`.
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
    StoreMismatchError
        These are other samples; the store is left as it is.
    """
    report = progress or ignore
    store = GramStore.open(Path(path))
    header, side = store.header, open_samples(X)
    if not header.symmetric:
        raise InputError(f"{path} is of two sets of samples: run compute_gram with both again")
    damaged = store.damaged_tiles()
    found = scan_side(side, store.kernels, header.sphere_map, report)
    if found.fingerprint != header.fingerprints[0]:
        raise StoreMismatchError(
            f"{path} was made from other samples than {side.source} "
            f"({header.fingerprints[0][:8]}, now {found.fingerprint[:8]})"
        )
    for tile in damaged:
        store.remove_tile(*tile)
    with borrow_client(client) as workers:
        resources = resources_of(workers, None if memory is None else parse_bytes(memory))
        plan = plan_for(
            [side],
            resources,
            dtype=header.dtype,
            product_dtype=header.product_dtype,
            n_kernels=len(store.kernels),
            tile=header.tile,
        )
        plan.check()
        if damaged:  # the staged samples may be damaged too
            store.samples.start("rows")
        staging = stage_samples(store, [side], report)
        compute_tiles(store, store.kernels, staging, workers, plan, report)
    return damaged
