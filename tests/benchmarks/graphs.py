"""Kernels of the nodes of a large sparse graph: time, memory, and the same columns by SciPy.

Run as ``python tests/benchmarks/graphs.py [SECTION ...] [--nodes N] [--degree D]``; without
sections all of them run. Stores go to a temporary folder: 1.7 GB for 20,000 nodes.

gram     all tiles of the diffusion kernel, its peak memory and what was planned
columns  some of its columns by the series, by SciPy's `expm_multiply`, and the difference
solve    some columns of the von Neumann kernel at 0.9 and 0.99 of its limit, and by SciPy's `splu`
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from records import parsed, parser_of, record
from scipy import sparse
from scipy.sparse.linalg import expm_multiply, splu

import dhsk
from dhsk.commands.outcome import TreeMemory
from dhsk.execution.workers import resources_of
from dhsk.gram.graph_functions import NodeColumns, coefficients
from dhsk.gram.graph_plan import plan_graph
from dhsk.gram.graph_spectrum import spectrum_of
from dhsk.kernels import NodeKernel
from dhsk.units import format_bytes

BETA = 0.5
MEMORY = "2GB"
COLUMNS = 256
SPLU_NODES = 4000  # its factors of a random graph are nearly dense


def graph(nodes: int, degree: float) -> Any:
    """Adjacency of a random graph with weights between 0 and 1."""
    rng = np.random.default_rng(0)
    A = sparse.random_array((nodes, nodes), density=degree / 2 / nodes, rng=rng)
    return sparse.csr_array(A + A.T)


def seconds(action: Callable[[], object]) -> float:
    """Time of one call, in seconds."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def gram(A: Any) -> None:
    """All tiles."""
    resources = resources_of(None, 2 * 10**9)
    planned = plan_graph(A.shape[0], A.nnz + A.shape[0], resources, "float64", None)
    with tempfile.TemporaryDirectory() as folder, TreeMemory() as tree:
        store = Path(folder) / "graph.gram"
        took = seconds(
            lambda: dhsk.graph_gram(A, beta=BETA, laplacian=True, store=store, memory=MEMORY)
        )
        again = seconds(
            lambda: dhsk.graph_gram(A, beta=BETA, laplacian=True, store=store, memory=MEMORY)
        )
        G = dhsk.open_gram(store)
        off = float(np.abs(G @ np.ones(A.shape[0]) - 1.0).max())
        size = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    what, peers = f"diffusion kernel of {G.shape[0]:,} nodes", {"allowed": 2.0}
    record("methods", what, took, "s")
    record("memory", what, tree.peak / 1e9, "GB", peers)
    print(
        f"gram: {G.shape[0]:,} nodes, {A.nnz:,} entries, tiles of {G.tiling.tile:,}: {took:.1f} s, "
        f"a second call {again:.1f} s; peak {format_bytes(tree.peak)}, planned "
        f"{format_bytes(planned.need.total)}, allowed {MEMORY}; {format_bytes(size)} on disk; row "
        f"sums off 1 by {off:.1e}"
    )


def unit_columns(nodes: int) -> Any:
    """The first columns of the identity."""
    units = np.zeros((nodes, COLUMNS))
    units[np.arange(COLUMNS), np.arange(COLUMNS)] = 1.0
    return units


def columns(A: Any) -> None:
    """Some columns of the exponential, by two methods in turn."""
    S, found = dhsk.negative_laplacian(A), np.empty((A.shape[0], COLUMNS))
    kernel, spectrum = NodeKernel("exponential", BETA), spectrum_of(S, tight=False)
    ours = seconds(lambda: NodeColumns(S, kernel, spectrum).fill(slice(0, COLUMNS), found))
    start = time.perf_counter()
    theirs = expm_multiply(BETA * S, unit_columns(A.shape[0]))
    scipys = time.perf_counter() - start
    what = f"{COLUMNS} columns of the diffusion kernel of {A.shape[0]:,} nodes"
    record("methods", what, ours, "s", {"scipy expm_multiply": scipys})
    print(
        f"columns: {COLUMNS} of exp({BETA} S): {len(coefficients(kernel, spectrum))} terms, "
        f"apart {np.abs(theirs - found).max():.1e}"
    )


def solve(A: Any) -> None:
    """Some columns of the inverse, by two methods."""
    spectrum, found = spectrum_of(A, tight=True), np.empty((A.shape[0], COLUMNS))
    for share in (0.9, 0.99):
        kernel = NodeKernel("von_neumann", share / spectrum.radius)
        start = time.perf_counter()
        NodeColumns(A, kernel, spectrum).fill(slice(0, COLUMNS), found)
        ours = time.perf_counter() - start
        print(
            f"solve: {COLUMNS} columns at {share} of 1/rho, "
            f"{len(coefficients(kernel, spectrum))} terms: {ours:.2f} s"
        )
    small = graph(SPLU_NODES, A.nnz / A.shape[0])
    beta = 0.9 / spectrum_of(small, tight=True).radius
    start = time.perf_counter()
    factors = splu(sparse.csc_matrix(sparse.eye_array(SPLU_NODES) - beta * small))
    filled = factors.L.nnz + factors.U.nnz
    print(
        f"solve: splu of {SPLU_NODES:,} nodes, {small.nnz:,} entries: "
        f"{time.perf_counter() - start:.2f} s and {filled:,} entries of its factors"
    )


SECTIONS = {"gram": gram, "columns": columns, "solve": solve}


def main() -> None:
    """Run the sections."""
    parser = parser_of(__doc__, SECTIONS)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--degree", type=float, default=10.0)
    given = parsed(parser)
    A = graph(given.nodes, given.degree)
    for name in given.sections or SECTIONS:
        SECTIONS[name](A)


if __name__ == "__main__":
    main()
