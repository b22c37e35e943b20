"""Kernels beside what is usually done, on the same folds: the table of docs/choosing.md.

Run as ``python tests/benchmarks/habits.py --data DIR``; DIR, or the environment variable DHSK_DATA,
holds the files that the READMEs of the examples name. It prints the best mean accuracy of five
folds of each family, the processor seconds of all its candidates together, and how far the best
heat kernel is from it, ± one standard error of paired differences, corrected for overlapping
training sets. At most 1,500 samples are taken of each set but digits. The heat kernel is searched
(`time_scale="auto"`), also on tf-idf. All kernels are fitted to pairs of classes (ovo) and to each
class against the rest (ovr). Grids of the others: C of 0.1, 1 and 10 for LinearSVC, of 1, 10 and
100 for SVC; Gaussian kernels at 0.25, 0.5 and 1 times the median distance with C of 1, 10 and 100.
``--only digits,WebKB`` takes some of the data sets.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from subprocess import run
from time import process_time
from typing import Any

import numpy as np
from defaults import data_sets, line, some
from records import Topic, parsed, parser_of, record
from scipy.sparse import csr_array, issparse, load_npz
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC

import dhsk
from dhsk.results.paired import paired_difference

SETS = ("digits", "MNIST", "newsgroups", "tumours")
"""Data sets of `defaults` that are in the table; WebKB is read here."""

PREPARE = Path(__file__).parents[2] / "examples" / "webkb" / "prepare.py"

TEXTS = ("WebKB", "newsgroups")

FOLDS = 5

WAYS = ("ovo", "ovr")

Scores = Sequence[float]


def webkb(folder: Path) -> tuple[Any, Any]:
    """Counts of 375 words on pages of four classes."""
    with tempfile.TemporaryDirectory() as out:
        run(
            [sys.executable, str(PREPARE), "--data", str(folder), "--out", out],
            check=True, capture_output=True,
        )  # fmt: skip
        X: Any = load_npz(Path(out) / "counts.npz")
        y = (Path(out) / "labels.txt").read_text().split()
    chosen = some(len(y))
    X = csr_array(X, dtype=float)[chosen]
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # for LinearSVC
    return X, np.array(y)[chosen]


def of_kernels(X: Any, y: Any, **given: Any) -> Scores:
    """Scores of the best candidate, fold by fold."""
    result = dhsk.cross_validate(X, y, cv=FOLDS, **given)
    return [row.score for row in result.rows_of[result.decision.best.point]]


def of_estimators(X: Any, y: Any, models: Sequence[Any]) -> Scores:
    """The same of estimators of scikit-learn, on the same folds."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    scores = [cross_val_score(model, X, y, cv=folds) for model in models]
    return max((one.tolist() for one in scores), key=np.mean)


def gaussians(X: Any) -> list[dhsk.GaussianKernel]:
    """Gaussian kernels at parts of the median distance of 300 samples."""
    distances = pairwise_distances(X[:300])
    middle = float(np.median(distances[np.triu_indices(len(distances), 1)]))
    return [dhsk.GaussianKernel(float(f"{part * middle:.3g}")) for part in (0.25, 0.5, 1)]


def families(X: Any, y: Any, *, texts: bool) -> dict[str, Callable[[], Scores]]:
    """What is compared."""
    models = partial(of_estimators, X, y)
    scaler = StandardScaler(with_mean=not issparse(X))
    roots = Normalizer("l1"), FunctionTransformer(np.sqrt)
    C = (0.1, 1.0, 10.0)
    grids: dict[str, dict[str, Any]] = {
        "cosine": {"kernels": "cosine", "C": "auto"},
        "heat": {"time_scale": "auto"},
        "heat on tf-idf": {"time_scale": "auto", "sphere_map": "tfidf"},
        "Gaussian": {"kernels": gaussians(X), "C": [1, 10, 100]},
    }
    return {
        **{
            f"{name}, {way}": partial(of_kernels, X, y, multi_class=way, **given)
            for name, given in grids.items()
            for way in WAYS
        },
        "LinearSVC, tf-idf": partial(
            models,
            [
                make_pipeline(TfidfTransformer(sublinear_tf=sub), LinearSVC(C=c, random_state=0))
                for sub in ((False, True) if texts else (False,))
                for c in C
            ],
        ),
        "LinearSVC, square roots": partial(
            models, [make_pipeline(*roots, LinearSVC(C=c, random_state=0)) for c in C]
        ),
        "SVC(rbf), scaled": partial(models, [make_pipeline(scaler, SVC(C=10 * c)) for c in C]),
        "SVC(rbf), rows of length 1": partial(
            models, [make_pipeline(Normalizer(), SVC(C=10 * c)) for c in C]
        ),
    }


def compare(sets: Mapping[str, Callable[[], tuple[Any, Any]]]) -> None:
    """Print a row of each data set."""
    head: list[str] = []
    for name, read in sets.items():
        X, y = read()
        found, seconds = {}, {}
        for family, measure in families(X, y, texts=name in TEXTS).items():
            begin = process_time()
            found[family] = measure()
            seconds[family] = process_time() - begin
        if not head:
            head = ["data", *found]
            print(line(head), line(["---"] * len(head)), sep="\n")
        cells = [
            f"{np.mean(scores):.3f} ({seconds[family]:.1f} s)" for family, scores in found.items()
        ]
        print(line([f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", *cells]))
        sizes = {"n_train": FOLDS - 1, "n_test": 1}
        apart = {
            family: paired_difference(found["heat, ovr"], scores, **sizes).words
            for family, scores in found.items()
        }
        print(f"    heat less: {apart}", file=sys.stderr, flush=True)
        told(f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", found, seconds)


def told(what: str, found: Mapping[str, Scores], seconds: Mapping[str, float]) -> None:
    """Say what the heat kernel has in both ways, beside the best of scikit-learn's classes."""
    score = {family: float(np.mean(scores)) for family, scores in found.items()}
    peers = {
        name: max((one for one in score if one.startswith(name)), key=lambda one: score[one])
        for name in ("SVC", "LinearSVC")
    }
    topic: Topic = "texts" if what.startswith(TEXTS) else "search"
    for kernel in ("heat", "heat on tf-idf"):
        ways = [f"{kernel}, {way}" for way in WAYS]
        scores = [max(score[way] for way in ways), *(score[one] for one in peers.values())]
        taken = sum(seconds[way] for way in ways)
        theirs = {name: seconds[one] for name, one in peers.items()}
        record(topic, f"{what}, {kernel}", taken, "s of processor", theirs, scores=scores)


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--only", default="", help="data sets whose names begin so, with commas")
    options = parsed(parser)
    known = data_sets(options.data)
    sets = {name: known[name] for name in SETS if name in known}
    if options.data is not None:
        sets = {"WebKB": partial(webkb, options.data), **sets}
    begun = tuple(options.only.split(","))
    warnings.simplefilter("ignore")
    compare({name: read for name, read in sets.items() if name.startswith(begun)})


if __name__ == "__main__":
    main()
