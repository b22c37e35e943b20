"""Computation of Gram matrices by tiles on Dask: check, plan, stage samples, compute, record."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from dhsk.arrays import Rows
from dhsk.bars import Show
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.run import Run
from dhsk.gram.matrix import GramMatrices, GramMatrix
from dhsk.gram.plan import make_plan
from dhsk.gram.prepare import Data, check_kernels, open_sides
from dhsk.gram.row_map import RowMap
from dhsk.gram.session import Session
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.parts import parse_part
from dhsk.gram.storage.store import GramStore
from dhsk.kernels import Kernel, one_or_several, parse_kernel
from dhsk.kernels.base import chosen_parameter
from dhsk.objects.places import Place
from dhsk.progress import Progress
from dhsk.samples import Samples, Scan, SphereMap, ZeroRows, ZeroRule
from dhsk.samples.memory import from_memory
from dhsk.samples.variance import width_of

if TYPE_CHECKING:
    from distributed import Client


class GramOptions(TypedDict, total=False):
    """Options of `compute_gram`, for its signatures with one kernel and with several."""

    sphere_map: SphereMap | None
    zero_rows: ZeroRule | ZeroRows
    store: str | Place | None
    dtype: str
    product_dtype: str
    tile: int | None
    memory: int | str | None
    client: "Client | None"
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
    client: "Client | None" = None,
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
        time_scale=1, "gaussian" with a width by the variance of the samples (scikit-learn's
        ``gamma="scale"``), "polynomial" with degree=2 and offset=1, "cosine", "linear".
    Y
        Samples of the columns, (M, dim), for a rectangular matrix; None for those of X.
    sphere_map
        Map of the samples to the unit sphere: "hyperspherical" (square roots of proportions, for
        counts), "projective" (division by the length), "clr" (centred log-ratios, for counts of
        microbes; "clr:0.5" adds 0.5 first) or "identity". None for the kernel's default:
        "hyperspherical" for heat, parametrix and cosine, "identity" for the others.
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
    chosen_parameter("layout", layout, ("triangle", "full"))
    asked = None if part is None else parse_part(part)
    given, sides = one_or_several(kernel), open_sides(X, Y)
    width = width_of(sides[0], sphere_map)
    kernels = [parse_kernel(one, sides[0].shape[1], width=width) for one in given]
    chosen = check_kernels(kernels, sides, sphere_map, product_dtype)
    data = Data(sides, kernels, chosen, zero_rows, dtype, product_dtype)
    planned = partial(
        make_plan,
        GramSides.of(sides),
        dtype=dtype,
        product_dtype=product_dtype,
        layout="none" if store is None else layout,
        n_kernels=len(kernels),
    )
    begun = Run.begun(
        progress, memory=memory, client=client, store=store, scratch=scratch, reading=1, staging=1,
        tiles=0 if store is None else 8,
    )  # fmt: skip
    with begun as (run, _), Session.begun(run, planned, tile, asked) as session:
        data = data.in_order_of(session.existing)
        header = data.header(session.plan, data.scan(run))
        if isinstance(run.client, ArrayJob):
            found = header.to_json()
            run.client.check("samples or kernels", found, f"matrix{run.client.next_call()}")
        opened = session.made(header, data.sides)
    compute, folder = store is None, session.folder
    matrices = [GramMatrix(opened, one, compute=compute, folder=folder) for one in kernels]
    return matrices[0] if isinstance(kernel, Kernel | str) else GramMatrices(matrices)


def gram_of(samples: Samples, row_map: RowMap, run: Run, dtype: str = "float64") -> GramMatrix:
    """`compute_gram` of samples with the kernel of a map, whose zeros it counts, in a run."""
    return compute_gram(
        samples,
        row_map.kernel,
        sphere_map=row_map.sphere_map,
        zero_rows=row_map.zero_rows,
        store=run.store,
        dtype=dtype,
        product_dtype=row_map.dtype,
        memory=run.memory,
        client=run.client,
        scratch=run.scratch,
        progress=run.report,
    )


def gram_of_rows(rows: Rows, kernel: Kernel, run: Run) -> GramMatrix:
    """Matrix of rows in memory, (N, dim), of their type, computed on demand.

    They are staged as they are, with their marks (`dhsk.kernels.centre`): a map made and checked
    them.
    """
    dtype, samples = rows.dtype.name, from_memory(rows)
    data = Data([samples], [kernel], "identity", ZeroRows(), dtype, dtype)
    planned = partial(
        make_plan, GramSides.of([samples]), dtype=dtype, product_dtype=dtype, layout="none"
    )
    with Session.begun(run, planned) as session:
        known = Scan(*samples.shape, samples.nnz, "", mapped_nnz=samples.nnz)
        store = GramStore.create(session.path, data.header(session.plan, [known]))
        store.samples.start("rows")
        store.samples.write("rows", 0, 0, rows)
        store.samples.finish("rows")
        run.report(Progress("staging", rows.shape[0], rows.shape[0]))
    return GramMatrix(store, kernel, compute=True, folder=session.folder)
