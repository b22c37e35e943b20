"""Matrices of kernels of graph nodes, in the same stores as those of samples."""

from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, cast

from distributed import Client

from dhsk.bars import Show, shown
from dhsk.costs import tell_cost
from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.folder import temporary_place
from dhsk.execution.folder_check import shared_by_workers
from dhsk.execution.lock import is_occupied
from dhsk.execution.owner import sole_writer_of
from dhsk.execution.workers import computing, resources_of
from dhsk.files import full_disk_is_budget
from dhsk.gram.graph_functions import NodeSpectrum, check_range, coefficients
from dhsk.gram.graph_plan import plan_graph
from dhsk.gram.graph_similarity import Graph, negative_laplacian_of, similarity_of
from dhsk.gram.graph_spectrum import check_radius, similarity_is_semidefinite, spectrum_of
from dhsk.gram.graph_tasks import compute_columns
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.storage.header import Header, indefinite_of
from dhsk.gram.storage.names import digest_of_names
from dhsk.gram.storage.staging import stage_samples
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.tiling import DtypeName
from dhsk.kernels.base import whole_parameter
from dhsk.kernels.nodes import NodeKernel, NodeKind
from dhsk.objects.places import Place, free_bytes, is_url, parse_place
from dhsk.progress import OnProgress
from dhsk.run_progress import passes_reported
from dhsk.samples import Samples, scan
from dhsk.samples.memory import from_memory
from dhsk.units import parse_bytes


def graph_gram(
    S: Any,
    kind: NodeKind = "exponential",
    *,
    beta: float | None = None,
    power: int | None = None,
    laplacian: bool = False,
    store: str | Place | None = None,
    dtype: str = "float64",
    tile: int | None = None,
    memory: int | str | None = None,
    client: Client | None = None,
    scratch: str | Place | None = None,
    progress: Show = None,
) -> GramMatrix:
    """Compute the matrix of a kernel of graph nodes, column by column of tiles, into a zarr store.

    If this call is interrupted, the same call computes only the missing tiles, and the finished
    store is the same to the last bit. Tiles are columns of a function of S. The exponential and
    von Neumann kernels are Chebyshev series; terms that are left out change an entry by at most
    1.2e-16 times a bound on the kernel's largest eigenvalue, and columns of the von Neumann kernel
    are certified by their residuals to 1e-10 of it.

    Parameters
    ----------
    S
        Symmetric similarity of the nodes, (N, N), sparse or dense, such as an adjacency matrix; or
        a pair of it and the ids of the nodes, such as `read_edges` returns; or the path of an edge
        list. Ids are the matrix's `feature_names`.
    kind
        "power", S^power; "exponential", exp(beta S); "von_neumann", (I - beta S)^-1.
    beta
        Factor of S for "exponential" and "von_neumann"; for the latter |beta| must be below
        1/rho(S), the inverse of the spectral radius.
    power
        Exponent for "power". Odd powers are not positive semi-definite unless S is, and SVMs refuse
        them then.
    laplacian
        Whether S is an adjacency matrix, to be replaced by its `negative_laplacian`.
    store
        Folder for the result, on a disk that all workers can access, or ``s3://BUCKET/PREFIX``.
        None for a temporary folder, removed with the matrix.
    dtype
        Type of the stored entries, "float64" or "float32"; all sums are in float64.
    tile
        Number of rows and columns of a tile; None chooses by the memory.
    memory
        Upper bound on the memory of all processes together: a number of bytes, or a string like
        "2GB". None for the memory of the workers. A task holds S and a column of tiles.
    client
        Dask client; None for the current one, if this is not a Dask task, or else for threads of
        this process.
    scratch
        Where the temporary folder is made if there is no `store`.
    progress
        Function that is called with `Progress` events of the eigenvalues and after every column of
        tiles; True for bars.

    Returns
    -------
    GramMatrix
        (N, N), read from the store as needed. It has no samples, so that it has no other kernel,
        and models cannot predict other nodes; `cross_validate` scores known ones.

    Raises
    ------
    InputError
        S is not symmetric or finite, which names the first entry; |beta| is not below 1/rho(S), or
        values overflow, with the numbers; or a parameter is invalid.
    BudgetError
        The computation needs more memory, or more disk space, than there is.
    AccuracyError
        |beta| is so near 1/rho(S) that the accuracy cannot be reached.
    StoreMismatchError
        The store is of another graph or kernel.

    References
    ----------
    .. [1] R. I. Kondor and J. Lafferty, "Diffusion kernels on graphs and other discrete structures"
       (2002).
    .. [2] M. J. Zaki and W. Meira, "Data Mining and Analysis", section 5.4.2.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> adjacency = np.array([[0, 0, 1, 1, 0],
    ...                       [0, 0, 1, 0, 1],
    ...                       [1, 1, 0, 1, 0],
    ...                       [1, 0, 1, 0, 1],
    ...                       [0, 1, 0, 1, 0]])
    >>> G = dhsk.graph_gram(adjacency, "exponential", beta=0.2, laplacian=True)
    >>> G[:2].round(2)
    array([[0.7 , 0.01, 0.14, 0.14, 0.01],
           [0.01, 0.7 , 0.13, 0.03, 0.14]])
    """
    kernel, limit = NodeKernel(kind, beta, power), None if memory is None else parse_bytes(memory)
    _check_types(dtype, tile)
    with ExitStack() as stack:
        report = stack.enter_context(shown(progress, products=1, staging=1, tiles=10))
        workers = stack.enter_context(computing(client))
        graph = _graph(S, laplacian=laplacian)
        resources = replace(resources_of(workers, limit), to_server=is_url(store))
        n, nnz = graph.matrix.shape[0], graph.matrix.nnz
        plan = plan_graph(n, nnz, resources, cast("DtypeName", dtype), tile)
        plan.check()
        given = None if scratch is None else parse_place("scratch", scratch)
        folder = temporary_place(given) if store is None else None
        path = parse_place("store", store) if folder is None else folder.path
        if is_occupied(path):
            GramStore.open(path)  # raises before anything else is locked
        else:
            plan.check(disk_free=free_bytes(path))
        tell_cost(plan.cost)
        with passes_reported(report):
            problem = _problem(graph, kernel, dtype, laplacian=laplacian)
        stack.enter_context(full_disk_is_budget())
        stack.enter_context(sole_writer_of(path))
        stack.enter_context(shared_by_workers(workers, path))
        header = problem.header(plan.tiling.tile, plan.dtype)
        opened = GramStore.create(path, header, problem.graph.nodes)
        if opened.header.tile != plan.tiling.tile:  # an existing store keeps its tiles
            plan = plan_graph(n, nnz, resources, plan.dtype, opened.header.tile)
            plan.check()
        deque(stage_samples(opened, [problem.rows], report), maxlen=0)
        compute_columns(opened, workers, plan, report)
    return GramMatrix(opened, opened.kernels[0], folder=folder)


