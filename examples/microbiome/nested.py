"""Nested cross-validation on tables of microbes, beside scores that others have stored.

Run `python nested.py DIR [SEEDS [FOLDS]]`, where DIR has tables of MLRepo, `NAME.tsv.gz`. In each
of ten stratified folds, kernel, map, time and C are searched on the training part alone, and the
model is scored on the test part; SEEDS times, with folds of the seeds 100, 101, ...
"""

import csv
import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

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


def read(path: Path) -> tuple[Any, Any, Any]:
    """Counts of the taxa that some sample has, labels, and lineages of these taxa."""
    with gzip.open(path, "rt") as lines:
        header, *rows = csv.reader(lines, delimiter="\t")
    counts = np.array([row[2:] for row in rows], dtype=float)
    found = counts.any(axis=0)
    return counts[:, found], np.array([row[1] for row in rows]), np.array(header[2:])[found]


def score(X: Any, y: Any, folds: int, seed: int) -> list[float]:
    """Accuracy in each fold."""
    scores = []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y):
        out = dhsk.Output(baselines=False)
        found = dhsk.cross_validate(X[train], y[train], sphere_map="auto", refit=True, out=out)
        scores.append(found.best_estimator_.score(X[test], y[test]))
    return scores


def main(folder: str, seeds: str = "1", folds: str = "10") -> None:
    """Print the table."""
    print(f"{'accuracy, mean of folds':28} {'dhsk':>13} KernelBiome Aitchison  forest")
    means: list[Any] = []
    for path in sorted(Path(folder).glob("*.tsv.gz")):
        name = path.name.removesuffix(".tsv.gz")
        X, y, _ = read(path)
        scores = [one for seed in range(int(seeds)) for one in score(X, y, int(folds), 100 + seed)]
        error = np.std(scores, ddof=1) / np.sqrt(len(scores))
        means.append((np.mean(scores), error**2, *STORED.get(name, (np.nan,) * 3)))
        print_line(name, means[-1])
    mean, variance, *stored = np.mean(means, axis=0)
    print_line("mean", [mean, variance / len(means), *stored])


def print_line(name: str, numbers: Any) -> None:
    """A mean, its variance, and stored means."""
    mean, variance, *stored = numbers
    ours = f"{mean:.3f} ± {variance**0.5:.3f}"
    print(f"{name:28} {ours:>13} {stored[0]:11.3f} {stored[1]:9.3f} {stored[2]:7.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
