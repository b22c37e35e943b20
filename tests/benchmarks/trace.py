"""Trace error of landmarks, against the best possible and against uniform ones.

Run as ``python tests/benchmarks/trace.py [SECTION ...] --data DIR [--time-scale 1.0]``; without
sections all run. The folder holds `mnist/mnist70k.npz`, `tcga/tcga_mc3_counts.npz` and what
`svm.py` needs of WebKB. The best possible is what the k largest eigenvalues leave, which LAPACK
finds of every data set but MNIST as a whole; of MNIST it is every tenth training image.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from scipy.sparse import csr_array
from svm import webkb

import dhsk
from dhsk.gram.row_map import RowMap
from dhsk.nystrom.approximation import approximate
from dhsk.results.low_rank import LowRank
from dhsk.samples import open_samples

RANKS = (100, 300, 1000)
MIDDLE = 300
"""The rank that is kept; of several landmarks for each feature the most, as by default."""
SEEDS = 3
BAR = 1.3
"""Greatest ratio to the best possible that is asked of randomly pivoted Cholesky."""

WAYS = [
    ("rpcholesky", 1), ("rpcholesky", 2), ("rpcholesky", 3),
    ("uniform", 1), ("uniform", 3), ("kmeans", 1),
]  # fmt: skip
"""Selections, and landmarks for each feature."""


def images(data: Path) -> NDArray[Any]:
    """Training images of MNIST."""
    with np.load(data / "mnist" / "mnist70k.npz") as file:
        return np.asarray(file["X_train"]).reshape(-1, 784)


def mutations(data: Path) -> Any:
    """Mutations of genes in tumours, (tumours, genes), those without any left out."""
    with np.load(data / "tcga" / "tcga_mc3_counts.npz", allow_pickle=False) as file:
        parts = (file["data"], file["indices"], file["indptr"])
        X = csr_array(parts, shape=tuple(file["shape"]))
    return X[np.flatnonzero(np.asarray(X.sum(axis=1)).ravel())]


def errors(X: Any, time_scale: float, way: tuple[str, float], dtype: str, k: int) -> list[float]:
    """Trace errors of a few seeds."""
    kernel = dhsk.HeatKernel.at_scale(X.shape[1], time_scale)
    row_map = RowMap(kernel, "hyperspherical", dtype)
    selection, factor = way
    return [
        approximate(open_samples(X), row_map, LowRank(k, selection, factor), seed=seed).trace_error
        for seed in range(SEEDS)
    ]


def left_by_best(X: Any, time_scale: float) -> NDArray[np.float64]:
    """Relative trace error of the best approximation of each rank."""
    kernel = dhsk.HeatKernel.at_scale(X.shape[1], time_scale)
    values = np.linalg.eigvalsh(kernel(dhsk.hyperspherical_map(X)))[::-1]
    return np.asarray(1 - np.cumsum(values) / values.sum())


def against_best(name: str, X: Any, time_scale: float) -> None:
    """Print the mean error of every way as a multiple of the best possible."""
    best = left_by_best(X, time_scale)
    print(f"{name}, {X.shape[0]:,} x {X.shape[1]:,}, time scale {time_scale:g}")
    print("  multiples of the best possible  " + "".join(f"{f'k = {k}':>18}" for k in RANKS))
    print("  best possible                   " + "".join(f"{best[k - 1]:18.4f}" for k in RANKS))
    told: dict[tuple[str, int], float] = {}
    for way in WAYS:
        start = time.perf_counter()
        cells = ""
        for k in RANKS:
            found = errors(X, time_scale, way, "float64", k)
            ratio = told[way[0], k] = float(np.mean(found)) / best[k - 1]
            spread = np.ptp(found) / best[k - 1]
            missed = "*" if way[0] == "rpcholesky" and ratio > BAR else " "
            cells += f"{ratio:9.3f}{missed}+-{spread / 2:5.3f} "
        seconds = (time.perf_counter() - start) / SEEDS
        print(f"  {way[0]:<10} {way[1]} landmarks each  {cells} {seconds:6.1f} s", flush=True)
    peers = {"uniform landmarks": told["uniform", MIDDLE]}
    what = f"trace error of {MIDDLE} landmarks, {name}"
    record(
        "low_rank", what, told["rpcholesky", MIDDLE], "times the best possible", peers, runs=SEEDS
    )


def to_mnist(options: argparse.Namespace) -> None:
    """Every tenth image, and all of them, where uniform landmarks are the measure."""
    X = images(options.data)
    against_best("MNIST, every tenth", X[::10], options.time_scale)
    print(f"MNIST, {len(X):,} x {X.shape[1]}, float32: trace error")
    for way in (("rpcholesky", 1), ("rpcholesky", 3), ("uniform", 1)):
        cells = "".join(
            f"{np.mean(errors(X, options.time_scale, way, 'float32', k)):12.5f}" for k in RANKS
        )
        print(f"  {way[0]:<10} {way[1]} landmarks each  {cells}", flush=True)


def to_webkb(options: argparse.Namespace) -> None:
    """Word counts of web pages."""
    against_best("WebKB", webkb(options.data)[0], options.time_scale)


def to_tcga(options: argparse.Namespace) -> None:
    """Mutation counts of tumours."""
    against_best("TCGA", mutations(options.data), options.time_scale)


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "webkb": to_webkb,
    "tcga": to_tcga,
    "mnist": to_mnist,
}


def main() -> None:
    """Run the sections asked for."""
    parser = parser_of(__doc__, SECTIONS, data=True)
    parser.add_argument("--time-scale", type=float, default=1.0)
    options = parsed(parser)
    for name in options.sections or SECTIONS:
        SECTIONS[name](options)


if __name__ == "__main__":
    main()
