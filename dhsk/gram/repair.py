"""Repair of a Gram store: damaged tiles are computed again."""

from dataclasses import replace
from typing import Any

from distributed import Client

from dhsk.bars import Show
from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.folder_check import shared_by_workers
from dhsk.execution.owner import sole_writer_of
from dhsk.execution.resources import Resources
from dhsk.execution.run import Run
from dhsk.gram.graph import repair_graph
from dhsk.gram.plan import GramPlan, make_plan
from dhsk.gram.prepare import open_sides, scan_side
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.staging import in_order_of, stage_samples
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tile_tasks import compute_tiles
from dhsk.objects.places import Place, is_url, parse_place
from dhsk.progress import OnProgress
from dhsk.run_progress import passes_reported
from dhsk.samples import Samples


def repair_gram(
    store: str | Place,
    X: Any,
    Y: Any = None,
    *,
    memory: int | str | None = None,
    client: Client | None = None,
    progress: Show = None,
) -> list[tuple[int, int]]:
    """Compute the damaged and missing tiles of a Gram store again, and keep the others.

    Damaged samples and descriptions of arrays are written again too.

    Parameters
    ----------
    store
        Folder of the store, or its ``s3://`` URL.
    X
        Samples from which the store was computed, as for `compute_gram`; or the similarity, the
        adjacency or the edge list of a graph, as for `graph_gram`.
    Y
        Samples of the columns of a rectangular matrix; None if it is symmetric.
    memory
        Upper bound on the memory of all processes together, in bytes or as a string like "2GB".
        None for the memory of the workers.
    client
        Dask client; None for the current one, or else for threads of this process.
    progress
        Function that is called with a `Progress` after every tile; True for bars.

    Returns
    -------
    list of (int, int)
        Indices of the tiles that were damaged or missing.

    Raises
    ------
    InputError
        The number of sets of samples, one or two, is not that of the store.
    StoreMismatchError
        The store was made from other samples; it is not changed.
    StoreError
        The store cannot be written, or another process writes to it.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> G = dhsk.compute_gram(X, "cosine", store="digits.gram", tile=512)
    >>> chunk = G.path / "gram" / "c" / "0" / "1"
    >>> chunk.unlink()
    >>> dhsk.repair_gram("digits.gram", X)
    [(0, 1)]
    >>> G.verify()
    10
    """
    opened = GramStore.open(parse_place("store", store))
    parts = {"reading": 1, "checking": 2, "tiles": 2}
    with (
        Run.begun(progress, memory=memory, client=client, **parts) as (run, report),
        passes_reported(report),
    ):
        return _repaired(opened, X, Y, run)


def _repaired(opened: GramStore, X: Any, Y: Any, run: Run) -> list[tuple[int, int]]:
    """Compute the damaged and missing tiles again; see `repair_gram`."""
    if opened.header.graph is not None:
        if Y is not None:
            raise InputError(f"{opened.path} is a matrix of graph nodes: give the graph alone")
        return repair_graph(opened, X, run)
    sides = open_sides(X, Y)
    made_from = len(opened.samples.sides)
    if len(sides) != made_from:
        raise InputError(
            f"{opened.path} was made from {made_from} sets of samples, {len(sides)} given: "
            "repair it in Python with dhsk.repair_gram(store, X), or (store, X, Y)"
        )
    with sole_writer_of(opened.path):
        plan = _plan(opened, sides, run.resources)
        with shared_by_workers(run.client, opened.path):
            sides = in_order_of(opened, sides)
            _check_samples(opened, sides, run.report)
            damaged = opened.discard_damage(sides[0].feature_names)
            staging = stage_samples(opened, sides, run.report)
            compute_tiles(opened, opened.kernels, staging, run.client, plan, run.report)
            return damaged


def _plan(store: GramStore, sides: list[Samples], resources: Resources) -> GramPlan:
    header = store.header
    plan = make_plan(
        GramSides.of(sides),
        replace(resources, to_server=is_url(store.path)),
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
