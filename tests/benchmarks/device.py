"""Speed of a GPU against all cores of its machine, and its errors, in one run.

Run as ``python tests/benchmarks/device.py SECTION ... [--n N] [--device cuda] [--data DIR]``; `DIR`
holds `mnist/mnist70k.npz` for `svm`. Each section computes the same on the device and, on fewer
samples where that would take minutes, on the processor; ratios are of times for a pair of samples.

==========  ====================================================================
errors      heat kernels at 100,000 pairs of unit rows against ball arithmetic
pass        one product of a matrix that is not stored with a vector, N x 784
svm         `HeatSVC` on 60,000 images of digits, and its predictions
pair        `HeatSVC` on two classes of 60,000 samples, nearly all support vectors
peers       one Gaussian SVM of these digits, and one of two classes of 60,000 samples, beside
            ThunderSVM and cuML, of those that are installed; `--limit` seconds each
ridge       `HeatKernelRidge` to 1e-6, N x 100
low-rank    `NystromRidge` of `--rank` features, N x 28, and `NystromSVC`
==========  ====================================================================
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import dhsk
from dhsk.arrays import Floats
from dhsk.devices import TF32, tf32_error
from dhsk.kernels.certified.series import POINT_BITS, heat_series

PAIRS = 100_000


def seconds(action: Callable[[], object]) -> float:
    """Time of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def values(dim: int, time: float, cosines: Floats) -> Floats:
    """Heat kernel in ball arithmetic."""
    series = heat_series(dim, time, 448)
    points = (round(c * 2.0**POINT_BITS) for c in cosines.tolist())
    return np.array([float(series.value(point).mid()) for point in points])


def errors(options: argparse.Namespace) -> None:
    """Largest error of values on the device against ball arithmetic, and of its inner products."""
    rng = np.random.default_rng(0)
    for dim, scale in ((3, 1.0), (28, 0.7), (784, 1.0), (784, 0.2)):
        kernel = dhsk.HeatKernel.at_scale(dim, scale)
        rows = rng.random((2000, dim)) ** 4
        X = np.asarray(dhsk.hyperspherical_map(rows))
        for dtype, bound in (("float64", kernel.error_bound.relative), ("float32", 4e-7)):
            own = X.astype(dtype)
            with dhsk.device(options.device):
                K = kernel.of_rows(own)
                cosines = dhsk.CosineKernel().of_rows(own)
            i, j = (rng.integers(0, len(X), PAIRS) for _ in range(2))
            exact = (own[i].astype(np.longdouble) * own[j]).sum(axis=1)
            of_products = np.abs(cosines[i, j] - exact)[i != j].max()
            # of values, given the cosines of the device
            at, found = cosines[i, j].astype(np.float64), K[i, j]
            parts = np.array_split(at, 64)
            with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
                true = np.concatenate(list(pool.map(partial(values, dim, kernel.time), parts)))
            off = np.abs(found - true)
            off = (off / true).max() if dtype == "float64" else off.max()
            in_all = np.abs(found - kernel.of_cosine(exact.astype(np.float64)))[i != j].max()
            rounded = options.device.startswith(TF32) and dtype == "float32"
            least = tf32_error(dim) if rounded else dim * float(np.finfo(dtype).eps)
            print(
                f"  dim {dim}, scale {scale}, {dtype}: values off by {off:.1e} (proven"
                f" {bound:.1e}), cosines by {float(of_products):.1e} ({least:.1e} at most), values"
                f" in all by {in_all:.1e}",
                flush=True,
            )


def one_pass(options: argparse.Namespace) -> None:
    """Product with a vector, by rows of 784 numbers."""
    rng = np.random.default_rng(0)
    X = rng.random((options.n, 784), dtype=np.float32)
    for dtype in options.dtype.split(","):
        rates = {}
        for which, n in ((options.device, options.n), ("cpu", min(options.n, 30_000))):
            v = rng.random(n)
            with dhsk.device(which):
                few = dhsk.compute_gram(X[:2000], "heat", dtype=dtype, product_dtype=dtype)
                few @ v[:2000]  # compiles
                begun = time.perf_counter()
                G = dhsk.compute_gram(X[:n], "heat", dtype=dtype, product_dtype=dtype)
                opened = time.perf_counter() - begun
                took, next_took = (seconds(partial(G.__matmul__, v)) for _ in range(2))
            rates[which] = took / n**2
            print(
                f"  {dtype}, {which}: N = {n:,}: {opened:.1f} s to read and check samples,"
                f" {took:.2f} s for a pass, {next_took:.2f} s for another",
                flush=True,
            )
        print(f"  {dtype}: the device takes {rates[options.device] / rates['cpu']:.4f} of the time")


