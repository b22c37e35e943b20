"""Leading eigenpairs of a matrix that is computed anew, against SciPy on the matrix in memory.

Run as ``python tests/benchmarks/spectra.py [--n 20000] [--k 20] [--memory 3GB] [--samples ...]``.
Each method runs in a process of its own, one after the other, and its peak is that of the whole
process. ARPACK (`eigsh`) and `lobpcg`, in blocks of as many vectors as ours, get the centred matrix
in float64, which takes n^2 * 8 bytes; the time to make it does not count. All are held to residuals
of `--tol` relative to the largest eigenvalue. A product is one of the matrix with one vector or
with a block: a pass, where the matrix is computed anew.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg

import dhsk
from dhsk.solvers.eigenpairs import block_width

DIM, TOPICS = 393, 30
PEER = "eigsh on the matrix in memory"


def mixtures(n: int) -> NDArray[np.float64]:
    """Counts of words in made-up texts, each of a few topics."""
    rng = np.random.default_rng(0)
    common = rng.gamma(0.3, 1.0, DIM)
    topics = rng.dirichlet(np.full(DIM, 0.05), TOPICS)
    shares = rng.dirichlet(np.full(TOPICS, 0.1), n)
    words = 0.5 * common / common.sum() + 0.5 * shares @ topics
    lengths = rng.integers(60, 300, (n, 1))
    X: NDArray[np.float64] = rng.poisson(words * lengths).astype(np.float64)
    X[X.sum(axis=1) == 0, 0] = 1.0
    return X


def noise(n: int) -> NDArray[np.float64]:
    """Counts without structure: no eigenvalue stands out."""
    rng = np.random.default_rng(0)
    X: NDArray[np.float64] = rng.poisson(rng.gamma(0.5, 1.0, DIM), (n, DIM)).astype(np.float64)
    X[X.sum(axis=1) == 0, 0] = 1.0
    return X


SAMPLES = {"mixtures": mixtures, "noise": noise}


def peak_gb() -> float:
    """Largest resident memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def ours(options: argparse.Namespace) -> dict[str, Any]:
    """Eigenpairs of the centred view; nothing is stored but the samples."""
    X = SAMPLES[options.samples](options.n)
    G = dhsk.compute_gram(X, "heat", memory=options.memory)
    del X
    calls = 0
    multiply = dhsk.GramMatrix.__matmul__

    def counted(self: Any, V: Any) -> Any:
        nonlocal calls
        calls += 1
        return multiply(self, V)

    dhsk.GramMatrix.__matmul__ = counted  # type: ignore[method-assign]
    start = time.perf_counter()
    values, _, residuals = G.centered().eigh(options.k, tol=options.tol, memory=options.memory)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "products": calls,
        "residual": float(residuals.max()),
        "values": values.tolist(),
        "peak_gb": peak_gb(),
    }


def centred_matrix(options: argparse.Namespace) -> NDArray[np.float64]:
    """The same matrix in memory."""
    X = SAMPLES[options.samples](options.n)
    K = np.empty((options.n, options.n))
    G = dhsk.compute_gram(X, "heat")
    for i, j in G.tiling.tiles():
        rows, cols = G.tiling.rows(i), G.tiling.cols(j)
        K[rows, cols] = G[rows, cols]
        K[cols, rows] = K[rows, cols].T
    means = K.mean(axis=0)
    K -= means
    K -= (means - means.mean())[:, None]
    return K


def scipys(options: argparse.Namespace, solve: Callable[..., tuple[Any, Any]]) -> dict[str, Any]:
    """Eigenpairs of the matrix in memory, ascending, by a function of an operator."""
    K, calls = centred_matrix(options), 0

    def product(V: Any) -> Any:
        nonlocal calls
        calls += 1
        return K @ V

    start = time.perf_counter()
    operator = LinearOperator(K.shape, matvec=product, matmat=product, dtype=K.dtype)
    values, vectors = solve(operator, options)
    seconds = time.perf_counter() - start
    lacking = np.linalg.norm(K @ vectors - vectors * values, axis=0)
    return {
        "seconds": seconds,
        "products": calls,
        "residual": float(lacking.max() / values.max()),
        "values": values[::-1].tolist(),
        "peak_gb": peak_gb(),
    }


def by_arpack(operator: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    """Products with single vectors."""
    return eigsh(operator, options.k, which="LA", tol=options.tol)


def by_lobpcg(operator: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    """Products with blocks; its tolerance is absolute, so it is told the largest eigenvalue."""
    start = np.random.default_rng(0).normal(size=(options.n, block_width(options.k)))
    values, vectors = lobpcg(operator, start, tol=options.tol * options.largest, maxiter=200)
    order = np.argsort(values)[-options.k :]
    return values[order], vectors[:, order]


METHODS: dict[str, Callable[..., dict[str, Any]]] = {
    "ours": ours,
    "arpack": partial(scipys, solve=by_arpack),
    "lobpcg": partial(scipys, solve=by_lobpcg),
}


def main() -> None:
    """Run all, and print one line each and the ratio to ARPACK."""
    parser = parser_of(__doc__)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--samples", choices=SAMPLES, default="mixtures")
    parser.add_argument("--method", choices=METHODS, help="run one of them in this process")
    parser.add_argument("--largest", type=float, default=1.0, help="for lobpcg: the eigenvalue")
    options = parsed(parser)
    if options.method:
        warnings.simplefilter("ignore")  # lobpcg's, where it stops at its tolerance
        print(json.dumps(METHODS[options.method](options)))
        return
    found: dict[str, dict[str, Any]] = {}
    for method in METHODS:
        command = [sys.executable, __file__, *sys.argv[1:], "--method", method]
        if found:
            command += ["--largest", str(found["ours"]["values"][0])]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[method] = json.loads(said.splitlines()[-1])
        print(
            "{:6} {seconds:6.1f} s, {products} products, residual {residual:.1e}, "
            "peak {peak_gb:.2f} GB".format(method, **found[method]),
            flush=True,
        )
    values = [np.array(found[method]["values"]) for method in METHODS]
    difference = max(np.abs(own - values[0]).max() for own in values[1:]) / values[0][0]
    print(f"largest difference of eigenvalues {difference:.1e}")
    kind = "mixtures" if options.samples == "mixtures" else f"of {options.samples}"
    what, ours, theirs = (
        f"{options.k} eigenpairs, {options.n:,} {kind}",
        found["ours"],
        found["arpack"],
    )
    record("methods", what, ours["seconds"], "s", {PEER: theirs["seconds"]})
    record("memory", what, ours["peak_gb"], "GB", {PEER: theirs["peak_gb"]})


if __name__ == "__main__":
    main()
