"""Nested cross-validation on tables of microbes, beside other methods and scores that are stored.

Run `python nested.py DIR [SEEDS [FOLDS]]`, where DIR has tables of MLRepo, `NAME.tsv.gz`. In each
of ten stratified folds, kernel, map, time and C are searched on the training part alone, and the
model is scored on the test part; SEEDS times, with folds of the seeds 100, 101, ... Logistic
regression, whose C is chosen on the training part, and a random forest have the same folds.
"""

import csv
import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

import dhsk

STORED = {
    "gevers_ileum": (0.661, 0.705, 0.710),
    "gevers_rectum": (0.777, 0.786, 0.812),
    "qin2012": (0.664, 0.663, 0.654),
    "qin2014": (0.860, 0.848, 0.858),
    "ravel_nugent-category": (0.953, 0.956, 0.948),
    "ravel_white-black": (0.638, 0.653, 0.622),
    "yatsunenko_malawi-venezuela": (1.000, 1.000, 0.975),
}
"""Mean accuracies over these folds of KernelBiome, its Aitchison kernels alone, and a random
forest, from the runs published with S. Huang et al., PLoS Computational Biology 19 (2023)."""

HEADING = "        dhsk      logistic        forest dhsk - logistic  dhsk - forest"
METRICS = {"accuracy": accuracy_score, "balanced accuracy": balanced_accuracy_score}


def read(path: Path) -> tuple[Any, Any, Any]:
    """Counts of the taxa that some sample has, labels, and lineages of these taxa."""
    with gzip.open(path, "rt") as lines:
        header, *rows = csv.reader(lines, delimiter="\t")
    counts = np.array([row[2:] for row in rows], dtype=float)
    found = counts.any(axis=0)
    return counts[:, found], np.array([row[1] for row in rows]), np.array(header[2:])[found]


def heat(X: Any, y: Any) -> Any:
    """Search kernel, map, time and C, and fit the model that is taken."""
    out = dhsk.Output(baselines=False)
    found = dhsk.cross_validate(X, y, sphere_map="auto", refit=True, out=out)
    return found.best_estimator_


def logistic(X: Any, y: Any) -> Any:
    """Fit logistic regression to centred log-ratios of counts + 1."""
    C = {"logisticregression__C": np.logspace(-4, 4, 9)}
    regression = LogisticRegression(max_iter=10_000)
    return GridSearchCV(make_pipeline(FunctionTransformer(log_ratios), regression), C).fit(X, y)


def log_ratios(X: Any) -> Any:
    """Logarithms of counts + 1, less their mean in each sample."""
    logs = np.log1p(X)
    return logs - logs.mean(axis=1, keepdims=True)


def forest(X: Any, y: Any) -> Any:
    """Fit a random forest to proportions."""
    trees = RandomForestClassifier(500, random_state=0)
    return make_pipeline(Normalizer("l1"), trees).fit(X, y)


def score(X: Any, y: Any, folds: int, seed: int) -> list[Any]:
    """Scores by fold, metric and method: dhsk, logistic regression, forest."""
    scores = []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y):
        said = [fit(X[train], y[train]).predict(X[test]) for fit in (heat, logistic, forest)]
        scores.append([[of(y[test], one) for one in said] for of in METRICS.values()])
    return scores


def summary(scores: Any) -> Any:
    """Means of methods and of paired differences to them, and squared standard errors.

    `scores` is (folds, metrics, methods), the summary (2, metrics, columns).
    """
    columns = np.concatenate([scores, scores[..., :1] - scores[..., 1:]], axis=-1)
    return np.array([columns.mean(axis=0), columns.var(axis=0, ddof=1) / len(columns)])


def main(folder: str, seeds: str = "1", folds: str = "10") -> None:
    """Print a table of each metric."""
    found: dict[str, Any] = {}
    for path in sorted(Path(folder).glob("*.tsv.gz")):
        name = path.name.removesuffix(".tsv.gz")
        X, y, _ = read(path)
        print(f"{name}: {len(y)} samples, {X.shape[1]:,} taxa", file=sys.stderr)
        scores = [one for seed in range(int(seeds)) for one in score(X, y, int(folds), 100 + seed)]
        found[name] = summary(np.array(scores))
    means, variances = np.mean(list(found.values()), axis=0)
    found["mean"] = means, variances / len(found)
    for number, metric in enumerate(METRICS):
        print(f"{metric + ', mean of folds':33} {HEADING}")
        for name, (mean, variance) in found.items():
            print_line(name, mean[number], variance[number] ** 0.5)
    print(f"{'accuracy, stored':33}  KernelBiome     Aitchison        forest")
    stored = {name: STORED.get(name, (np.nan,) * 3) for name in found if name != "mean"}
    for name, three in (stored | {"mean": np.mean(list(stored.values()), axis=0)}).items():
        print(f"{name:33}", *(f"{one:13.3f}" for one in three))


def print_line(name: str, means: Any, errors: Any) -> None:
    """Means, and differences with a sign, with their standard errors."""
    columns = zip("---++", means, errors, strict=True)
    print(f"{name:33}", *(f"{mean:{sign}.3f} ± {error:.3f}" for sign, mean, error in columns))


if __name__ == "__main__":
    main(*sys.argv[1:])
