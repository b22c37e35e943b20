"""Speed of a grid of many classes on sparse samples, as a ratio against scikit-learn in one run.

Run as ``python tests/benchmarks/many.py [N ...]``; by default 10,000 samples. They are made with a
seed after 39,774 public recipes: 20 classes of 467 to 7,838, about 10 of 6,714 features in each,
with frequencies by Zipf's law. Classes are mixtures of shared topics, so that a support vector
machine is right on four of five, and half of the samples or more are support vectors. The peer,
`GridSearchCV` on finished kernels, runs up to 10,000 samples, as it needs the whole matrix.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

import dhsk
from dhsk.commands.outcome import TreeMemory
from dhsk.units import parse_bytes

SCALES = [0.7, 1.0, 1.4]
PENALTIES = [1.0, 10.0, 100.0]

SIZES = np.array(
    [
        [7838, 6438, 4320, 3003, 2673, 2646, 1546, 1539, 1423, 1175],
        [989, 830, 825, 821, 804, 755, 667, 526, 489, 467],
    ]
).ravel()
"""Samples of each class."""

FEATURES = 6714
TOPICS = 60

LARGEST_OF_PEER = 10_000
"""Samples whose kernel, its parts by fold and LIBSVM's cache fit in memory beside each other."""


def recipes(n: int, seed: int = 0) -> tuple[csr_array, NDArray[np.int_]]:
    """Binary samples and their classes, in random order."""
    rng = np.random.default_rng(seed)
    sizes = np.maximum(6, np.rint(SIZES * n / SIZES.sum())).astype(int)
    sizes[0] += n - sizes.sum()
    topics = np.exp(2.5 * rng.standard_normal((TOPICS, FEATURES))) / (np.arange(FEATURES) + 5.0)
    topics /= topics.sum(axis=1, keepdims=True)
    rows, columns = [], []
    for first, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
        of_class = rng.dirichlet(np.full(TOPICS, 0.06))
        own = rng.dirichlet(6 * of_class + 0.01, size).cumsum(axis=1)
        sample = np.repeat(np.arange(size), 1 + rng.poisson(11, size))
        drawn = (rng.random(len(sample))[:, None] > own[sample]).sum(axis=1)
        for topic in range(TOPICS):
            chosen = sample[np.minimum(drawn, TOPICS - 1) == topic]
            rows.append(first + chosen)
            columns.append(rng.choice(FEATURES, len(chosen), p=topics[topic]))
    entries = np.concatenate(rows), np.concatenate(columns)
    X = csr_array((np.ones(len(entries[0])), entries), shape=(n, FEATURES))
    X.sum_duplicates()
    X.data[:] = 1.0
    order = rng.permutation(n)
    return csr_array(X[order]), np.repeat(np.arange(len(sizes)), sizes)[order]


def seconds(action: Callable[[], object]) -> float:
    """Time of one call, in seconds."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def by_scikit_learn(X: csr_array, y: NDArray[np.int_]) -> tuple[float, list[float]]:
    """Seconds of the grid on finished kernels, and its mean scores."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    unit: Any = dhsk.hyperspherical_map(X)
    taken, scores = 0.0, []
    for scale in SCALES:
        K = dhsk.HeatKernel.at_scale(FEATURES, scale)(unit)
        search = GridSearchCV(
            SVC(kernel="precomputed"), {"C": PENALTIES}, cv=folds, n_jobs=2, refit=False
        )
        taken += seconds(lambda s=search, K=K: s.fit(K, y))  # type: ignore[misc]
        scores += search.cv_results_["mean_test_score"].tolist()
    return taken, scores


def compare(n: int, memory: str) -> None:
    """Print the time of a grid, and that of the peer if it can run."""
    X, y = recipes(n)
    result: Any = None

    def run() -> None:
        nonlocal result
        result = dhsk.cross_validate(X, y, time_scale=SCALES, C=PENALTIES, memory=memory)

    with TreeMemory() as tree:
        taken = seconds(run)
    means = [row["mean"] for row in result.summary_]
    solver = sum(row["seconds"] for row in result.results_)
    print(
        f"{n:,} samples, {X.nnz / n:.1f} entries in each: {taken:.0f} s "
        f"({', '.join(f'{key} {value:.0f} s' for key, value in result.data['seconds'].items())}; "
        f"solver {solver:.0f} core seconds), {tree.peak / 1e9:.2f} GB of {memory}; best mean "
        f"{max(means):.4f} with {result.best_['n_support'] / (0.8 * n):.0%} support vectors",
        flush=True,
    )
    what = f"9 settings x 5 folds, {n:,} recipes of 20 classes"
    record("memory", what, tree.peak / 1e9, "GB", {"allowed": parse_bytes(memory) / 1e9})
    if n > LARGEST_OF_PEER:
        record("texts", what, taken, "s")
        return
    peer, expected = by_scikit_learn(X, y)
    off = np.abs(np.array(means) - expected)
    record("texts", what, taken, "s", {"GridSearchCV on finished matrices": peer})
    print(
        f"  mean scores of {(off > 1e-12).sum()} of {len(off)} cells differ, by at most "
        f"{off.max():.1e}",
        flush=True,
    )


def main() -> None:
    """Run for the numbers of samples asked for."""
    parser = parser_of(__doc__)
    parser.add_argument("samples", nargs="*", type=int, default=[10_000])
    parser.add_argument("--memory", default="4GB")
    options = parsed(parser)
    for n in options.samples:
        compare(n, options.memory)


if __name__ == "__main__":
    main()
