"""Computation of Gram matrices by tiles on Dask: check, plan, stage samples, compute, record."""

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack, overload

from distributed import Client

from dhsk.bars import Show, shown
from dhsk.errors import InputError
from dhsk.execution.folder import TemporaryPlace, temporary_place
from dhsk.execution.folder_check import shared_by_workers
from dhsk.execution.lock import is_occupied
from dhsk.execution.owner import one_of_several_at, sole_writer_of
from dhsk.execution.workers import computing, resources_of
from dhsk.files import full_disk_is_budget
from dhsk.gram.matrices import GramMatrices
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.parts import prepare_store, removed_if_samples_change
from dhsk.gram.plan import GramPlan, make_plan
from dhsk.gram.prepare import check_kernels, open_sides, scan_side
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.header import Header, indefinite_of
from dhsk.gram.storage.names import digest_of_names
from dhsk.gram.storage.parts import TilePart, is_begun, parse_part
from dhsk.gram.storage.staging import in_order_of, stage_samples
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tile_tasks import compute_share, compute_tiles
from dhsk.kernels import Kernel, one_or_several, parse_kernel
from dhsk.objects.places import Place, free_bytes, is_url, parse_place
from dhsk.progress import OnProgress
from dhsk.samples import Samples, Scan, SphereMap, ZeroRows, ZeroRule, warn_of_zero_rows
from dhsk.units import parse_bytes


class GramOptions(TypedDict, total=False):
    """Options of `compute_gram`, for its signatures with one kernel and with several."""

    sphere_map: SphereMap | None
    zero_rows: ZeroRule | ZeroRows
    store: str | Place | None
    dtype: str
    product_dtype: str
    tile: int | None
    memory: int | str | None
    client: Client | None
    layout: str
    part: tuple[int, int] | None
    scratch: str | Place | None
    progress: Show