def svm(options: argparse.Namespace) -> None:
    """Exact SVM of all pairs of digits, and its predictions of the test images."""
    X, y, X_test, y_test, _ = of_digits(options.data)
    if options.n < len(X):
        X, y = X[: options.n], y[: options.n]
    model = dhsk.HeatSVC(C=10.0, time_scale=0.7, dtype="float32", memory="32GB")
    for which in (options.device, "cpu", options.device):
        with dhsk.device(which):
            trained = seconds(partial(model.fit, X, y))
            predicted = seconds(partial(model.predict, X_test))
            wrong = 1 - model.score(X_test, y_test)
        print(
            f"  {which}: trained in {trained:.2f} s, {len(model.support_):,} support vectors;"
            f" 10,000 predicted in {predicted:.2f} s, {wrong:.2%} wrong",
            flush=True,
        )


def pair(options: argparse.Namespace) -> None:
    """Exact SVM of two classes that overlap."""
    rng, n = np.random.default_rng(0), min(options.n, 60_000)
    X = rng.random((n, 20))
    y = (np.sin(3 * X @ rng.normal(size=20)) > 0) ^ (rng.random(n) < 0.02)
    model = dhsk.HeatSVC(C=10.0, time_scale=0.7, dtype="float32", memory="64GB")
    for which in (options.device, options.device, "cpu"):
        with dhsk.device(which):
            trained = seconds(partial(model.fit, X, y))
        print(
            f"  {which}: N = {n:,}: trained in {trained:.2f} s, {len(model.support_):,} support"
            f" vectors, {model.n_iter_.max():,} steps",
            flush=True,
        )


