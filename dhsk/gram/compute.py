"""Gram matrices by tiles on dask.distributed: check, plan, stage the samples, compute, record."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from distributed import Client

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.gram.header import Header
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.plan import GramPlan, Resources, make_plan
from dhsk.gram.sizes import parse_bytes
from dhsk.gram.store import GramStore, Side
from dhsk.gram.workers import borrow_client, resources_of, run_tasks
from dhsk.kernels import Kernel, RowKernel, kernel_from_spec
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import Samples, Scan, SphereMap, apply_map, open_samples, parse_sphere_map, scan

BLOCK_BYTES = 16_000_000
"""Samples are mapped and staged in blocks of about this size."""


def compute_gram(
    X: Any,
    kernel: Kernel,
    Y: Any = None,
    *,
    sphere_map: SphereMap | None = None,
    store: str | Path | None = None,
    dtype: str = "float64",
    tile: int | None = None,
    memory: int | str | None = None,
    client: Client | None = None,
    layout: str = "triangle",
    progress: OnProgress | None = None,
) -> GramMatrix:
    """Compute the Gram matrix of samples, tile by tile, into a zarr store.

    Interrupted at any moment, the same call computes only the tiles that are missing, and the
    finished store is the same to the last bit.

    Parameters
    ----------
    X
        Samples by row, (N, dim): an array, a CSR array, a path ``FILE`` or ``FILE:KEY``, or
        `Samples`.
    kernel
        For instance `HeatKernel`.
    Y
        Other samples, (M, dim), for the rectangular matrix of all pairs; None for X with itself.
    sphere_map
        How samples become unit vectors: "hyperspherical" (square roots of proportions, for counts),
        "projective" (division by the length) or "identity" (they are used as they are). None takes
        the kernel's own: hyperspherical for heat, parametrix and cosine, identity for the others.
    store
        Folder for the result, on a disk that all workers see. None uses a temporary folder, removed
        when the returned matrix is no longer used.
    dtype
        "float64" or "float32": type of the stored entries; they are computed in float64.
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
    GramMatrix
        (N, N) or (N, M), read from the store as needed.

    Raises
    ------
    InputError
        Samples or parameters cannot be used; the message names row and column.
    BudgetError
        It does not fit the memory or the disk.
    StoreMismatchError
        The store is of other samples or of another kernel.

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
    sides = [open_samples(X)] if Y is None else [open_samples(X), open_samples(Y)]
    chosen_map = check_kernel(kernel, sides, sphere_map)
    with ExitStack() as stack:
        worker_client = stack.enter_context(borrow_client(client))
        resources = resources_of(worker_client, limit)
        plan = plan_for(sides, resources, dtype=dtype, tile=tile, layout=layout)
        plan.check()
        scans = [scan_side(side, kernel, chosen_map, report) for side in sides]
        path, cleanup = _place(store)
        try:
            opened = _open_store(path, plan, kernel, chosen_map, scans)
            if opened.header.tile != plan.tiling.tile:  # that of an earlier run wins
                plan = plan_for(
                    sides, resources, dtype=dtype, tile=opened.header.tile, layout=layout
                )
                plan.check()
            stage_samples(opened, sides, report)
            compute_tiles(opened, worker_client, plan.window, report)
        except BaseException:
            cleanup()
            raise
    return GramMatrix(opened, kernel, cleanup=cleanup)


def check_kernel(kernel: Kernel, sides: list[Samples], sphere_map: str | None) -> SphereMap:
    """Make sure that kernel, samples and map go together, before any row is read.

    Parameters
    ----------
    kernel
        The kernel.
    sides
        The samples of rows and, if rectangular, of columns.
    sphere_map
        The map asked for; None for the kernel's own.

    Returns
    -------
    SphereMap
        The map to use.

    Raises
    ------
    InputError
        They do not.
    """
    chosen = parse_sphere_map(sphere_map or kernel.default_map)
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
    return chosen


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