@overload
def compute_gram(
    X: Any, kernel: Kernel | str, Y: Any = None, **options: Unpack[GramOptions]
) -> GramMatrix: ...
@overload
def compute_gram(
    X: Any, kernel: Sequence[Kernel | str], Y: Any = None, **options: Unpack[GramOptions]
) -> GramMatrices: ...
def compute_gram(
    X: Any,
    kernel: Kernel | str | Sequence[Kernel | str],
    Y: Any = None,
    *,
    sphere_map: SphereMap | None = None,
    zero_rows: ZeroRule | ZeroRows = "center",
    store: str | Place | None = None,
    dtype: str = "float64",
    product_dtype: str = "float64",
    tile: int | None = None,
    memory: int | str | None = None,
    client: Client | None = None,
    layout: str = "triangle",
    part: tuple[int, int] | None = None,
    scratch: str | Place | None = None,
    progress: Show = None,
) -> GramMatrix | GramMatrices:
    """Compute the Gram matrix of samples, tile by tile, into a zarr store.

    If this call is interrupted, the same call computes only the missing tiles, and the finished
    store is the same to the last bit.

    Parameters
    ----------
    X
        Samples by row, (N, dim): an array, a CSR array, a path ``FILE`` or ``FILE:KEY``, or
        `Samples`.
    kernel
        A kernel, for instance `HeatKernel`, or a list of kernels, which share the inner products.
        A name stands for a kernel with the defaults of the command line: "heat" and "parametrix" at
        time_scale=1, "gaussian" with sigma=1, "polynomial" with degree=2 and offset=1, "cosine",
        "linear".
    Y
        Samples of the columns, (M, dim), for a rectangular matrix; None for those of X.
    sphere_map
        Map of the samples to the unit sphere: "hyperspherical" (square roots of proportions, for
        counts), "projective" (division by the length) or "identity". None for the kernel's
        default: "hyperspherical" for heat, parametrix and cosine, "identity" for the others.
    zero_rows
        What to do with samples that are all zero, which have no image on the sphere. "center" maps
        them to the centre of the positive orthant, the limit of smoothed counts, and warns of
        their number. "error" raises an error that names the first. Kernels of unmapped samples are
        defined on them.
    store
        Folder for the result, on a disk that all workers can access, or ``s3://BUCKET/PREFIX`` on
        a server with the interface of S3 (see `dhsk.objects`). None stores no tiles: they are
        computed on demand, from mapped samples in a temporary folder.
    dtype
        Type of the entries, "float64" or "float32".
    product_dtype
        Type of the mapped samples and inner products. "float32", for spherical, linear and Gaussian
        kernels, halves the time of a product. The error of cosines is then about 1e-7, and that of
        entries this times the slope of the kernel, which is about 1/(2 time) near cosine 1. For a
        Gaussian kernel, samples far from the origin are refused: see `GaussianKernel`.
    tile
        Number of rows and columns of a tile; None chooses by the memory.
    memory
        Upper bound on the memory of all processes together: a number of bytes, or a string like
        "2GB". None for the memory of the workers.
    client
        Dask client; None for the current one, if this is not a Dask task, or else for threads of
        this process.
    layout
        "triangle" stores the upper tiles only; "full" stores both triangles, for other software
        that reads zarr.
    part
        A pair such as (3, 64) computes the third of 64 parts of the tiles. Any number of processes
        may compute parts of one store at once, without a scheduler: one of them stages the samples
        while the others wait. The same call without `part` afterwards computes what is missing,
        and finishes the store.
    scratch
        Where the temporary folder is made if there is no `store`: a folder that all workers share,
        or ``s3://BUCKET/PREFIX``. None for the system's folder for temporary files.
    progress
        Function that is called with a `Progress` after every tile; True for bars.

    Returns
    -------
    GramMatrix or GramMatrices
        (N, N) or (N, M), read from the store as needed; a sequence of matrices for several kernels.

    Raises
    ------
    InputError
        Samples or parameters are invalid; the message names row and column.
    BudgetError
        The computation needs more memory, or more disk space, than there is.
    StoreMismatchError
        The store has other samples or another kernel.
    SamplesChangedError
        Samples changed while they were read; a store that this call created is removed.
    StoreError
        The store cannot be written, or another process writes to it (other than a part beside
        parts).

    Warns
    -----
    ZeroRowsWarning
        Samples are all zero, and `zero_rows` is "center".

    References
    ----------
    .. [1] C. Zhao and J. S. Song, "Exact heat kernel on a hypersphere and its applications in
       kernel SVM", 2017.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> kernel = dhsk.HeatKernel.at_scale(dim=64, time_scale=1.0)
    >>> G = dhsk.compute_gram(X, kernel, store="digits.gram")
    >>> G.shape
    (1797, 1797)
    >>> G[:2, :3].round(4)
    array([[1.    , 0.686 , 0.7226],
           [0.686 , 1.    , 0.8694]])

    Matrices of several kernels come from one product:

    >>> grams = dhsk.compute_gram(X, [kernel, dhsk.CosineKernel()])
    >>> [round(G.mean(), 4) for G in grams]
    [0.7819, 0.7466]
    """
    _check_layout(layout)
    asked = None if part is None else parse_part(part)
    limit = None if memory is None else parse_bytes(memory)
    given = one_or_several(kernel)
    sides = open_sides(X, Y)
    kernels = [parse_kernel(one, sides[0].shape[1]) for one in given]
    chosen_map = check_kernels(kernels, sides, sphere_map, product_dtype)
    with ExitStack() as stack:
        guesses = {"reading": 1.0, "staging": 1.0} | ({} if store is None else {"tiles": 8.0})
        report = stack.enter_context(shown(progress, **guesses))
        worker_client = stack.enter_context(computing(client))
        plan_with = partial(
            make_plan,
            GramSides.of(sides),
            replace(resources_of(worker_client, limit), to_server=is_url(store)),
            dtype=dtype,
            product_dtype=product_dtype,
            layout="none" if store is None else layout,
            n_kernels=len(kernels),
        )
        plan = plan_with(tile=tile)
        path, folder = _place(store, scratch, plan, asked)
        stack.enter_context(full_disk_is_budget())
        turns = None
        if asked is not None:
            turns = stack.enter_context(one_of_several_at(path))
        else:
            stack.enter_context(sole_writer_of(path))
            stack.enter_context(shared_by_workers(worker_client, path))
        if is_occupied(path) and not is_begun(path):
            sides = in_order_of(GramStore.open(path), sides)
        narrow = "float32" if "float32" in (dtype, product_dtype) else "float64"
        types = narrow, product_dtype
        scans = _scan(sides, kernels, chosen_map, zero_rows, types, report)
        header = _header(plan, kernels, chosen_map, scans, sides[0])
        if turns is None or asked is None:
            stack.enter_context(removed_if_samples_change(path))
            opened = GramStore.create(path, header, sides[0].feature_names)
        else:
            opened = prepare_store(turns, path, header, sides, asked, report)
        if opened.header.tile != plan.tiling.tile:  # an existing store keeps its tiles
            plan = plan_with(tile=opened.header.tile)
            plan.check()
        staging = stage_samples(opened, sides, report)
        if asked is not None:
            compute_share(opened, kernels, asked, worker_client, plan, report)
        elif store is not None:
            compute_tiles(opened, kernels, staging, worker_client, plan, report)
        else:
            deque(staging, maxlen=0)
    matrices = [GramMatrix(opened, k, compute=store is None, folder=folder) for k in kernels]
    return matrices[0] if isinstance(kernel, Kernel | str) else GramMatrices(matrices)


