"""Gram matrices by tiles on dask.distributed: check, plan, stage the samples, compute, record."""

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from distributed import Client

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.gram.folder import TemporaryFolder
from dhsk.gram.header import Header
from dhsk.gram.lock import sole_writer
from dhsk.gram.matrix import GramMatrices, GramMatrix
from dhsk.gram.passes import grouped
from dhsk.gram.plan import GramPlan, Resources, make_plan
from dhsk.gram.sizes import parse_bytes
from dhsk.gram.staged import Side
from dhsk.gram.store import GramStore, is_occupied
from dhsk.gram.tiles import Group, TileSource
from dhsk.gram.workers import borrow_client, full_disk_is_budget, resources_of, run_tasks
from dhsk.kernels import Kernel, RowKernel
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import Samples, Scan, SphereMap, apply_map, open_samples, parse_sphere_map, scan

BLOCK_BYTES = 16_000_000
"""Samples are mapped and staged in blocks of about this size."""


def compute_gram(
    X: Any,
    kernel: Kernel | Sequence[Kernel],
    Y: Any = None,
    *,
    sphere_map: SphereMap | None = None,
    store: str | Path | None = None,
    dtype: str = "float64",
    product_dtype: str = "float64",
    tile: int | None = None,
    memory: int | str | None = None,
    client: Client | None = None,
    layout: str = "triangle",
    progress: OnProgress | None = None,
) -> Any:
    """Compute the Gram matrix of samples, tile by tile, into a zarr store.

    Interrupted at any moment, the same call computes only the tiles that are missing, and the
    finished store is the same to the last bit.

    Parameters
    ----------
    X
        Samples by row, (N, dim): an array, a CSR array, a path ``FILE`` or ``FILE:KEY``, or
        `Samples`.
    kernel
        For instance `HeatKernel`; or several kernels, whose tiles come from one product.
    Y
        Other samples, (M, dim), for the rectangular matrix of all pairs; None for X with itself.
    sphere_map
        How samples become unit vectors: "hyperspherical" (square roots of proportions, for counts),
        "projective" (division by the length) or "identity" (they are used as they are). None takes
        the kernel's own: hyperspherical for heat, parametrix and cosine, identity for the others.
    store
        Folder for the result, on a disk that all workers see. None stores nothing: tiles are
        computed whenever they are asked for, from mapped samples in a temporary folder.
    dtype
        "float64" or "float32": type of the entries.
    product_dtype
        Type in which the samples are held, multiplied and evaluated. With "float32", for spherical
        and linear kernels, a product takes half the time; cosines are then off by some 1e-7, and
        entries by that times the kernel's slope, which is about 1/(2 time) next to cosine 1.
    tile
        Edge of a tile; None chooses by the memory.
    memory
        Most bytes that all processes together may hold, as a number or like "2GB"; None for what
        the workers have.
    client
        Where to compute; None takes dask's current client, or threads of this process.
    layout
        "triangle" stores the upper tiles only; "full" both halves, for other readers of zarr.
    progress
        Called with a `Progress` after every tile.

    Returns
    -------
    GramMatrix or GramMatrices
        (N, N) or (N, M), read from the store as needed; of several kernels a list of them.

    Raises
    ------
    InputError
        Samples or parameters cannot be used; the message names row and column.
    BudgetError
        It does not fit the memory or the disk.
    StoreMismatchError
        The store is of other samples or of another kernel.
    StoreError
        The store cannot be written, or another process writes to it.

    References
    ----------
    .. [1] C. Zhao and J. S. Song, "Exact heat kernel on a hypersphere and its applications in
       kernel SVM", 2017.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> X = np.random.default_rng(0).poisson(1.0, size=(300, 20)) + 1.0
    >>> G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(dim=20, time_scale=1.0))
    >>> G.shape
    (300, 300)
    """
    report = progress or ignore
    limit = None if memory is None else parse_bytes(memory)
    kernels = [kernel] if isinstance(kernel, Kernel) else list(kernel)
    sides = [open_samples(X)] if Y is None else [open_samples(X), open_samples(Y)]
    options = {
        "dtype": dtype,
        "product_dtype": product_dtype,
        "layout": "none" if store is None else layout,
        "n_kernels": len(kernels),
    }
    chosen_map = check_kernels(kernels, sides, sphere_map, product_dtype)
    with ExitStack() as stack:
        worker_client = stack.enter_context(borrow_client(client))
        resources = resources_of(worker_client, limit)
        plan = plan_for(sides, resources, tile=tile, **options)
        path, folder = _place(store, plan)
        stack.enter_context(full_disk_is_budget())
        stack.enter_context(sole_writer(path))
        scans = [scan_side(side, kernels, chosen_map, report) for side in sides]
        header = _header(plan, kernels, chosen_map, scans)
        opened = GramStore.create(path, header)
        if opened.header.tile != plan.tiling.tile:  # that of an earlier run wins
            plan = plan_for(sides, resources, tile=opened.header.tile, **options)
            plan.check()
        stage_samples(opened, sides, report)
        if store is not None:
            compute_tiles(opened, kernels, worker_client, plan, report)
    matrices = [GramMatrix(opened, k, compute=store is None, folder=folder) for k in kernels]
    return matrices[0] if isinstance(kernel, Kernel) else GramMatrices(matrices)


