"""Exact SVMs and regression on ordinary data, beside LIBSVM and scikit-learn-intelex, in one run.

Run as ``python tests/benchmarks/svc.py [SET ...]``; without sets all run. The sets are drawn with a
seed, like those of the peer's own benchmarks in number of samples, dimension, entries of a row and
share of support vectors; none is the data themselves. Every fit is in a process of its own, on two
cores, in float64; scikit-learn-intelex gets dense rows, on which it is fastest. It is installed
with pip into a virtual environment that is deleted at the end, unless `--intelex` names an
interpreter that has it.

Prints a table of seconds of fit and prediction, memory, support vectors and ratios, and the largest
difference of decisions, over the tolerance, from LIBSVM's.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from scipy.sparse import csr_array, load_npz, save_npz
from sklearn.datasets import make_friedman1
from support_vectors import MEMORY, PEERS, SOLVERS, environment, intelex_installed

import dhsk
from dhsk.commands.outcome import TreeMemory

SEED: Final = 0
TESTS: Final = 5000
"""Samples that are predicted, drawn with the others."""
WARM: Final = 5000
"""Samples of a fit before the one that is timed, enough for the way of the others."""
TOL: Final = 1e-3
REPEATS: Final = 7
ENOUGH: Final = 3.0
"""Times that a model predicts, but no more begin after so many seconds."""
LIMIT: Final = 300.0
"""Seconds after which a solver is stopped."""

Floats = NDArray[np.float64]
Drawn = tuple[Any, NDArray[Any]]


# Samples


def one_hot(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> csr_array[Any, Any]:
    """Rows with one 1 in each group of columns, (n, sum of sizes), as of tables with categories."""
    starts = np.cumsum([0, *sizes[:-1]])
    shares = [rng.dirichlet(np.full(size, 0.7)) for size in sizes]
    columns = [s + rng.choice(len(p), n, p=p) for s, p in zip(starts, shares, strict=True)]
    indices = np.sort(np.stack(columns, axis=1), axis=1).ravel().astype(np.int32)
    indptr = np.arange(n + 1, dtype=np.int32) * len(sizes)
    return csr_array((np.ones(len(indices)), indices, indptr), shape=(n, sum(sizes)))


def words(rng: np.random.Generator, n: int, dim: int, entries: int) -> csr_array[Any, Any]:
    """Rows of 0 and 1 with a number of ones about `entries`, of common and rare columns."""
    common = 1.0 / np.arange(1.0, dim + 1) ** 0.7
    shown = rng.random((n, dim)) < np.minimum(1.0, common * entries / common.sum())
    return csr_array(shown.astype(np.float64))


def labelled(rng: np.random.Generator, score: Floats, share: float, noise: float) -> NDArray[Any]:
    """1 for a share of the highest scores after noise in units of their deviation, else 0."""
    noisy = score + noise * score.std() * rng.normal(size=len(score))
    return np.asarray(noisy > np.quantile(noisy, 1.0 - share), dtype=np.int64)


def adults(rng: np.random.Generator, n: int) -> Drawn:
    """Like a9a: 14 categories in 123 columns, a quarter in the first class."""
    X = one_hot(rng, n, (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 3, 5, 40))
    score = X @ rng.normal(size=X.shape[1])
    return X, labelled(rng, score, 0.24, 0.75)


def pages(rng: np.random.Generator, n: int) -> Drawn:
    """Like w8a: 300 columns, 12 ones a row, three in a hundred in the first class."""
    X = words(rng, n, 300, 12)
    score = X @ (rng.normal(size=300) ** 3)
    return X, labelled(rng, score, 0.03, 0.1)


def friedman(rng: np.random.Generator, n: int) -> Drawn:
    """Friedman's first function of ten numbers, above its median."""
    X, target = make_friedman1(n, 10, noise=1.0, random_state=int(rng.integers(1 << 31)))
    return X, (target > np.median(target)).astype(np.int64)


def surface(rng: np.random.Generator, n: int) -> Drawn:
    """Three numbers, and classes with a smooth border."""
    X = rng.random((n, 3))
    score = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 - X[:, 2]
    return X, labelled(rng, score, 0.5, 0.002)


def engine(rng: np.random.Generator, n: int) -> Drawn:
    """Like ijcnn1: 22 numbers, ten of which are a one-hot category; a tenth in one class."""
    X = np.hstack([one_hot(rng, n, (10,)).toarray(), rng.uniform(-1.0, 1.0, (n, 12))])
    waves = np.sin(3.0 * X[:, 10:13]).sum(axis=1) + X[:, 13] * X[:, 14] + X[:, :10] @ rng.random(10)
    return X, labelled(rng, waves, 0.1, 0.1)


