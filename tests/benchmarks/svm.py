"""Speed of the exact SVMs, as ratios against scikit-learn and the products alone, in one run.

Run as ``python tests/benchmarks/svm.py [SECTION ...] --data DIR``; without sections all run. `DIR`
holds `mnist/mnist70k.npz`; for `webkb`, `webkb_counts.npz` and `webkb_labels.txt`, made by
`examples/webkb/prepare.py` from `webkb/webkb_raw_html.tar.gz` when they are not there; for `texts`,
`newsgroups/20news_bydate.tsv.gz`, the 20 Newsgroups as lines of split, group, number and text.
For `grid`, `tcga/tcga_mc3_counts.npz`: counts in CSR, and `labels`, the tumour cohorts.
`texts` is no measurement but a check: it fails if a fit does not converge, at whatever time.
"""

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from scipy.sparse import csr_array, load_npz
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

import dhsk
from dhsk.commands.outcome import TreeMemory
from dhsk.gram.storage.tiling import Tiling

SCALES = [0.5, 0.7, 0.8, 1.0, 1.2, 1.4, 2.0]
PENALTIES = [0.3, 1.0, 3.0, 10.0, 30.0]
PEER = "GridSearchCV on finished matrices"


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


def triangle_product(X: NDArray[Any], tile: int = 2048) -> None:
    """The products of all tiles of the upper triangle, dropped, on all cores."""
    unit: Any = dhsk.hyperspherical_map(X.astype(np.float32)).astype(np.float32)
    tiling = Tiling(len(X), len(X), tile, True)
    out = np.empty((tile, tile), np.float32)
    for i, j in tiling.tiles():
        rows, cols = unit[tiling.rows(i)], unit[tiling.cols(j)]
        np.matmul(rows, cols.T, out=out[: len(rows), : len(cols)])


def libsvm_on_pairs(X: NDArray[Any], y: NDArray[Any], kernel: dhsk.Kernel, C: float) -> float:
    """Seconds of LIBSVM alone on the matrices of all pairs of classes."""
    rows: Any = dhsk.hyperspherical_map(X.astype(np.float32))
    total = 0.0
    for a, b in combinations(np.unique(y), 2):
        chosen = (y == a) | (y == b)
        K = kernel.of_rows(rows[chosen])
        model = SVC(C=C, kernel="precomputed")
        total += seconds(lambda K=K, t=y[chosen], m=model: m.fit(K, t))  # type: ignore[misc]
    return total


def train_mnist(data: Path, noise: float) -> None:
    """Train and score; what `to_mnist` runs in a process of its own, to watch its memory."""
    X, y, X_test, y_test = mnist(data)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(y)) < noise, rng.integers(0, 10, len(y)), y)
    model = dhsk.HeatSVC(C=10.0, time_scale=0.7, dtype="float32", memory="4GB")
    with TreeMemory() as memory:
        trained = seconds(lambda: model.fit(X, labels))
        start = time.perf_counter()
        score = model.score(X_test, y_test)
        scored = time.perf_counter() - start
    print(
        f"  trained in {trained:.0f} s, {len(model.support_):,} support vectors, worst KKT "
        f"{model.kkt_violation_:.1e}, duality gap {model.duality_gap_:.1e}; "
        f"test accuracy {score:.4f} in {scored:.1f} s; {memory.peak / 1e9:.2f} GB "
        f"at the peak, {model.model_.notes['planned_bytes'] / 1e9:.2f} GB predicted, 4 GB allowed",
        flush=True,
    )


def to_mnist(options: argparse.Namespace) -> None:
    """All 60,000 images, and the same with 10 % of the labels drawn at random."""
    X, y, *_ = mnist(options.data)
    kernel = dhsk.HeatKernel.at_scale(784, 0.7)
    product = seconds(lambda: triangle_product(X))
    pairs = libsvm_on_pairs(X, y, kernel, 10.0)
    print(f"  products of the triangle {product:.1f} s, LIBSVM on 45 pairs {pairs:.1f} s")
    for noise in (0.0, 0.1):
        words = [sys.executable, __file__, "--data", str(options.data), "--train", str(noise)]
        taken = seconds(lambda w=words: subprocess.run(w, check=True))  # type: ignore[misc]
        what = f"MNIST, {noise:.0%} noise, with reading and scoring"
        record("svm", what, taken, "s", {"products, and LIBSVM on them": product + pairs})


# WebKB