def check_kernels(
    kernels: Sequence[Kernel],
    sides: list[Samples],
    sphere_map: str | None,
    product_dtype: str = "float64",
) -> SphereMap:
    """Make sure that kernels, samples and map go together, before any row is read.

    Parameters
    ----------
    kernels
        The kernels.
    sides
        The samples of rows and, if rectangular, of columns.
    sphere_map
        The map asked for; None for the kernels' own.
    product_dtype
        Type in which samples are to be multiplied.

    Returns
    -------
    SphereMap
        The map to use.

    Raises
    ------
    InputError
        They do not.
    """
    if not kernels:
        raise InputError("no kernel was given: pass one, or a list of them")
    own = {kernel.default_map for kernel in kernels}
    if sphere_map is None and len(own) > 1:
        raise InputError(
            f"these kernels take samples by different maps ({', '.join(sorted(own))}): "
            "give sphere_map, or compute them apart"
        )
    chosen = parse_sphere_map(sphere_map or own.pop())
    for kernel in kernels:
        _check_kernel(kernel, sides, chosen, product_dtype)
    return chosen


def _check_kernel(
    kernel: Kernel, sides: list[Samples], chosen: SphereMap, product_dtype: str
) -> None:
    if product_dtype == "float32" and not (kernel.spherical or kernel.name == "linear"):
        raise InputError(
            f"a {kernel.name} kernel loses too many digits in float32: "
            "leave product_dtype at float64"
        )
    if isinstance(kernel, RowKernel) and chosen != "identity":
        raise InputError(
            f"a {kernel.name} kernel takes samples as they are, not mapped to a sphere: leave out "
            f"the {chosen} map"
        )
    dims = {side.shape[1] for side in sides}
    if len(dims) > 1:
        raise InputError(
            f"{sides[0].source} has {sides[0].shape[1]} features but "
            f"{sides[1].source} has {sides[1].shape[1]}: both sides need the same"
        )
    dim = getattr(kernel, "dim", None)
    if dim is not None and dims != {dim}:
        raise InputError(
            f"the kernel is for dim {dim} but {sides[0].source} has {sides[0].shape[1]} features: "
            f"make the kernel with dim={sides[0].shape[1]}"
        )


def plan_for(sides: list[Samples], resources: Resources, **options: Any) -> GramPlan:
    """Plan the Gram matrix of opened samples.

    Parameters
    ----------
    sides
        The samples of rows and, if rectangular, of columns.
    resources
        Workers and memory.
    **options
        Passed to `make_plan`.

    Returns
    -------
    GramPlan
        The plan, not yet checked.
    """
    n_rows, dim = sides[0].shape
    nnz = sum(side.nnz or 0 for side in sides) if any(side.is_sparse for side in sides) else None
    return make_plan(
        n_rows,
        dim,
        resources,
        n_cols=sides[1].shape[0] if len(sides) > 1 else None,
        nnz=nnz,
        **options,
    )


def scan_side(
    side: Samples, kernels: Sequence[Kernel], sphere_map: SphereMap, report: OnProgress
) -> Scan:
    """Read all samples once: refuse what the map or the kernel cannot take, and fingerprint them.

    Parameters
    ----------
    side
        The samples.
    kernels
        If any is spherical, unmapped samples must be unit vectors; a `RowKernel` checks them
        itself.
    sphere_map
        The map to be applied.
    report
        Receives progress.

    Returns
    -------
    Scan
        Counts and fingerprint.

    Raises
    ------
    InputError
        A row cannot be used.
    """
    checks = [kernel.check_rows for kernel in kernels if isinstance(kernel, RowKernel)]

    def check(block: Rows, first: int) -> None:
        for check_rows in checks:
            check_rows(block, first)

    return scan(
        side,
        sphere_map,
        unit=sphere_map == "identity" and any(kernel.spherical for kernel in kernels),
        check=check if checks else None,
        on_rows=_rows_reporter("reading", side.shape[0], report),
    )


