"""The heat kernel beside logarithms of ratios on tables of microbes: a line of docs/choosing.md.

Run as ``python tests/benchmarks/microbes.py --data DIR``; DIR, or the environment variable
DHSK_DATA, holds `microbiome/*.tsv.gz`, tables of MLRepo. It prints the best mean balanced accuracy
of each family over five folds, shuffled thrice. The heat kernel is searched (`time_scale="auto"`),
on square roots of proportions and on centred log-ratios (`sphere_map="clr"`). Logarithms of the
others are of counts + 1, less their mean in each sample (CLR), with a linear and a Gaussian
`SVC`; their scale is such that samples have a variance of 1, C is 0.01 to 100 and gamma 0.1 to 3.
All classes weigh the same.
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from defaults import data_sets, folds_of, line
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import dhsk

C = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100]
GRIDS = {
    "CLR, linear": {"kernel": ["linear"], "C": C},
    "CLR, Gaussian": {"kernel": ["rbf"], "C": C, "gamma": [0.1, 0.3, 1, 3]},
}


def log_ratios(X: Any) -> Any:
    """Logarithms of counts over their geometric mean, in one unit for all."""
    logs = np.log1p(X)
    logs -= logs.mean(axis=1, keepdims=True)
    return logs / np.sqrt(logs.var(axis=0).sum())


def compare(X: Any, y: Any) -> dict[str, float]:
    """Best mean of each family, on the same folds."""
    common: dict[str, Any] = {
        "cv": list(folds_of(len(y)).split(X, y)),
        "scoring": "balanced_accuracy",
    }
    heat = {}
    for sphere_map in ("hyperspherical", "clr"):
        found = dhsk.cross_validate(
            X, y, time_scale="auto", sphere_map=sphere_map, multi_class="ovo",
            class_weight="balanced", out=dhsk.Output(baselines=False), **common,
        )  # fmt: skip
        heat[f"heat, {sphere_map}"] = found.best_score_
    searches = {
        name: GridSearchCV(SVC(class_weight="balanced"), grid, **common)
        for name, grid in GRIDS.items()
    }
    logs = log_ratios(X)
    return heat | {name: search.fit(logs, y).best_score_ for name, search in searches.items()}


def words(scores: Any) -> list[str]:
    """Scores as they are printed."""
    return [f"{score:.3f}" for score in scores.values()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("DHSK_DATA"))
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data DIR")
    known = data_sets(options.data)
    tables = [path.name.removesuffix(".tsv.gz") for path in (options.data / "microbiome").iterdir()]
    found: list[dict[str, float]] = []
    for name in sorted(tables):
        X, y = known[name]()
        X = X[:, X.any(axis=0)]
        found.append(compare(X, y))
        if len(found) == 1:
            print(line(["samples", *found[0]]), line(["---"] * (1 + len(found[0]))), sep="\n")
        print(line([f"{name}, {X.shape[0]} x {X.shape[1]:,}", *words(found[-1])]), flush=True)
    print(line(["mean", *words({key: np.mean([one[key] for one in found]) for key in found[0]})]))


if __name__ == "__main__":
    main()
