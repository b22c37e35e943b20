"""Labels of samples by a model file of dhsk, with numpy alone: what a port has to compute.

Run `python predict_without_dhsk.py MODEL SAMPLES.npy`; it prints a label a line. MODEL is an exact
SVM of `dhsk train`, `HeatSVC.save` or `SVC.save`: an archive of arrays and a JSON header.
"""

import json
import sys
from itertools import combinations
from typing import Any

import numpy as np


def heat_less_one(c: Any, n: int, t: float) -> Any:
    """Sum a_l (P_l(c) - 1), Theorem 1 of Zhao & Song (2017): the a_l are positive and sum to 1."""
    k: Any = np.arange(1, 20_000)
    ratios = np.log((2 * k + n) * (k + n - 2) / ((2 * k + n - 2) * (k + 1))) - (2 * k + n - 1) * t
    logs = np.cumsum([np.log(n) - (n - 1) * t, *ratios])
    a = np.exp(logs - max(logs.max(), 0.0))
    a /= a.sum() + np.exp(-max(logs.max(), 0.0))
    before, now, total = 0.0 * c, c - 1, 0.0 * c
    for k, weight in enumerate(a[: np.flatnonzero(a > 1e-24 * a.max())[-1] + 1], start=1):
        total += weight * now
        before, now = now, ((2 * k + n - 2) * (c * now + (c - 1)) - k * before) / (k + n - 2)
    return total


def kernel_values(kernel: Any, unit: float, X: Any, Y: Any) -> Any:
    """K - 1 + unit: where K is nearly 1, the file has a unit that keeps the digits of 1 - K."""
    name, products = kernel["name"], X @ Y.T
    if name in ("linear", "polynomial", "scaled polynomial"):
        scaled = kernel.get("scale", 1.0) * products + kernel.get("offset", 0.0)
        return scaled ** kernel.get("degree", 1)
    if name == "gaussian":
        squares = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1) - 2 * products
        return np.expm1(np.maximum(squares, 0) / (-2 * kernel["sigma"] ** 2)) + unit
    if name not in ("heat", "cosine"):
        raise SystemExit(f"the kernel {name} is not in this script")
    c = products.clip(-1, 1)
    return (c - 1 if name == "cosine" else heat_less_one(c, kernel["dim"], kernel["time"])) + unit


def predict(path: str, X: Any) -> Any:
    """Labels of samples (N, dim): one-vs-one by votes, one-vs-rest by the greatest decision."""
    model: Any = dict(np.load(path))  # without pickles, as is numpy's default
    header = json.loads(model["header"].tobytes())
    if header["format"] != "dhsk svm model":
        raise SystemExit(f"{path} is a {header['format']}, and no exact SVM")
    if header["sphere_map"] != "identity":
        X = X * model.get("feature_weights", 1.0)  # of tf-idf
        X = np.sqrt(X.clip(0)) if header["sphere_map"] == "hyperspherical" else X
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X = np.where(norms > 0, X / np.where(norms > 0, norms, 1), X.shape[1] ** -0.5)
    if "rows" not in model:  # CSR; a NaN stands for the image of a sample of zeros
        rows = model["rows"] = np.zeros(model["rows_shape"])
        rows[np.repeat(np.arange(len(rows)), np.diff(model["rows_indptr"])),
             model["rows_indices"]] = model["rows_data"]  # fmt: skip
        rows[np.isnan(rows[:, 0])] = X.shape[1] ** -0.5
    K = kernel_values(header["kernel"], header["unit"], X, model["rows"].astype(float))
    coef, classes, ends = model["dual_coef"], model["classes"], np.cumsum(model["n_support"])
    if len(coef) == len(classes):
        return classes[(K @ coef.T + model["intercepts"]).argmax(axis=1)]
    own = [slice(end - size, end) for end, size in zip(ends, model["n_support"], strict=True)]
    votes, sample = np.zeros((len(X), len(classes))), np.arange(len(X))
    pairs = zip(combinations(range(len(classes)), 2), model["intercepts"], strict=True)
    for (i, j), intercept in pairs:
        decisions = K[:, own[i]] @ coef[j - 1, own[i]] + K[:, own[j]] @ coef[i, own[j]] + intercept
        votes[sample, np.where(decisions > 0, i, j)] += 1
    return classes[votes.argmax(axis=1)]


if __name__ == "__main__":
    print(*predict(sys.argv[1], np.load(sys.argv[2])), sep="\n")
