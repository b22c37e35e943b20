"""Scores of classifiers without any parameter, and the rules for a time and C that were tried.

Run as ``python tests/benchmarks/defaults.py`` for the table of `HeatSVC()`, with pairs of classes
and with each class against the rest too, and `NystromSVC()` beside their former defaults,
scikit-learn's `SVC()` on scaled columns and `LinearSVC()`; with ``--rules`` for the mean scores of
all pairs of a spread and a strength, see `dhsk.estimators.automatic`. Both print Markdown.
``--only wine,iris`` takes some of the data sets.
Those that are not in scikit-learn are read from the folder in DHSK_DATA, and left out without it.
Folds are shuffled: five, thrice with other seeds below 1,000 samples. Words and mutations are
weighed by tf-idf for scikit-learn's classifiers, other columns are scaled to a variance of 1.
"""

import argparse
import csv
import gzip
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import dhsk
from dhsk.validation.start import heat_spread, scale_at

SPREADS = (0.4, 0.5, 0.6, 0.7, 0.8)
STRENGTHS = (1.0, 2.0, 3.0, 5.0, 10.0)
FEW = 1000
"""Data sets of fewer samples are cut into folds three times."""
MOST = 1500
"""Samples of larger data sets that are taken, at random."""

TABLES = {
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
}


def some(n: int, most: int = MOST) -> Any:
    """Numbers of the samples that are taken."""
    return np.random.default_rng(0).permutation(n)[:most]


def of_scikit_learn(name: str) -> tuple[Any, Any]:
    """A bundled table; columns as they are, or from 0 to 1."""
    X, y = TABLES[name.partition(",")[0]](return_X_y=True)
    return (MinMaxScaler().fit_transform(X) if "," in name else X), y


def mnist(path: Path, most: int = MOST) -> tuple[Any, Any]:
    """Images of handwritten digits."""
    with np.load(path) as kept:
        chosen = some(len(kept["y_train"]), most)
        return kept["X_train"][chosen].reshape(len(chosen), -1) / 1.0, kept["y_train"][chosen]


def newsgroups(path: Path, most: int = MOST) -> tuple[Any, Any]:
    """Words of posts, but for those of one post."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        posts = [line.split("\t", 3) for line in file]
    chosen = [posts[number] for number in some(len(posts), most)]
    counts = CountVectorizer(min_df=2).fit_transform([post[3] for post in chosen])
    return counts.astype(float), np.array([post[1] for post in chosen])


def tumours(path: Path, most: int = MOST) -> tuple[Any, Any]:
    """Mutations of genes, and the kind of the tumour."""
    with np.load(path) as kept:
        whole = csr_array((kept["data"] / 1.0, kept["indices"], kept["indptr"]), kept["shape"])
        chosen = some(whole.shape[0], most)
        return whole[chosen], kept["labels"][chosen]


def microbiome(path: Path) -> tuple[Any, Any]:
    """Counts of taxa."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return np.array([row[2:] for row in rows], dtype=float), np.array([row[1] for row in rows])


def data_sets(folder: Path | None) -> Mapping[str, Callable[[], tuple[Any, Any]]]:
    """Functions that read samples and labels, by name."""
    found = {name: partial(of_scikit_learn, name) for name in TABLES}
    found |= {f"{name}, 0 to 1": partial(of_scikit_learn, f"{name}, 0 to 1") for name in TABLES}
    if folder is None:
        return found
    found["MNIST"] = partial(mnist, folder / "mnist" / "mnist70k.npz")
    found["newsgroups"] = partial(newsgroups, folder / "newsgroups" / "20news_bydate.tsv.gz")
    found["tumours"] = partial(tumours, folder / "tcga" / "tcga_mc3_counts.npz")
    for path in sorted((folder / "microbiome").glob("*.tsv.gz")):
        found[path.name.removesuffix(".tsv.gz")] = partial(microbiome, path)
    return found


def folds_of(n: int) -> RepeatedStratifiedKFold:
    """Folds that all classifiers share."""
    return RepeatedStratifiedKFold(n_splits=5, n_repeats=3 if n < FEW else 1, random_state=0)


