"""Matrices of kernels of graph nodes, in the same stores as those of samples.

Rows of the similarity are staged as the samples of the store, so that checksums, repair, servers
and workers need no code of their own. Rejected: stores without samples (a case in each reader);
tiles on demand (an entry costs a whole column).
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dhsk.bars import Show
from dhsk.costs import tell_cost
from dhsk.execution.run import Run
from dhsk.gram.graph_functions import NodeSpectrum, check_range, coefficients
from dhsk.gram.graph_plan import cost_of_graph, plan_graph
from dhsk.gram.graph_similarity import Graph, negative_laplacian_of, similarity_of
from dhsk.gram.graph_spectrum import check_radius, similarity_is_semidefinite, spectrum_of
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.prepare import Data
from dhsk.gram.session import Session
from dhsk.kernels.nodes import NodeKernel, NodeKind
from dhsk.objects.places import Place
from dhsk.run_progress import passes_reported
from dhsk.samples import Samples, ZeroRows
from dhsk.samples.memory import from_memory

if TYPE_CHECKING:
    from distributed import Client


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
    client: "Client | None" = None,
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
    kernel = NodeKernel(kind, beta, power)
    begun = Run.begun(
        progress, memory=memory, client=client, store=store, scratch=scratch, products=1, staging=1,
        tiles=10,
    )  # fmt: skip
    with begun as (run, report):
        graph = similarity_of(S)
        if laplacian:
            graph = negative_laplacian_of(graph)
        n, nnz = graph.matrix.shape[0], graph.matrix.nnz
        with Session.begun(run, partial(plan_graph, n, nnz, dtype=dtype), tile) as session:
            tell_cost(partial(cost_of_graph, session.plan, nnz))
            with passes_reported(report):
                kernel, spectrum = _checked(graph, kernel, dtype)
            data = Data([rows_of(graph)], [kernel], "identity", ZeroRows())
            described = {} if spectrum is None else spectrum.to_json()
            header = replace(
                data.header(session.plan, data.scan(Run())),
                graph={**described, "laplacian": float(laplacian)},
            )
            opened = session.made(header, data.sides)
    return GramMatrix(opened, opened.kernels[0], folder=session.folder)


def rows_of(graph: Graph) -> Samples:
    """Rows of the similarity of a graph, as samples."""
    return from_memory(graph.matrix, "S", graph.nodes)


def _checked(
    graph: Graph, kernel: NodeKernel, dtype: str
) -> tuple[NodeKernel, NodeSpectrum | None]:
    """Kernel on a graph, and the interval of its series, if it is one; InputError if undefined."""
    spectrum = spectrum_of(graph.matrix, tight=kernel.kind == "von_neumann")
    check_radius(kernel, spectrum)
    check_range(kernel, spectrum, dtype)
    if kernel.power is not None:
        known = similarity_is_semidefinite(graph.matrix, spectrum)
        return replace(kernel, similarity_semidefinite=known), None
    coefficients(kernel, spectrum)  # refuses very long series
    return kernel, spectrum
