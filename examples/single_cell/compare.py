"""Beside `dhsk cv` on the same folds: what people do today, and which types are taken for which.

Run `python compare.py cells.h5ad cells-cv/predictions.csv PICTURE.png`.
"""

import csv
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from matplotlib import pyplot as plt
from scipy.sparse import csr_array
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.svm import SVC, LinearSVC


def main(file: str, predictions: str, picture: str) -> None:
    """Score two SVMs on logarithms, and draw the mistakes of the heat kernel."""
    with Path(predictions).open(newline="", encoding="utf-8") as table:
        cells = list(csv.DictReader(table))
    true, predicted = (np.array([cell[name] for cell in cells]) for name in ("true", "predicted"))
    folds = PredefinedSplit([int(cell["fold"]) for cell in cells])
    with h5py.File(file) as h5ad:
        x: Any = h5ad["X"]
        X: Any = csr_array((x["data"][:], x["indices"][:], x["indptr"][:]), tuple(x.attrs["shape"]))
    logs = np.log1p(1e4 * X / X.sum(axis=1)[:, None]).toarray()

    print(f"{'heat kernel of dhsk cv':22} {np.mean(true == predicted):.4f}")
    for model, grid in (
        (LinearSVC(), {"C": [0.003, 0.01, 0.03, 0.1, 1.0]}),
        (SVC(), {"C": [0.3, 1.0, 3.0, 10.0, 30.0]}),
    ):
        search = GridSearchCV(model, grid, cv=folds).fit(logs, true)
        name = f"logarithms, {type(model).__name__}"
        print(f"{name:22} {search.best_score_:.4f}, C = {search.best_params_['C']:g}")

    figure, axes = plt.subplots(figsize=(8, 7), layout="constrained")
    ConfusionMatrixDisplay.from_predictions(
        true, predicted, ax=axes, xticks_rotation="vertical", cmap="Blues",
        colorbar=False,
    )  # fmt: skip
    axes.set(xlabel="predicted type of held-out cells", ylabel="true type", title="number of cells")
    figure.savefig(picture, dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
