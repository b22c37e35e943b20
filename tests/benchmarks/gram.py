"""Speed of the Gram engine, as ratios against what the hardware does in the same run.

Run as ``python tests/benchmarks/gram.py [SECTION ...] [--data DIR]``; without sections all run.
Each prints what it measured and the ratio to its floor. The floors are plain numpy on all cores:
the products of the same tiles, and the same bytes in as many files, each flushed to the disk.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from scipy.sparse import csr_array, csr_matrix, save_npz

import dhsk
from dhsk.gram.storage.tiling import Tiling

DIM = 393
SINGLE: dict[str, Any] = {"dtype": "float32", "product_dtype": "float32"}


def seconds(action: Callable[[], object]) -> float:
    """Time of one call, in seconds."""
    os.sync()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def best(
    actions: dict[str, Callable[[], object]], repeats: int = 3, folder: Path | None = None
) -> dict[str, float]:
    """Shortest time of each action; they take turns, so that all see the same neighbours.

    What the action before left in a folder is removed first, untimed: that takes 0.2 s a GB.
    """
    found = dict.fromkeys(actions, float("inf"))
    for _ in range(repeats):
        for name, action in actions.items():
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            found[name] = min(found[name], seconds(action))
    return found


def counts(n: int, dim: int = DIM) -> NDArray[np.float32]:
    """Made-up counts without a zero row."""
    rng = np.random.default_rng(0)
    return rng.poisson(1.0, (n, dim)).astype(np.float32) + np.float32(0.01)


def triangle(unit: NDArray[Any], tiling: Tiling) -> Iterator[NDArray[Any]]:
    """Products of all tiles of a triangle, one after the other in the same array."""
    out = np.empty((tiling.tile, tiling.tile), unit.dtype)
    for i, j in tiling.tiles():
        rows, cols = unit[tiling.rows(i)], unit[tiling.cols(j)]
        yield np.matmul(rows, cols.T, out=out[: len(rows), : len(cols)])


def multiply_all(unit: NDArray[Any], tiling: Tiling) -> None:
    """All products, dropped."""
    for _ in triangle(unit, tiling):
        pass


def write_raw(folder: Path, tiling: Tiling, dtype: str) -> None:
    """As many bytes in as many files as a store of these tiles has, flushed."""
    folder.mkdir()
    tile = np.random.default_rng(0).random((tiling.tile, tiling.tile)).astype(dtype)
    for number in range(tiling.n_tiles):
        with (folder / str(number)).open("wb", buffering=0) as file:
            file.write(tile.data)
            os.fsync(file.fileno())


def by_dask(X: NDArray[Any], kernel: dhsk.HeatKernel, path: Path) -> None:
    """What people write: all of K, by a series of twelve levels in numpy, to zarr."""
    unit = da.from_array(dhsk.hyperspherical_map(X).astype(np.float32), chunks=(2000, X.shape[1]))

    def series(c: NDArray[Any]) -> NDArray[Any]:
        before, polynomial, value = np.ones_like(c), c, 1 + c
        for level in range(1, 12):
            step = (2 * level + kernel.dim - 2) * c * polynomial - level * before
            before, polynomial = polynomial, step / (level + kernel.dim - 2)
            value = value + polynomial
        return value

    (unit @ unit.T).map_blocks(series, dtype=np.float32).to_zarr(str(path))


def to_disk(_: argparse.Namespace) -> None:
    """Wall time of 20,000 samples against the slower of product and disk, and against dask."""
    X = counts(20_000)
    kernel = dhsk.HeatKernel.at_scale(DIM, 0.7)
    with tempfile.TemporaryDirectory() as name, dhsk.connect() as client:
        folder = Path(name) / "out"

        def compute(**options: Any) -> dhsk.GramMatrix:
            return dhsk.compute_gram(X, kernel, store=folder, client=client, **options)

        tiling = compute(**SINGLE).tiling
        unit: Any = dhsk.hyperspherical_map(X).astype(np.float32)

        found = best(
            {
                "product": lambda: multiply_all(unit, tiling),
                "product, float64": lambda: multiply_all(unit.astype(np.float64), tiling),
                "write": lambda: write_raw(folder, tiling, "float32"),
                "dhsk": lambda: compute(**SINGLE),
                "dhsk, float64 products": lambda: compute(dtype="float32"),
            },
            repeats=5,
            folder=folder,
        ) | best({"dask": lambda: by_dask(X, kernel, folder)}, repeats=1, folder=folder)
    for what, time_taken in found.items():
        print(f"  {what:<24} {time_taken:6.2f} s")
    floor = max(found["product"], found["write"])
    floor64 = max(found["product, float64"], found["write"])
    peers = {"products or disk alone": floor, "dask's map_blocks": found["dask"]}
    record("gram", "20,000 samples to the disk, float32", found["dhsk"], "s", peers, runs=5)
    what, own = "20,000 samples to the disk, float64 products", found["dhsk, float64 products"]
    record("gram", what, own, "s", {"products or disk alone": floor64}, runs=5)


def several(_: argparse.Namespace) -> None:
    """Seven time scales from one product against one, nothing stored."""
    X = counts(12_000)
    kernels = [dhsk.HeatKernel.at_scale(DIM, s) for s in (0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)]
    v = np.ones(len(X), np.float32)
    for options in (SINGLE, {}):
        grams = dhsk.compute_gram(X, kernels, **options)
        one = dhsk.compute_gram(X, kernels[2], **options)
        found = best({"seven": lambda g=grams: g @ v, "one": lambda g=one: g @ v}, repeats=4)  # type: ignore[misc]
        what = f"seven time scales in one pass, {options.get('product_dtype', 'float64')}"
        record("gram", what, found["seven"], "s", {"one time scale": found["one"]}, runs=4)


def growth(_: argparse.Namespace) -> None:
    """Cost of an entry at 10,000 and at 40,000 samples."""
    kernel = dhsk.HeatKernel.at_scale(DIM, 0.7)
    per_entry = {}
    with tempfile.TemporaryDirectory() as name, dhsk.connect() as client:
        folder = Path(name) / "out"
        for n in (10_000, 40_000):
            X = counts(n)

            def compute(X: Any = X) -> None:
                dhsk.compute_gram(X, kernel, store=folder, client=client, **SINGLE)

            found = best({"all": compute}, repeats=4, folder=folder)  # the first starts things
            per_entry[n] = found["all"] / (n * n / 2) * 1e9
    peers = {"at 10,000 samples": per_entry[10_000]}
    record(
        "gram",
        "an entry to the disk, 40,000 samples",
        per_entry[40_000],
        "ns an entry",
        peers,
        runs=4,
    )


def recompute(_: argparse.Namespace) -> None:
    """G @ V by recomputation against the products alone."""
    X, k = counts(50_000), 16
    kernel = dhsk.HeatKernel.at_scale(DIM, 0.7)
    V = np.random.default_rng(1).normal(size=(len(X), k)).astype(np.float32)
    with dhsk.connect():
        G = dhsk.compute_gram(X, kernel, **SINGLE)
        unit: Any = dhsk.hyperspherical_map(X).astype(np.float32)
        tiling = G.tiling

        def floor() -> None:
            for (i, j), tile in zip(tiling.tiles(), triangle(unit, tiling), strict=True):
                tile @ V[tiling.cols(j)]
                if i != j:
                    tile.T @ V[tiling.rows(i)]

        found = best({"products alone": floor, "G @ V": lambda: G @ V}, repeats=2)
    peers = {"products alone": found["products alone"]}
    record("gram", f"G @ V, 50,000 samples, {k} columns", found["G @ V"], "s", peers, runs=2)


def sparse(arguments: argparse.Namespace) -> None:
    """20 Newsgroups, all words, against scipy's product and a numpy kernel."""
    file = Path(arguments.data or "", "newsgroups", "20news_bydate.tsv.gz")
    if not arguments.data or not file.exists():
        print("20 Newsgroups: skipped, it needs --data DIR with newsgroups/20news_bydate.tsv.gz")
        return
    X = word_counts(file)
    kernel = dhsk.HeatKernel.at_scale(X.shape[1], 1.0)
    unit: Any = dhsk.hyperspherical_map(X)

    def peer() -> None:
        c = (unit @ unit.T).toarray()
        np.exp(-(np.arccos(np.clip(c, -1, 1)) ** 2) / (4 * kernel.time))

    with tempfile.TemporaryDirectory() as name, dhsk.connect() as client:

        def compute() -> None:
            dhsk.compute_gram(X, kernel, store=Path(name) / "g", dtype="float32", client=client)

        found = best({"dhsk": compute, "scipy": peer}, repeats=1)
        save_npz(Path(name) / "posts.npz", csr_matrix(X))
        command = f"-m dhsk gram {name}/posts.npz --out {name}/c --dtype float32 --memory 1GB"
        subprocess.run([sys.executable, *command.split()], check=True)  # its last table has memory
    what = f"{X.shape[0]:,} posts with all {X.shape[1]:,} words"
    record("gram", what, found["dhsk"], "s", {"scipy product, kernel by numpy": found["scipy"]})


def word_counts(file: Path) -> "csr_array[Any, tuple[int, int]]":
    """Counts of every word in every post that has one."""
    from sklearn.feature_extraction.text import CountVectorizer

    with gzip.open(file, "rt") as lines:
        texts = [line.split("\t", 3)[3] for line in lines]
    X = csr_array(CountVectorizer(dtype=np.float64).fit_transform(texts))
    return X[np.flatnonzero(np.diff(X.indptr))]


SECTIONS = {
    "disk": to_disk,
    "several": several,
    "growth": growth,
    "recompute": recompute,
    "sparse": sparse,
}


def main() -> None:
    """Run the sections asked for."""
    arguments = parsed(parser_of(__doc__, SECTIONS, data=True))
    for name in arguments.sections or SECTIONS:
        SECTIONS[name](arguments)


if __name__ == "__main__":
    main()