def classifiers(X: Any) -> dict[str, Any]:
    """What is compared, each without parameters."""
    scaled: Callable[[], Any] = TfidfTransformer if issparse(X) else StandardScaler
    return {
        "HeatSVC()": dhsk.HeatSVC(),
        "pairs of classes": dhsk.HeatSVC(multi_class="ovo"),
        "each against the rest": dhsk.HeatSVC(multi_class="ovr"),
        "NystromSVC()": dhsk.NystromSVC(random_state=0),
        "HeatSVC(1, 1)": dhsk.HeatSVC(1.0, 1.0),
        "scaled SVC()": make_pipeline(scaled(), SVC()),
        "LinearSVC()": make_pipeline(scaled(), LinearSVC(max_iter=20_000)),
    }


def line(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def compare(sets: Mapping[str, Any]) -> None:
    """Print mean scores of classifiers without parameters."""
    names = list(classifiers(np.zeros(0)))
    print(line(["samples", *names]), line(["---", *["---:"] * len(names)]), sep="\n")
    for name, read in sets.items():
        X, y = read()
        cells = [
            f"{cross_val_score(model, X, y, cv=folds_of(len(y))).mean():.3f}"
            for model in classifiers(X).values()
        ]
        print(line([f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", *cells]), flush=True)


def scores_of_rules(X: Any, y: Any) -> Any:
    """Mean scores, (spreads, strengths), where time and C are those of the samples of a fit."""
    cosines = np.asarray(dhsk.CosineKernel()(dhsk.hyperspherical_map(X)))
    folds = list(folds_of(len(y)).split(X, y))
    found = np.zeros((len(SPREADS), len(STRENGTHS), len(folds)))
    for fold, (train, test) in enumerate(folds):
        among = cosines[np.ix_(train, train)]
        upper = among[np.triu_indices(len(train), 1)]
        for i, spread in enumerate(SPREADS):
            scale = scale_at(heat_spread(upper, X.shape[1]), spread, X.shape[1])
            kernel = dhsk.HeatKernel.at_scale(X.shape[1], scale)
            K, new = kernel.of_cosine(among), kernel.of_cosine(cosines[np.ix_(test, train)])
            variance = 1 - kernel.of_cosine(upper).mean()
            for j, strength in enumerate(STRENGTHS):
                svc = SVC(C=strength / variance, kernel="precomputed").fit(K, y[train])
                found[i, j, fold] = svc.score(new, y[test])
    return found.mean(axis=2)


def rules(sets: Mapping[str, Any]) -> None:
    """Print the scores of all rules, and their means over the data sets."""
    found = {}
    for name, read in sets.items():
        found[name] = scores_of_rules(*read())
        print_scores(name, found[name])
    print_scores("mean of all", np.mean(list(found.values()), axis=0))
    best = np.array([scores.max() for scores in found.values()])[:, None, None]
    print_scores("largest loss to the best rule", (best - list(found.values())).max(axis=0))


def print_scores(name: str, scores: Any) -> None:
    """Print scores by spread and strength."""
    print(line([name, *(f"C = {strength:g}/variance" for strength in STRENGTHS)]))
    print(line(["---", *["---:"] * len(STRENGTHS)]))
    for spread, row in zip(SPREADS, scores, strict=True):
        print(line([f"spread {spread:g}", *(f"{score:.3f}" for score in row)]))
    print(flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Scores without parameters.")
    parser.add_argument("--rules", action="store_true", help="scores of all rules")
    parser.add_argument("--only", help="data sets whose names begin so, separated by commas")
    options = parser.parse_args()
    folder = os.environ.get("DHSK_DATA")
    sets = data_sets(None if folder is None else Path(folder))
    begun = tuple((options.only or "").split(","))
    sets = {name: read for name, read in sets.items() if name.startswith(begun)}
    warnings.simplefilter("ignore")
    (rules if options.rules else compare)(sets)


if __name__ == "__main__":
    main()