def _check_layout(layout: object) -> None:
    """Raise InputError for an unknown layout."""
    if not isinstance(layout, str) or layout not in ("triangle", "full"):
        raise InputError(f"layout must be triangle or full, got {layout!r}")


def _place(
    store: str | Place | None,
    scratch: str | Place | None,
    plan: GramPlan,
    part: TilePart | None,
) -> tuple[Place, TemporaryPlace | None]:
    """Path of the store, after a check of the disk, and its temporary place if it has one."""
    if store is None and part is not None:
        raise InputError(f"{part} is for a store: give the folder that all parts share")
    plan.check()
    given = None if scratch is None else parse_place("scratch", scratch)
    folder = temporary_place(given) if store is None else None
    path = parse_place("store", store) if folder is None else folder.path
    if is_occupied(path) and not (part and is_begun(path)):
        GramStore.open(path)  # raises before anything else is locked
    else:
        plan.check(disk_free=free_bytes(path))
    return path, folder


def _scan(
    sides: list[Samples],
    kernels: Sequence[Kernel],
    sphere_map: SphereMap,
    zero_rows: ZeroRule | ZeroRows,
    types: tuple[str, str],
    report: OnProgress,
) -> list[Scan]:
    """Check and fingerprint all samples; warn of all-zero ones unless the caller does.

    `types` are those of the values and of the products.
    """
    if isinstance(zero_rows, ZeroRows):
        return [scan_side(side, kernels, sphere_map, report, zero_rows, *types) for side in sides]
    zeros = [ZeroRows(zero_rows) for _ in sides]
    pairs = list(zip(sides, zeros, strict=True))
    scans = [scan_side(side, kernels, sphere_map, report, zero, *types) for side, zero in pairs]
    warn_of_zero_rows([(side.source, zero.count, side.shape[0]) for side, zero in pairs])
    return scans


def _header(
    plan: GramPlan,
    kernels: Sequence[Kernel],
    sphere_map: SphereMap,
    scans: list[Scan],
    rows: Samples,
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
        nnz=tuple(s.mapped_nnz for s in scans),
        product_dtype=plan.product_dtype,
        feature_names=digest_of_names(rows.feature_names),
        zero_rows=tuple(s.zero_rows for s in scans) if any(s.zero_rows for s in scans) else None,
        vectorizer=None if rows.vectorizer is None else rows.vectorizer.settings,
        indefinite=indefinite_of(kernels),
    )
