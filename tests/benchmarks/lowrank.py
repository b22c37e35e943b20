"""Speed, memory and agreement of machines of low rank, as ratios in one run.

Run as ``python tests/benchmarks/lowrank.py [SECTION ...] [--data DIR]``; without sections all of
them run. `mnist` and `rank` need `DIR/mnist/mnist70k.npz`. `million` and `streamed` write their
samples, drawn by `counts`, to a temporary folder: 1.6 GB by default, 400 bytes a sample.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from records import parsed, parser_of, record
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import dhsk
from dhsk.commands.outcome import TreeMemory

SIZES = (250_000, 500_000, 1_000_000)
STREAMED = 4_000_000
FLAT = 10_000_000
FEATURES = 100
CLASSES = 5


def seconds(action: Callable[[], object]) -> float:
    """Time of one call, in seconds."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


# MNIST


def mnist(data: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Training images and labels, test images and labels."""
    with np.load(data / "mnist" / "mnist70k.npz") as file:
        X, y, X_test, y_test = (file[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    return X.reshape(-1, 784), y, X_test.reshape(-1, 784), y_test


def by_numpy(data: Path, k: int, scale: float, C: float) -> tuple[float, float]:
    """Uniform landmarks, features by numpy, `LinearSVC`: seconds, and test accuracy."""
    X, y, X_test, y_test = mnist(data)
    begin = time.perf_counter()
    kernel = dhsk.HeatKernel.at_scale(784, scale)
    rows: Any = dhsk.hyperspherical_map(X.astype(np.float32)).astype(np.float32)
    landmarks = rows[np.random.default_rng(0).choice(len(rows), k, replace=False)]
    values, vectors = np.linalg.eigh(kernel.of_rows(landmarks).astype(np.float64))
    root = vectors / np.sqrt(np.maximum(values, 1e-12))
    features = kernel.of_rows(rows, landmarks) @ root
    middle = time.perf_counter()
    model = LinearSVC(C=C, dual=False).fit(features, y)
    end = time.perf_counter()
    test: Any = dhsk.hyperspherical_map(X_test.astype(np.float32)).astype(np.float32)
    accuracy = model.score(kernel.of_rows(test, landmarks) @ root, y_test)
    print(
        f"  numpy and LinearSVC, k = {k}, s = {scale:g}, C = {C:g}: features "
        f"{middle - begin:.1f} s, LinearSVC {end - middle:.1f} s, test accuracy {accuracy:.4f}",
        flush=True,
    )
    return end - begin, accuracy


def by_dhsk(data: Path, k: int, scale: float, C: float) -> tuple[float, float]:
    """The same by `NystromSVC`."""
    X, y, X_test, y_test = mnist(data)
    model = dhsk.NystromSVC(k, C, time_scale=scale, tol=1e-3, random_state=0)
    with TreeMemory() as memory:
        taken = seconds(lambda: model.fit(X, y))
    accuracy = model.score(X_test, y_test)
    print(
        f"  NystromSVC, k = {k}, s = {scale:g}, C = {C:g}: {taken:.1f} s, test accuracy "
        f"{accuracy:.4f}, trace error {model.trace_error_:.4f}, {memory.peak / 1e9:.2f} GB",
        flush=True,
    )
    return taken, accuracy


def to_mnist(options: argparse.Namespace) -> None:
    """All 60,000 images at k = 2000, at the time scale of the issue and at the best one."""
    by_dhsk(options.data, 100, 1.0, 1.0)  # compiles what is compiled
    for scale, C in ((1.0, 1.0), (0.7, 1.0)):
        theirs, their_accuracy = by_numpy(options.data, 2000, scale, C)
        ours, accuracy = by_dhsk(options.data, 2000, scale, C)
        what, scores = f"MNIST, 2,000 landmarks, s = {scale:g}", (accuracy, their_accuracy)
        peers = {"LinearSVC on features by numpy": theirs}
        record("low_rank", what, ours, "s", peers, scores=scores)


def to_rank(options: argparse.Namespace) -> None:
    """Rank at which the exact machine's accuracy is near."""
    for k in (2000, 2500, 3000, 3500, 4000):
        taken, score = by_dhsk(options.data, k, 0.7, 10.0)
        record("low_rank", f"MNIST, {k:,} landmarks, C = 10", taken, "s", scores=[score])


# Many samples


def counts(
    n: int, seed: int = 0, file: Path | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw counts of `FEATURES` words in documents of `CLASSES` classes, in a file or in memory.

    Each class is a mixture of four topics, each a Dirichlet(0.3) profile; a document has 50 to 150
    words of its topic, as Poisson counts, and a hundredth of a word everywhere; a tenth of the
    labels is drawn at random.
    """
    topics = np.random.default_rng(0).dirichlet(np.full(FEATURES, 0.3), (CLASSES, 4))
    rng = np.random.default_rng([seed, n])
    y = rng.integers(0, CLASSES, n)
    topic = rng.integers(0, 4, n)
    shape = n, FEATURES
    X: Any = open_memmap(file, "w+", np.float32, shape) if file else np.empty(shape, np.float32)
    for start in range(0, n, 100_000):
        part = slice(start, start + 100_000)
        profiles = topics[y[part], topic[part]]
        words = rng.uniform(50, 150, len(profiles))[:, None]
        X[part] = rng.poisson(profiles * words + 0.01)
        X[part, 0] += ~X[part].any(axis=1)  # no empty document
    noisy = rng.random(n) < 0.1
    return X, np.where(noisy, rng.integers(0, CLASSES, n), y)


def train(folder: Path, memory: str) -> None:
    """Train on the samples of a folder, in a process of its own: its memory is watched whole."""
    X = dhsk.open_samples(str(folder / "X.npy"))
    y = np.load(folder / "y.npy")
    model = dhsk.NystromSVC(1000, 1.0, time_scale=1.0, memory=memory, random_state=0)
    with TreeMemory() as tree:
        taken = seconds(lambda: model.fit_samples(X, y))
    test, truth = counts(20_000, seed=1)
    found = {
        "seconds": taken,
        "bytes": tree.peak,
        "accuracy": model.score(test, truth),
        "trace_error": model.trace_error_,
        "passes": model.model_.certificates.passes,
        "converged": bool(np.all(model.converged_)),
        "gap": model.duality_gap_,
    }
    print(json.dumps(found))


def trained(n: int, memory: str) -> dict[str, Any]:
    """Draw samples, train on them, and say what it took."""
    with tempfile.TemporaryDirectory() as name:
        labels = counts(n, file=Path(name, "X.npy"))[1]
        np.save(Path(name, "y.npy"), labels.astype(np.uint8))
        words = [sys.executable, __file__, "--train", name, "--memory", memory]
        lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(lines.splitlines()[-1])
    print(
        f"  N = {n:,}: {found['seconds']:.0f} s = {1e6 * found['seconds'] / n:.0f} us a sample, "
        f"{found['passes']} passes of the solver, {found['bytes'] / 1e9:.2f} GB of {memory} "
        f"allowed; trace error {found['trace_error']:.4f}, test accuracy "
        f"{found['accuracy']:.4f}, gap {found['gap']:.1e}, converged: {found['converged']}",
        flush=True,
    )
    return found


def to_million(options: argparse.Namespace) -> None:
    """A million samples in 6 GB, and how time grows up to there."""
    del options
    found = [trained(n, "6GB") for n in SIZES]
    each = [one["seconds"] / n for one, n in zip(found, SIZES, strict=True)]
    told(SIZES[-1], found[-1], 6.0)
    print(f"time a sample at {SIZES[-1]:,}: {each[-1] / each[0]:.2f} times that at {SIZES[0]:,}")


def to_streamed(options: argparse.Namespace) -> None:
    """Millions of samples, read in every pass: six bytes of each are held, with its label."""
    for n in options.streamed:
        allowed = 1.0 if n <= FLAT else 1.1
        told(n, trained(n, f"{1000 * allowed:.0f}MB"), allowed, ", read in every pass")


def told(n: int, found: dict[str, Any], allowed: float, how: str = "") -> None:
    """Say time and memory, of so many GB."""
    what = f"{n:,} x {FEATURES}, 1,000 landmarks, five classes{how}"
    record("low_rank", what, found["seconds"], "s", scores=[found["accuracy"]])
    record("memory", what, found["bytes"] / 1e9, "GB", {"allowed": allowed})


# LIBLINEAR


def to_liblinear(options: argparse.Namespace) -> None:
    """Coefficients and objective beside LIBLINEAR's, at every C, weighted or not."""
    del options
    from dhsk.execution.threads import Threads
    from dhsk.linear.losses import LOSSES
    from dhsk.linear.newton import Newton
    from dhsk.linear.passes import Columns, Targets
    from dhsk.nystrom.spans import FeatureMatrix

    X, y = load_digits(return_X_y=True)
    y = np.asarray(y) % 2
    features = dhsk.NystromFeatures(
        300, time_scale=1.0, oversampling=1, random_state=0
    ).fit_transform(X)
    n, Z = len(features), FeatureMatrix.in_memory(features, Threads(2))
    weights: Any = np.random.default_rng(0).uniform(0.2, 3.0, n)
    worst = {"coefficients": 0.0, "objective": 0.0}
    for name, loss in LOSSES.items():
        for C in (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4):
            for weight in (np.ones(n), weights):
                columns = Columns(np.array([1]), np.array([0]), np.array([C]))
                problem = Newton(Z, Targets(y, weight[:, None]), columns, loss, 1e-9, 10**9)
                found = problem.solve()
                reference: Any = (
                    LinearSVC(C=C, dual=False, tol=1e-12, max_iter=100_000)
                    if name == "squared_hinge"
                    else LogisticRegression(C=C, solver="liblinear", tol=1e-12, max_iter=100_000)
                )
                reference.fit(features, y, sample_weight=weight)
                theirs = np.append(reference.coef_[0], reference.intercept_)[:, None]
                best: Any = problem._gradient(theirs, columns)[0]
                apart = np.linalg.norm(found.coef - theirs) / np.linalg.norm(theirs)
                short = float(abs(found.objective[0] / best[0] - 1))
                worst["coefficients"] = max(worst["coefficients"], float(apart))
                worst["objective"] = max(worst["objective"], short)
                print(f"  {name}, C = {C:g}: coefficients {apart:.1e}, objective {short:.1e} apart")
    for name, most in worst.items():
        what = f"{name} beside LIBLINEAR's, 28 problems"
        record("agreement", what, most, "relative difference at most")


SECTIONS = {
    "mnist": to_mnist,
    "rank": to_rank,
    "million": to_million,
    "streamed": to_streamed,
    "liblinear": to_liblinear,
}


def main() -> None:
    """Read the command line and run the sections."""
    parser = parser_of(__doc__, SECTIONS, data=True)
    parser.add_argument("--streamed", type=int, nargs="*", default=[STREAMED], metavar="N")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    options = parsed(parser)
    if options.train is not None:
        train(options.train, options.memory)
        return
    for name in options.sections or SECTIONS:
        SECTIONS[name](options)


if __name__ == "__main__":
    main()