def scan_side(side: Samples, kernel: Kernel, sphere_map: SphereMap, report: OnProgress) -> Scan:
    """Read all samples once: refuse what the map or the kernel cannot take, and fingerprint them.

    Parameters
    ----------
    side
        The samples.
    kernel
        If spherical, unmapped samples must be unit vectors; a `RowKernel` checks them itself.
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
    return scan(
        side,
        sphere_map,
        unit=kernel.spherical and sphere_map == "identity",
        check=kernel.check_rows if isinstance(kernel, RowKernel) else None,
        on_rows=_rows_reporter("reading", side.shape[0], report),
    )


def _rows_reporter(stage: str, total: int, report: OnProgress) -> Callable[[int], None]:
    return lambda done: report(Progress(stage, done, total))


def _place(store: str | Path | None) -> tuple[Path, Callable[[], None]]:
    """Where the store goes, and what to call when it is not needed any more."""
    if store is None:
        path = Path(tempfile.mkdtemp(prefix="dhsk-"))
        return path, lambda: shutil.rmtree(path, ignore_errors=True)
    if "://" in str(store):
        raise InputError(f"{store}: object stores are not supported yet, give a local folder")
    return Path(store), lambda: None


def _open_store(
    path: Path, plan: GramPlan, kernel: Kernel, sphere_map: SphereMap, scans: list[Scan]
) -> GramStore:
    header = Header(
        n_rows=plan.tiling.n_rows,
        n_cols=plan.tiling.n_cols,
        symmetric=plan.tiling.symmetric,
        dtype=plan.dtype,
        tile=plan.tiling.tile,
        layout=plan.layout,
        kernel=kernel.to_spec(),
        sphere_map=sphere_map,
        dim=plan.dim,
        fingerprints=tuple(s.fingerprint for s in scans),
        nnz=tuple(s.nnz for s in scans),
    )
    if not path.exists():
        parent = next(p for p in path.absolute().parents if p.exists())
        plan.check(disk_free=shutil.disk_usage(parent).free)
    return GramStore.create(path, header)


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
        if store.has_samples(name):
            continue
        store.start_samples(name)
        first = entry = 0
        for block in side.blocks(_stage_rows(store, side)):
            mapped = apply_map(store.header.sphere_map, block, first)
            store.write_samples(name, first, entry, mapped)
            first += mapped.shape[0]
            entry += getattr(mapped, "nnz", 0)
            report(Progress("staging", first, side.shape[0]))
        store.finish_samples(name)


def _stage_rows(store: GramStore, side: Samples) -> int:
    """Rows to stage at a time: whole chunks of about `BLOCK_BYTES`."""
    n, dim = side.shape
    row_bytes = 8 * dim if side.nnz is None else 16 * side.nnz / n + 8
    return max(int(BLOCK_BYTES / row_bytes) // store.chunk_rows, 1) * store.chunk_rows


def compute_tiles(store: GramStore, client: Client, window: int, report: OnProgress) -> None:
    """Compute the tiles that are missing.

    Parameters
    ----------
    store
        A store with its samples staged.
    client
        Where the tasks run.
    window
        Most tasks in flight.
    report
        Receives progress.
    """
    kernel = kernel_from_spec(store.header.kernel)
    total = store.header.tiling.n_tiles
    missing = store.missing_tiles()
    done = total - len(missing)
    report(Progress("tiles", done, total))
    tasks = ((str(store.path.absolute()), kernel, i, j) for i, j in missing)
    for _ in run_tasks(client, compute_tile, tasks, window):
        done += 1
        report(Progress("tiles", done, total))
    store.check_complete()


def compute_tile(path: str, kernel: Kernel, i: int, j: int) -> tuple[int, int]:
    """Compute one tile and write it: the task that workers run.

    Parameters
    ----------
    path
        Folder of the store, with the samples staged.
    kernel
        The kernel.
    i, j
        Indices of the tile.

    Returns
    -------
    tuple of int
        (i, j).
    """
    store = GramStore.open(Path(path))
    tiling = store.header.tiling
    rows = store.read_samples("rows", tiling.rows(i))
    values = kernel(rows, _columns(store, i, j))
    store.write_tile(i, j, values.astype(store.header.dtype, copy=False))
    return i, j


def _columns(store: GramStore, i: int, j: int) -> Rows | None:
    """The other side of a tile; None on the diagonal, where the kernel uses the symmetry."""
    tiling = store.header.tiling
    if tiling.symmetric and i == j:
        return None
    return store.read_samples("rows" if tiling.symmetric else "cols", tiling.cols(j))
