"""Speed of predictions as ratios to the products alone, and their memory, in one run.

Run as ``python tests/benchmarks/predict.py [SECTION ...] [--data DIR]``; without sections all run.
`DIR` holds `mnist/mnist70k.npz` for `mnist`; the other sections make their data with a seed. Models
are not trained: their support vectors are samples, and their coefficients random numbers.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import dhsk
from dhsk.commands.outcome import TreeMemory
from dhsk.models.exact import Certificates, Expansion, SvcModel
from dhsk.models.files import save_model

ROWS, COLUMNS = 1024, 4096
"""Samples and support vectors in a block of products."""


def seconds(action: Callable[[], object], repeats: int = 1) -> float:
    """Time of the fastest call, in seconds."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return min(taken)


def model_of(X: NDArray[Any], k: int, dtype: str, **options: Any) -> dhsk.HeatSVC:
    """A classifier of k classes whose support vectors are X."""
    rng, n = np.random.default_rng(0), len(X)
    pairs = k * (k - 1) // 2
    ones = np.ones(pairs)
    rows: Any = dhsk.hyperspherical_map(X.astype(np.float64))
    model = SvcModel(
        kernel=dhsk.HeatKernel.at_scale(X.shape[1], 0.7),
        sphere_map="hyperspherical",
        classes=np.arange(k),
        rows=rows.astype(dtype),
        expansion=Expansion(
            support=np.arange(n),
            n_support=np.bincount(np.arange(n) % k),
            dual_coef=rng.normal(size=(k - 1, n)),
            intercepts=rng.normal(size=pairs),
        ),
        certificates=Certificates(ones, ones, ones, ones, ones.astype(int), ones > 0, 1e-3, 1.0),
    )
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, Path(folder) / "model")
        loaded = dhsk.HeatSVC.load(Path(folder) / "model")
    loaded.set_params(**options)
    return loaded


def products(X: NDArray[Any], support: NDArray[Any], dtype: str) -> None:
    """Products of all samples and support vectors by blocks, dropped, on all cores."""
    rows, columns = X.astype(dtype), support.astype(dtype)
    threads = os.cpu_count() or 1
    free = [np.empty((ROWS, COLUMNS), dtype) for _ in range(threads)]

    def of_block(first: int) -> None:
        out, part = free.pop(), rows[first : first + ROWS]
        for start in range(0, len(columns), COLUMNS):
            some = columns[start : start + COLUMNS]
            np.matmul(part, some.T, out=out[: len(part), : len(some)])
        free.append(out)

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        list(pool.map(of_block, range(0, len(rows), ROWS)))


def counts(n: int, dim: int, seed: int) -> NDArray[Any]:
    """Counts of a mixture of topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(dim, 0.1), 20)
    return np.asarray(rng.poisson(30.0 * topics[rng.integers(0, 20, n)]) + 1e-3)


def compare(name: str, model: dhsk.HeatSVC, X: NDArray[Any], dtype: str) -> None:
    """Print the ratio of prediction and products, each measured three times in turn."""
    support = np.asarray(model.support_vectors_)
    model.predict(X[:ROWS])
    turns = [
        (seconds(lambda: model.predict(X)), seconds(lambda: products(X, support, dtype)))
        for _ in range(3)
    ]
    taken, alone = sorted(turns, key=lambda turn: turn[0] / turn[1])[1]
    what = f"predict {len(X):,} x {X.shape[1]} on {len(support):,} support vectors, {name}, {dtype}"
    record("svm", what, taken, "s", {"products alone": alone}, runs=3)


def to_mnist(options: argparse.Namespace) -> None:
    """Test images on 10,000 of the training images."""
    with np.load(options.data / "mnist" / "mnist70k.npz") as file:
        X, X_test = (file[name].reshape(-1, 784) for name in ("X_train", "X_test"))
    for dtype in ("float64", "float32"):
        compare("MNIST", model_of(X[:10_000], 10, dtype), X_test, dtype)


def to_counts(options: argparse.Namespace) -> None:
    """Two classes with few support vectors, and twenty with many."""
    del options
    for n_sv, k, n in ((300, 2, 200_000), (10_000, 20, 20_000)):
        compare(f"counts of {k} classes", model_of(counts(n_sv, 100, 0), k, "float64"),
                counts(n, 100, 1), "float64")  # fmt: skip


def to_small(options: argparse.Namespace) -> None:
    """Digits, one and all."""
    del options
    X, y = load_digits(return_X_y=True)
    model = dhsk.HeatSVC(C=10.0, time_scale=0.5).fit(X, y)
    for n in (1, 100, len(X)):
        taken = seconds(lambda n=n: model.predict(X[:n]), 30)  # type: ignore[misc]
        record("svm", f"predict {n:,} digits", 1e3 * taken, "ms", runs=30)


def to_memory(options: argparse.Namespace) -> None:
    """200,000 samples, 30,000 support vectors and 190 pairs within 1 GB, here and on workers."""
    del options
    n, n_sv, k = 200_000, 30_000, 20
    model = model_of(counts(n_sv, 50, 0), k, "float64", memory="1GB")
    X = counts(n, 50, 1)
    with TreeMemory() as memory:
        here = seconds(lambda: model.predict(X))
    expected = model.predict(X[:20_000])
    print(
        f"{n:,} x {n_sv:,} with {k} classes: {here:.1f} s in this process, "
        f"{memory.peak / 1e9:.2f} GB at the peak, 1 GB allowed; its matrix has "
        f"{8 * n * n_sv / 1e9:.0f} GB, all decisions {4 * n * k * (k - 1) / 1e9:.2f} GB",
        flush=True,
    )
    with dhsk.connect("local", n_workers=2) as client:
        model.set_params(client=client, memory="2GB")
        with TreeMemory() as memory:
            same = np.array_equal(model.predict(X[:20_000]), expected)
        ratios = []
        for _ in range(3):
            there = seconds(lambda: model.set_params(client=client).predict(X[:20_000]))
            ratios.append(
                there / seconds(lambda: model.set_params(client=None).predict(X[:20_000]))
            )
    print(
        f"20,000 of them on two workers: {np.median(ratios):.2f} times the time in this process, "
        f"{memory.peak / 1e9:.2f} GB for all processes, 2 GB allowed; "
        f"{'the same labels' if same else 'OTHER LABELS'}"
    )


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "mnist": to_mnist,
    "counts": to_counts,
    "small": to_small,
    "memory": to_memory,
}


def main() -> None:
    """Run the sections asked for."""
    parser = parser_of(__doc__, SECTIONS, data=True)
    options = parsed(parser)
    if options.data is None and (not options.sections or "mnist" in options.sections):
        parser.error("give --data DIR or set DHSK_DATA")
    for section in options.sections or SECTIONS:
        print(f"{section}:", flush=True)
        SECTIONS[section](options)


if __name__ == "__main__":
    main()