def of_digits(data: str) -> tuple[Any, Any, Any, Any, float]:
    """Images of digits from 0 to 1 with labels, those of the test, and scikit-learn's "scale"."""
    with np.load(Path(data) / "mnist" / "mnist70k.npz") as file:
        X, y, X_test, y_test = (file[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    X, X_test = (np.float32(one).reshape(len(one), -1) / np.float32(255) for one in (X, X_test))
    return X, y.astype(int), X_test, y_test.astype(int), 1 / (784 * float(X.var()))


def of_two_classes(data: str, roughness: float = 1.0) -> tuple[Any, Any, Any, Any, float]:
    """Two classes with a smooth boundary, 1 label of 50 wrong."""
    rng, n = np.random.default_rng(0), 70_000
    X = rng.random((n, 20), dtype=np.float32)
    y = ((np.sin(roughness * X @ rng.normal(size=20)) > 0) ^ (rng.random(n) < 0.02)).astype(int)
    return X[:60_000], y[:60_000], X[60_000:], y[60_000:], 1 / (X.shape[1] * X.var())


PEERS = {"cuML": "cuml.svm", "ThunderSVM": "thundersvm"}
PROBLEMS: dict[str, Callable[[str], tuple[Any, Any, Any, Any, float]]] = {
    "digits": of_digits,
    "two classes": of_two_classes,
    "rough": partial(of_two_classes, roughness=3),
}


def of_peer(name: str, gamma: float) -> Any:
    """A Gaussian SVM with C of 10, in float32."""
    if name == "dhsk":
        kernel = dhsk.GaussianKernel((2 * gamma) ** -0.5)
        return dhsk.HeatSVC(C=10.0, kernel=kernel, dtype="float32", memory="32GB")
    return import_module(PEERS[name]).SVC(C=10.0, gamma=gamma)


def one_peer(name: str, problem: str, options: argparse.Namespace) -> None:
    """Two fits and predictions by one library, in a process of its own: the first one compiles."""
    X, y, X_test, y_test, gamma = PROBLEMS[problem](options.data)
    try:
        model = of_peer(name, gamma)
    except ImportError as error:
        print(f"  {problem}, {name}: not installed ({error})", flush=True)
        return
    with dhsk.device(options.device):
        for _ in range(2):
            trained = seconds(partial(model.fit, X, y))
            begun = time.perf_counter()
            wrong = np.mean(np.asarray(model.predict(X_test)).astype(int) != y_test)
            predicted = time.perf_counter() - begun
            print(
                f"  {problem}, {name}: trained in {trained:.2f} s, 10,000 predicted in"
                f" {predicted:.2f} s, {wrong:.2%} wrong, {len(model.support_):,} support vectors",
                flush=True,
            )


def peers(options: argparse.Namespace) -> None:
    """The same problems by each library."""
    for problem in PROBLEMS:
        for name in ("dhsk", *PEERS):
            task = get_context("spawn").Process(target=one_peer, args=(name, problem, options))
            task.start()
            task.join(options.limit)
            if task.is_alive():
                task.kill()
                print(f"  {problem}, {name}: over {options.limit:.0f} s: stopped", flush=True)
            elif task.exitcode:
                print(f"  {problem}, {name}: failed, exit status {task.exitcode}", flush=True)


def ridge(options: argparse.Namespace) -> None:
    """Ridge regression to a relative residual of 1e-6."""
    rng = np.random.default_rng(0)
    X = rng.random((options.n, 100))
    y = np.sin(X @ rng.normal(size=100)) + 0.1 * rng.normal(size=options.n)
    for which, n in ((options.device, options.n), ("cpu", min(options.n, 20_000))):
        model = dhsk.HeatKernelRidge(
            options.alpha, tol=1e-6, max_iter=options.passes, memory="48GB"
        )
        with dhsk.device(which):
            took = seconds(partial(model.fit, X[:n], y[:n]))
        print(
            f"  {which}: N = {n:,}: {took:.1f} s, {model.n_iter_} passes, residual"
            f" {model.residual_:.1e}, rank {model.rank_} of the preconditioner",
            flush=True,
        )


def low_rank(options: argparse.Namespace) -> None:
    """Least squares and an SVM of two classes on features of uniform landmarks."""
    rng = np.random.default_rng(0)
    X = rng.random((options.n, 28), dtype=np.float32)
    y = np.sin(2 * X @ rng.normal(size=28)) + 0.1 * rng.normal(size=options.n)
    held, k = options.n // 10, options.rank
    how: dict[str, Any] = {
        "selection": "uniform",
        "dtype": "float32",
        "memory": "64GB",
        "random_state": 0,
    }
    models = {
        "ridge": (dhsk.NystromRidge(k, 1e-2, **how), y),
        "SVM": (dhsk.NystromSVC(k, **how), (y > 0).astype(int)),
    }
    for name, (model, target) in models.items():
        for which, n in ((options.device, options.n), ("cpu", min(options.n, 50_000))):
            with dhsk.device(which):
                took = seconds(partial(model.fit, X[held:n], target[held:n]))
                score = model.score(X[:held][:100_000], target[:held][:100_000])
            print(
                f"  {name}, {which}: N = {n:,}, {k:,} features: {took:.1f} s, score {score:.4f}",
                flush=True,
            )


SECTIONS = {
    "errors": errors,
    "pass": one_pass,
    "svm": svm,
    "pair": pair,
    "peers": peers,
    "ridge": ridge,
    "low-rank": low_rank,
}


def main() -> None:
    """Run the sections that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", choices=SECTIONS, metavar="SECTION")
    parser.add_argument("--n", type=int, default=1_000_000, help="samples")
    parser.add_argument("--alpha", type=float, default=50.0, help="of `ridge`")
    parser.add_argument("--rank", type=int, default=10_000, help="of `low-rank`")
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--dtype", default="float32,float64", help="types of a pass")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data", default=".")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of each of `peers`")
    options = parser.parse_args()
    for name in options.sections or SECTIONS:
        print(f"{name}:", flush=True)
        SECTIONS[name](options)


if __name__ == "__main__":
    main()