def boards(rng: np.random.Generator, n: int) -> Drawn:
    """Like connect-4: 42 squares of three states, and three classes."""
    X = one_hot(rng, n, (3,) * 42)
    score = X @ rng.normal(size=126) + (X @ rng.normal(size=126)) * (X @ rng.normal(size=126)) / 4
    noisy = score + 0.2 * score.std() * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(noisy, (0.25, 0.35)), noisy)


def sequences(rng: np.random.Generator, n: int) -> Drawn:
    """Like cod-rna: eight numbers of which one says most; a third in one class."""
    X = rng.normal(size=(n, 8))
    return X, labelled(rng, 2.0 * X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3], 0.33, 0.15)


def planes(rng: np.random.Generator, n: int) -> Drawn:
    """2dplanes: ten numbers of a few values, two linear functions, above the median."""
    X = rng.integers(-1, 2, (n, 10)).astype(np.float64)
    X[:, 0] = rng.choice([-1.0, 1.0], n)
    target = np.where(X[:, 0] > 0, 3 + X[:, 1:4] @ (3, 2, 1), -3 + X[:, 4:7] @ (3, 2, 1))
    return X, labelled(rng, target + rng.normal(size=n), 0.5, 0.0)


def targets(rng: np.random.Generator, n: int) -> Drawn:
    """Friedman's first function of ten numbers."""
    X, target = make_friedman1(n, 10, noise=1.0, random_state=int(rng.integers(1 << 31)))
    return X, target


def many_features(rng: np.random.Generator, n: int) -> Drawn:
    """Ninety numbers, nearly linear."""
    X = rng.normal(size=(n, 90))
    return X, X @ rng.normal(size=90) / 5 + np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=n)


@dataclass(frozen=True)
class Case:
    """A set of samples, and the class, kernel and C with which it is fitted."""

    draw: Callable[[np.random.Generator, int], Drawn]
    n: int
    kernel: str
    C: float
    kind: str = "SVC"


CASES: Final = {
    "a9a, rbf": Case(adults, 18_156, "rbf", 1.0),
    "a9a, linear": Case(adults, 18_156, "linear", 1.0),
    "w8a, rbf": Case(pages, 39_799, "rbf", 10.0),
    "w8a, linear": Case(pages, 39_799, "linear", 1.0),
    "Friedman 1, rbf": Case(friedman, 30_000, "rbf", 2.0),
    "surface, rbf": Case(surface, 200_000, "rbf", 10.0),
    "ijcnn1, rbf": Case(engine, 50_000, "rbf", 10.0),
    "connect-4, rbf": Case(boards, 20_000, "rbf", 1.0),
    "cod-rna, rbf": Case(sequences, 50_000, "rbf", 1.0),
    "2dplanes, rbf": Case(planes, 20_000, "rbf", 1.0),
    "Friedman 1, SVR": Case(targets, 20_000, "rbf", 1.0, "SVR"),
    "90 features, SVR": Case(many_features, 20_000, "rbf", 1.0, "SVR"),
}


def write(case: Case, folder: Path) -> None:
    """Write samples to train on and to predict."""
    X, y = case.draw(np.random.default_rng(SEED), case.n + TESTS)
    np.save(folder / "labels.npy", y)
    if isinstance(X, np.ndarray):
        np.save(folder / "rows.npy", X)
    else:
        save_npz(folder / "rows.npz", X)


def read(folder: Path) -> Drawn:
    """What `write` wrote."""
    sparse = folder / "rows.npz"
    X = csr_array(load_npz(sparse)) if sparse.exists() else np.load(folder / "rows.npy")
    return X, np.load(folder / "labels.npy")


# Fits, each in a process of its own


def model_of(solver: str, case: Case) -> Any:
    """Estimator of a solver, with the default gamma="scale"."""
    options: dict[str, Any] = {"C": case.C, "kernel": case.kernel, "tol": TOL}
    if solver == "dhsk":
        return getattr(dhsk, case.kind)(**options, memory=MEMORY)
    module = importlib.import_module("sklearn.svm" if solver == "libsvm" else "sklearnex.svm")
    return getattr(module, case.kind)(**options, cache_size=1000)


