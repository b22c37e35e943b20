"""The default search by halving against the whole one: what it loses, and the time it takes.

Run as ``python tests/benchmarks/halving.py [SET ...] [--seeds 20]`` with ``DHSK_DATA`` set to a
folder of data sets; by default all of them. The whole search runs once on a set, and the search by
halving once for each seed, which shuffles the samples: the folds stay, so that the same cell has
the same score, and only the samples of the rounds differ. Printed are, over the seeds, the score of
what the whole search takes less that of what halving takes, in standard errors of the former over
its folds, and the ratio of the times.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from many import recipes
from records import parsed, parser_of, record
from scipy.sparse import csr_array
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale

import dhsk

NOTHING_ELSE = dhsk.Output(baselines=False, eigenvalues=False)


def data() -> Path:
    """Folder of the data sets."""
    return Path(os.environ["DHSK_DATA"])


def images(n: int) -> tuple[Any, Any]:
    """The first images of MNIST."""
    file = np.load(data() / "mnist" / "mnist70k.npz")
    return file["X_train"][:n].reshape(n, -1).astype(np.float64), file["y_train"][:n]


def tumours() -> tuple[Any, Any]:
    """Mutations of genes, and cohorts."""
    file = np.load(data() / "tcga" / "tcga_mc3_counts.npz", allow_pickle=False)
    X = csr_array((file["data"], file["indices"], file["indptr"]), shape=file["shape"])
    return X.astype(np.float64), file["labels"]


def posts(n: int) -> tuple[Any, Any]:
    """Counts of words of newsgroup posts, and their groups."""
    import gzip

    with gzip.open(data() / "newsgroups" / "20news_bydate.tsv.gz", "rt", newline="") as file:
        lines = [line.rstrip("\n").split("\t", 3) for line in file][:n]
    counts = CountVectorizer(min_df=2).fit_transform([line[3] for line in lines])
    return csr_array(counts, dtype=np.float64), np.array([line[1] for line in lines])


def table(n: int) -> tuple[Any, Any]:
    """A table of 12 columns, two classes and some wrong labels."""
    X, y = make_classification(n, 12, n_informative=8, flip_y=0.05, random_state=0)
    return minmax_scale(X), y


SETS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "images": lambda: images(6000),
    "more images": lambda: images(12_000),
    "tumours": tumours,
    "posts": lambda: posts(6000),
    "recipes": lambda: recipes(8000),
    "table": lambda: table(10_000),
}


def compared(name: str, seeds: int) -> str:
    """One line of the table."""
    X, y = SETS[name]()
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    folds = list(splitter.split(np.zeros(len(y)), y))
    begin = time.perf_counter()
    whole = dhsk.cross_validate(X, y, cv=folds, search="full", out=NOTHING_ELSE)
    seconds = time.perf_counter() - begin
    error = float(np.std([row.score for row in whole.rows_of[whole.best.point]], ddof=1) / 5**0.5)
    lost, ratios, kinds = [], [], 0
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        place = np.argsort(order)
        moved = [(np.sort(place[train]), np.sort(place[test])) for train, test in folds]
        begin = time.perf_counter()
        found = dhsk.cross_validate(X[order], y[order], cv=moved, out=NOTHING_ELSE)
        ratios.append((time.perf_counter() - begin) / seconds)
        lost.append((whole.best_score_ - found.best_score_) / error)
        kinds += found.best.kernel == whole.best.kernel
    what = f"default search, {name}, {X.shape[0]:,} x {X.shape[1]:,}"
    record(
        "search",
        what,
        float(np.mean(ratios)) * seconds,
        "s",
        {"every setting": seconds},
        runs=seeds,
    )
    return (
        f"{name:12} {X.shape[0]:>6} x {X.shape[1]:<6} full {seconds:6.1f} s "
        f"{whole.best_score_:.4f} ± {error:.4f}   "
        f"lost {np.mean(lost):5.2f} (most {max(lost):5.2f}) errors   "
        f"same kind {kinds}/{seeds}   time {np.mean(ratios):.2f} (most {max(ratios):.2f})"
    )


def main() -> None:
    """Print a line for each data set."""
    parser = parser_of(__doc__, SETS)
    parser.add_argument("--seeds", type=int, default=20)
    given = parsed(parser)
    warm, labels = images(1000)
    dhsk.cross_validate(warm, labels, out=NOTHING_ELSE)  # compiles
    for name in given.sections or SETS:
        print(compared(name, given.seeds), flush=True)


if __name__ == "__main__":
    main()