def _rows_reporter(stage: str, total: int, report: OnProgress) -> Callable[[int], None]:
    return lambda done: report(Progress(stage, done, total))


def _place(store: str | Path | None, plan: GramPlan) -> tuple[Path, TemporaryFolder | None]:
    """Where the store goes, with room for it; a folder that ends with its last user if unnamed."""
    plan.check()
    folder = TemporaryFolder() if store is None else None
    if "://" in str(store):
        raise InputError(f"{store}: object stores are not supported yet, give a local folder")
    path = Path(str(store)) if folder is None else folder.path
    if is_occupied(path):
        GramStore.open(path)  # anything else is refused before it is locked
    else:
        parent = next(p for p in (path, *path.absolute().parents) if p.exists())
        plan.check(disk_free=shutil.disk_usage(parent).free)
    return path, folder


def _header(
    plan: GramPlan, kernels: Sequence[Kernel], sphere_map: SphereMap, scans: list[Scan]
) -> Header:
    return Header(
        n_rows=plan.tiling.n_rows,
        n_cols=plan.tiling.n_cols,
        symmetric=plan.tiling.symmetric,
        dtype=plan.dtype,
        tile=plan.tiling.tile,
        layout=plan.layout,
        kernels=tuple(kernel.to_spec() for kernel in kernels),
        sphere_map=sphere_map,
        dim=plan.dim,
        fingerprints=tuple(s.fingerprint for s in scans),
        nnz=tuple(s.nnz for s in scans),
        product_dtype=plan.product_dtype,
    )


def stage_samples(store: GramStore, sides: list[Samples], report: OnProgress) -> None:
    """Put the mapped samples into a store, from where every task reads its two blocks.

    Parameters
    ----------
    store
        The store; sides that it holds already are left alone.
    sides
        The samples of rows and, if rectangular, of columns.
    report
        Receives progress.
    """
    names: tuple[Side, Side] = ("rows", "cols")
    for name, side in zip(names, sides, strict=False):
        if store.samples.has(name):
            continue
        store.samples.start(name)
        first = entry = 0
        for block in side.blocks(_stage_rows(store, side)):
            mapped = apply_map(store.header.sphere_map, block, first)
            store.samples.write(name, first, entry, mapped)
            first += mapped.shape[0]
            entry += getattr(mapped, "nnz", 0)
            report(Progress("staging", first, side.shape[0]))
        store.samples.finish(name)


def _stage_rows(store: GramStore, side: Samples) -> int:
    """Rows to stage at a time: whole chunks of about `BLOCK_BYTES`."""
    n, dim = side.shape
    row_bytes = 8 * dim if side.nnz is None else 16 * side.nnz / n + 8
    return (
        max(int(BLOCK_BYTES / row_bytes) // store.samples.chunk_rows, 1) * store.samples.chunk_rows
    )


def compute_tiles(
    store: GramStore,
    kernels: Sequence[Kernel],
    client: Client,
    plan: GramPlan,
    report: OnProgress,
) -> None:
    """Compute the tiles that are missing.

    Parameters
    ----------
    store
        A store with its samples staged.
    kernels
        Its kernels, as they are to be pickled.
    client
        Where the tasks run.
    plan
        How many tiles a task computes, and how many tasks are in flight.
    report
        Receives progress.
    """
    total = store.header.tiling.n_tiles
    missing = store.missing_tiles()
    done = total - len(missing)
    report(Progress("tiles", done, total))
    source = TileSource(store.path.absolute(), kernels, compute=True)
    tasks = ((source, group) for group in grouped(missing, plan.group))
    with closing(run_tasks(client, compute_group, tasks, plan.window)) as counts:
        for count in counts:
            done += count
            report(Progress("tiles", done, total))
    store.remove_leftovers()  # of workers that were killed meanwhile
    store.check_complete()


def compute_group(source: TileSource, group: Group) -> int:
    """Compute tiles and write them, one while the next is computed: the task that workers run.

    Parameters
    ----------
    source
        Where the values come from, and of which store.
    group
        The tiles.

    Returns
    -------
    int
        Number of tiles.
    """
    store = GramStore.open(source.path)
    with ThreadPoolExecutor(1) as writer:
        before: Future[None] | None = None
        for tile in source(group):
            if before is not None:
                before.result()
            before = writer.submit(store.write_tile, tile.i, tile.j, tile.values, tile.kernel)
        if before is not None:
            before.result()
    return len(group)