def fit_here(solver: str, name: str, folder: Path) -> dict[str, Any]:
    """Fit and predict; numbers of both."""
    case = CASES[name]
    X, y = read(folder)
    if solver == "intelex" and not isinstance(X, np.ndarray):
        X = X.toarray()
    X, y, test = X[: case.n], y[: case.n], X[case.n :]
    model = model_of(solver, case)
    model.fit(X[:WARM], y[:WARM]).predict(test[:100])  # loads and compiles
    with TreeMemory() as tree:
        begin = time.perf_counter()
        model.fit(X, y)
        fitted = time.perf_counter()
        predicting = shortest(lambda: model.predict(test))
    decide = model.decision_function if case.kind == "SVC" else model.predict
    np.save(folder / f"{solver}.npy", decide(test))
    found = {"fit": fitted - begin, "predict": predicting, "bytes": tree.peak}
    return found | {"support": len(model.support_)}


def shortest(predict: Callable[[], object]) -> float:
    """Seconds of the fastest of some calls: most take less than the noise of a shared machine."""
    begin, found = time.perf_counter(), [float("inf")]
    while len(found) <= REPEATS and (len(found) < 2 or time.perf_counter() - begin < ENOUGH):
        started = time.perf_counter()
        predict()
        found.append(time.perf_counter() - started)
    return min(found)


def fit_apart(options: argparse.Namespace, solver: str, name: str, folder: Path) -> dict[str, Any]:
    """Fit in a process of its own; an empty dict if that takes longer than the limit."""
    python = options.intelex if solver == "intelex" else sys.executable
    command = [python, __file__, name, "--fit", solver, str(folder)]
    places = [str(Path(__file__).parent), environment()["PYTHONPATH"]]
    surroundings = environment() | {"PYTHONPATH": os.pathsep.join(places)}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env=surroundings,
            timeout=options.limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# The table

COLUMNS: Final = (
    "set", "support vectors", "LIBSVM", "intelex", "dhsk", "of LIBSVM", "of intelex", "predict",
    "of LIBSVM", "of intelex", "memory", "of intelex", "decisions",
)  # fmt: skip


def ratio(found: dict[str, dict[str, Any]], peer: str, what: str) -> float:
    """Ours over a peer's; NaN where one was stopped."""
    ours, theirs = found["dhsk"].get(what), found[peer].get(what)
    return ours / theirs if ours and theirs else float("nan")


def apart(folder: Path, solver: str = "dhsk") -> float:
    """Largest difference of decisions from LIBSVM's, over the tolerance; NaN if one has none."""
    files = [folder / f"{one}.npy" for one in ("libsvm", solver)]
    if not all(file.exists() for file in files):
        return float("nan")
    first, second = map(np.load, files)
    return float(np.abs(first - second).max() / TOL)


def row_of(case: Case, name: str, found: dict[str, dict[str, Any]], folder: Path) -> list[str]:
    """A row of the table."""
    ours = found["dhsk"]
    share = max(one.get("support", 0) for one in found.values()) / case.n

    def seconds(solver: str) -> str:
        return f"{found[solver]['fit']:.2f}" if found[solver] else "stopped"

    def ratios(what: str) -> list[str]:
        return [f"{ratio(found, peer, what):.2f}" for peer in ("libsvm", "intelex")]

    return [
        name, f"{share:.1%}", *map(seconds, SOLVERS), *ratios("fit"),
        f"{ours.get('predict', 0):.2f}", *ratios("predict"), f"{ours.get('bytes', 0) / 1e9:.2f} GB",
        ratios("bytes")[1], f"{apart(folder):.1f}",
    ]  # fmt: skip


def main() -> None:
    """Run the sets that are asked for."""
    parser = parser_of(__doc__, CASES)
    parser.add_argument("--intelex", help="interpreter that has scikit-learn-intelex")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each fit")
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    options = parsed(parser)
    if options.fit:
        print(json.dumps(fit_here(options.fit[0], options.sections[0], Path(options.fit[1]))))
        return
    if options.intelex is None:
        with intelex_installed() as options.intelex:
            run(options)
    else:
        run(options)


def run(options: argparse.Namespace) -> None:
    """Fit all, and print the table as it grows."""
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for name in options.sections or CASES:
        with tempfile.TemporaryDirectory() as folder:
            write(CASES[name], Path(folder))
            found = {
                solver: fit_apart(options, solver, name, Path(folder))
                if solver in options.solvers
                else {}
                for solver in SOLVERS
            }
            row = row_of(CASES[name], name, found, Path(folder))
        print(f"| {' | '.join(row)} |", flush=True)
        if found["dhsk"]:
            what = f"{name}, {CASES[name].n:,} samples"
            peers = {PEERS[one]: found[one]["fit"] for one in PEERS if found[one]}
            record("svc", what, found["dhsk"]["fit"], "s", peers)


if __name__ == "__main__":
    main()