def webkb(data: Path) -> tuple[csr_array, NDArray[Any]]:
    """Word counts of the pages, and their classes."""
    folder = data
    if not (folder / "webkb_counts.npz").exists():
        folder = Path(tempfile.mkdtemp())
        script = Path(__file__).parents[2] / "examples" / "webkb" / "prepare.py"
        subprocess.run(
            [sys.executable, str(script), "--data", str(data), "--out", str(folder)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (folder / "counts.npz").rename(folder / "webkb_counts.npz")
        (folder / "labels.txt").rename(folder / "webkb_labels.txt")
    labels = np.array((folder / "webkb_labels.txt").read_text().split())
    return csr_array(load_npz(folder / "webkb_counts.npz")), labels


def by_numpy(unit: NDArray[Any], scale: float) -> NDArray[Any]:
    """The kernel as people write it: cosines, and the series by its recurrence in numpy."""
    c: NDArray[Any] = np.clip(unit @ unit.T, -1.0, 1.0)
    n = unit.shape[1]
    kernel = dhsk.HeatKernel.at_scale(n, scale)
    weights = level_weights(n, kernel.time)
    before, polynomial = np.ones_like(c), c.copy()
    value = weights[0] + weights[1] * c
    for level in range(1, len(weights) - 1):
        following = ((2 * level + n - 2) * c * polynomial - level * before) / (level + n - 2)
        before, polynomial = polynomial, following
        value += weights[level + 1] * polynomial
    return np.asarray(value)


def level_weights(n: int, t: float) -> NDArray[Any]:
    """Weights of the levels of the normalised series, down to 1e-18 of the largest."""
    levels = np.arange(2000.0)
    with np.errstate(divide="ignore"):
        dimension = np.log((2 * levels[1:] + n - 2) / (2 * levels[1:] + n - 4)) + np.log(
            (levels[1:] + n - 3) / levels[1:]
        )
    logs = np.concatenate([[0.0], np.cumsum(dimension)]) - levels * (levels + n - 2) * t
    weights = np.exp(logs - logs.max())
    last = int(np.flatnonzero(weights > 1e-18)[-1])
    return np.asarray(weights[: last + 1] / weights.sum())


def to_webkb(options: argparse.Namespace) -> None:
    """Seven times, five C, five folds: against numpy's kernels and GridSearchCV."""
    X, y = webkb(options.data)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    mapped: Any = dhsk.hyperspherical_map(X)
    unit = mapped.toarray()
    kernels_taken = grids_taken = 0.0
    expected: list[float] = []
    for scale in SCALES:
        start = time.perf_counter()
        K = by_numpy(unit, scale)
        kernels_taken += time.perf_counter() - start
        search = GridSearchCV(
            SVC(kernel="precomputed"), {"C": PENALTIES}, cv=folds, n_jobs=2, refit=False
        )
        grids_taken += seconds(lambda s=search, K=K: s.fit(K, y))  # type: ignore[misc]
        expected += search.cv_results_["mean_test_score"].tolist()
    result: Any = None

    def run(client: Any = None) -> None:
        nonlocal result
        result = dhsk.cross_validate(X, y, time_scale=SCALES, C=PENALTIES, client=client)

    taken = [seconds(run), seconds(run)]
    parts = result.data["seconds"]
    with dhsk.connect("local") as client:
        processes = [seconds(lambda: run(client)) for _ in range(2)]
    found = [row["mean"] for row in result.summary_]
    off = np.abs(np.array(found) - expected)
    print(
        f"  numpy's kernels {kernels_taken:.1f} s, GridSearchCV on them {grids_taken:.1f} s; "
        f"dhsk on threads {taken[0]:.1f} s, again {taken[1]:.1f} s ("
        + ", ".join(f"{name} {value:.1f} s" for name, value in parts.items())
        + f"); on a cluster {processes[0]:.1f} s, again {processes[1]:.1f} s"
    )
    peers = {PEER: grids_taken, "the same and kernels by numpy": kernels_taken + grids_taken}
    record("search", "35 settings x 5 folds, 4,199 pages of WebKB", min(taken), "s", peers, runs=2)
    print(
        f"  mean scores of {(off > 1e-12).sum()} of {len(off)} cells differ, by at most "
        f"{off.max():.1e}"
    )


# A grid of many small problems


def to_grid(options: argparse.Namespace) -> None:
    """Seven times, five C, five folds, 45 pairs: against GridSearchCV on finished kernels."""
    X, y, *_ = mnist(options.data)
    compare_grid("images of MNIST", X[::11].astype(np.float64), y[::11])
    with np.load(options.data / "tcga" / "tcga_mc3_counts.npz") as file:
        counts = csr_array((file["data"], file["indices"], file["indptr"]), shape=file["shape"])
        cohorts = file["labels"]
    ranked = sorted(Counter(cohorts.tolist()).items(), key=lambda item: (-item[1], item[0]))
    chosen = np.isin(cohorts, [name for name, _ in ranked[:10]])
    compare_grid("tumours of ten cohorts", csr_array(counts[chosen]), cohorts[chosen])
    digits, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    noisy = [np.maximum(digits + 2 * rng.normal(size=digits.shape), 0) for _ in range(3)]
    compare_grid("noisy digits", np.concatenate(noisy), np.tile(y, 3))


def compare_grid(name: str, X: Any, y: NDArray[Any]) -> None:
    """Time a grid by GridSearchCV on finished kernels, on threads, and on a local cluster."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    unit: Any = dhsk.hyperspherical_map(X)
    expected: list[float] = []
    peer = 0.0
    for scale in SCALES:
        K = dhsk.HeatKernel.at_scale(X.shape[1], scale)(unit)
        search = GridSearchCV(
            SVC(kernel="precomputed"), {"C": PENALTIES}, cv=folds, n_jobs=2, refit=False
        )
        peer += seconds(lambda s=search, K=K: s.fit(K, y))  # type: ignore[misc]
        expected += search.cv_results_["mean_test_score"].tolist()
    result: Any = None

    def run(client: Any = None) -> None:
        nonlocal result
        result = dhsk.cross_validate(X, y, time_scale=SCALES, C=PENALTIES, client=client)

    def facts() -> str:
        parts = ", ".join(f"{key} {value:.1f} s" for key, value in result.data["seconds"].items())
        return f"{parts}; solver {sum(row['seconds'] for row in result.results_):.1f} core seconds"

    threads = [seconds(run), seconds(run)]
    on_threads = facts()
    off = np.abs(np.array([row["mean"] for row in result.summary_]) - expected)
    with dhsk.connect("local") as client:
        cluster = [seconds(lambda: run(client)) for _ in range(2)]
    print(
        f"  {len(y):,} samples, GridSearchCV {peer:.1f} s; "
        f"threads {threads[0]:.1f} s, again {threads[1]:.1f} s ({on_threads}); "
        f"cluster {cluster[0]:.1f} s, again {cluster[1]:.1f} s ({facts()})"
    )
    what = f"35 settings x 5 folds, {len(y):,} {name}"
    record("search", what, min(threads), "s", {PEER: peer}, runs=2)
    print(
        f"  mean scores of {(off > 1e-12).sum()} of {len(off)} cells differ, by at most "
        f"{off.max():.1e}",
        flush=True,
    )


# 20 Newsgroups

LARGE_SCALES = [2.0, 2.8, 4.0, 5.7, 8.0]
"""Time scales at which the kernel of 12,000 words is linear: at 4 values differ from 1 by 1e-12."""


def newsgroups(data: Path) -> tuple[csr_array, NDArray[Any]]:
    """Counts of the 12,000 most frequent words in 8,000 texts of the nine largest groups."""
    with gzip.open(data / "newsgroups" / "20news_bydate.tsv.gz", "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    groups = np.array([line[1] for line in lines])
    counted = sorted(Counter(groups.tolist()).items(), key=lambda item: (-item[1], item[0]))
    chosen = np.flatnonzero(np.isin(groups, [name for name, _ in counted[:9]]))
    chosen = np.sort(np.random.default_rng(0).choice(chosen, 8000, replace=False))
    counts = CountVectorizer(max_features=12_000).fit_transform(lines[i][3] for i in chosen)
    return csr_array(counts), groups[chosen]


def to_texts(options: argparse.Namespace) -> None:
    """The search for a time on sparse counts, and large times on their own."""
    X, y = newsgroups(options.data)
    for name, scales in (("auto", "auto"), ("large times", LARGE_SCALES)):
        found: Any = None

        def run(scales: Any = scales) -> None:
            nonlocal found
            found = dhsk.cross_validate(X, y, time_scale=scales, C="auto", memory="6GB")

        taken = seconds(run)
        rows, best = found.results_, found.best_
        left = [row for row in rows if not row["converged"]]
        highest = max(row["mean"] for row in found.summary_)
        print(
            f"  {name}: {len(rows) - len(left)} of {len(rows)} fits converged in {taken:.0f} s, "
            f"worst violation {max(row['kkt'] for row in rows):.1e}; {best['label']}, C = "
            f"{best['C']:.3g} ({best['C_scaled']:g} over the spread), {best['n_support']:.0f} "
            f"support vectors: {best['mean']:.4f}; search {found.data.get('search_ended', 'none')}",
            flush=True,
        )
        what, told = f"8,000 posts of 12,000 words, {name}", f"of {len(rows)} fits converge"
        record("texts", what, len(rows) - len(left), told, scores=[best["mean"]])
        if left or best["mean"] < highest - 1e-9:
            raise SystemExit(f"{name}: fits did not converge, or the winner is not of the best")
    spreads = np.array([row["mean"] for row in found.summary_]).reshape(len(LARGE_SCALES), -1)
    print(
        "texts: mean accuracy of the same C over the spread differs by at most "
        f"{np.ptp(spreads, axis=0).max():.4f} between time scales {LARGE_SCALES}"
    )


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "mnist": to_mnist,
    "webkb": to_webkb,
    "grid": to_grid,
    "texts": to_texts,
}


def main() -> None:
    """Run the sections asked for."""
    parser = parser_of(__doc__, SECTIONS, data=True)
    parser.add_argument("--train", type=float, help=argparse.SUPPRESS)
    options = parsed(parser)
    if options.data is None:
        parser.error("give --data DIR or set DHSK_DATA")
    if options.train is not None:
        train_mnist(options.data, options.train)
        return
    for section in options.sections or SECTIONS:
        print(f"{section}:", flush=True)
        SECTIONS[section](options)


if __name__ == "__main__":
    main()