def repair_graph(
    store: GramStore, S: Any, limit: int | None, client: Client | None, report: OnProgress
) -> list[tuple[int, int]]:
    """Compute damaged and missing tiles of a store again, as `repair_gram` does.

    `S` is the similarity, or the adjacency matrix if that is its negative Laplacian.
    """
    rows = _rows_of(store, S)
    with full_disk_is_budget(), sole_writer_of(store.path), computing(client) as workers:
        header = store.header
        resources = replace(resources_of(workers, limit), to_server=is_url(store.path))
        plan = plan_graph(header.n_rows, header.nnz[0] or 0, resources, header.dtype, header.tile)
        plan.check()
        with shared_by_workers(workers, store.path):
            damaged = store.discard_damage(rows.feature_names)
            deque(stage_samples(store, [rows], report), maxlen=0)
            compute_columns(store, workers, plan, report)
    return damaged


def _rows_of(store: GramStore, S: Any) -> Samples:
    """Rows of the similarity that a store was made from; StoreMismatchError if it is another."""
    given = similarity_of(S)
    graphs = [given] if (given.matrix.data < 0).any() else [given, negative_laplacian_of(given)]
    for graph in graphs:
        rows = from_memory(graph.matrix, "S", graph.nodes)
        if scan(rows, "identity").fingerprint == store.header.fingerprints[0]:
            return rows
    raise StoreMismatchError(
        f"{store.path} was made from another graph, neither with this similarity nor with the "
        "Laplacian of this adjacency"
    )


def _check_types(dtype: object, tile: object) -> None:
    """Raise InputError for a type or tile that cannot be used."""
    if dtype not in ("float32", "float64"):
        raise InputError(f"dtype must be float32 or float64, got {dtype!r}")
    if tile is not None:
        whole_parameter("tile", tile, 1)


@dataclass(frozen=True, eq=False)
class _Problem:
    """A graph and a kernel of its nodes, checked."""

    graph: Graph
    rows: Samples
    """Rows of S."""
    kernel: NodeKernel
    spectrum: NodeSpectrum | None
    laplacian: bool
    """Whether S was made as the negative Laplacian of the graph that was given."""

    def header(self, tile: int, dtype: DtypeName) -> Header:
        """Description of the store."""
        n = self.graph.matrix.shape[0]
        found = scan(self.rows, "identity")
        return Header(
            n_rows=n,
            n_cols=n,
            symmetric=True,
            dtype=dtype,
            tile=tile,
            layout="triangle",
            kernels=(self.kernel.to_spec(),),
            sphere_map="identity",
            dim=n,
            fingerprints=(found.fingerprint,),
            nnz=(found.nnz,),
            feature_names=digest_of_names(self.graph.nodes),
            graph={
                **({} if self.spectrum is None else self.spectrum.to_json()),
                "laplacian": float(self.laplacian),
            },
            indefinite=indefinite_of([self.kernel]),
        )


def _graph(S: Any, *, laplacian: bool) -> Graph:
    """Check a similarity; of an adjacency matrix it is the negative Laplacian, if that is asked."""
    graph = similarity_of(S)
    return negative_laplacian_of(graph) if laplacian else graph


def _problem(graph: Graph, kernel: NodeKernel, dtype: str, *, laplacian: bool) -> _Problem:
    """Check a kernel on a graph; InputError if it is not defined."""
    spectrum = spectrum_of(graph.matrix, tight=kernel.kind == "von_neumann")
    check_radius(graph.matrix, kernel, spectrum)
    check_range(kernel, spectrum, dtype)
    if kernel.power is not None:
        known = similarity_is_semidefinite(graph.matrix, spectrum)
        kernel, spectrum_used = replace(kernel, similarity_semidefinite=known), None
    else:
        coefficients(kernel, spectrum)  # refuses very long series
        spectrum_used = spectrum
    rows = from_memory(graph.matrix, "S", graph.nodes)
    return _Problem(graph, rows, kernel, spectrum_used, laplacian)
