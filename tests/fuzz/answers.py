"""The right answers: kernel values in extended precision, by formulas that dhsk does not use."""

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC

import dhsk
from dhsk.samples import open_samples, read_labels

MAPPED: Final = ("heat", "parametrix", "cosine")
"""Kernels of unit vectors: samples are counts unless they are told otherwise."""

CLOSE: Final = {np.dtype("float64"): 1e-9, np.dtype("float32"): 1e-5}
"""Differences that rounding explains, as a part of the largest value that a kernel can have: 1e-16
of a cosine is multiplied by at most 6 here, of a squared distance by the squared norms."""

UNDECIDED: Final = 0.02
"""Decisions next to 0 that two solvers may differ in: each stops at a violation of 1e-3, and of 24
samples, of which few are free, an intercept moves by some of that."""


def expected(X: Any, kernel: str, time: float | None = None) -> Any:
    """Gram matrix of dense samples, (N, N), for a kernel with the parameters that its name has."""
    X = np.asarray(X, np.longdouble).reshape(len(X), -1)
    if kernel in MAPPED:
        X = _on_the_sphere(X)
    products = np.stack([(row * X).sum(axis=1) for row in X])  # no BLAS
    dim = X.shape[1]
    match kernel:
        case "linear":
            return products
        case "polynomial":
            return (products + 1) ** 2
        case "gaussian":
            squares = np.diagonal(products)
            spread = dim * X.var()  # scikit-learn's gamma="scale" is 1 over it, or 1
            width = float(f"{np.sqrt((spread if spread > 1e-300 else 1.0) / 2):.3g}")
            distances = np.maximum(squares[:, None] + squares - 2 * products, 0)
            return np.exp(-distances / (2 * np.longdouble(width) ** 2))
        case "cosine":
            return products
    time, cosines = time or math.log(dim) / dim, np.clip(products, -1, 1)
    if kernel == "parametrix":
        return np.exp(-(np.arccos(cosines) ** 2) / (4 * time))
    return _heat(cosines, dim, time)


def _on_the_sphere(X: Any) -> Any:
    """Square roots of proportions (Zhao & Song 2017, Definition 1); of zeros the centre."""
    X = np.where(X.any(axis=1, keepdims=True), X, 1)
    return np.sqrt(X / X.sum(axis=1, keepdims=True))


def _heat(cosines: Any, dim: int, time: float) -> Any:
    """The series (Zhao & Song 2017, Theorem 1) by the recurrence of its polynomials, dim >= 2."""
    before, now = np.ones_like(cosines), cosines
    total, whole, harmonics = np.ones_like(cosines), 1.0, 1.0
    for level in range(1, 400):
        if dim == 2:
            harmonics = 2.0
        else:
            harmonics = (2 * level + dim - 2) / (dim - 2) * math.comb(level + dim - 3, level)
        weight = math.exp(-level * (level + dim - 2) * time) * harmonics
        total, whole = total + weight * now, whole + weight
        following = ((2 * level + dim - 2) * cosines * now - level * before) / (level + dim - 2)
        before, now = now, following
        if weight < 1e-20 * whole:
            break
    return total / whole


def check_gram(X: Any, kernel: str, found: Any) -> None:
    """Compare a Gram matrix with the right one."""
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, np.float64)
    right = expected(X, kernel)
    assert found.shape == right.shape, (found.shape, right.shape)
    norm2 = max(1.0, float((X.astype(np.longdouble) ** 2).sum(axis=-1).max()))
    largest = {"linear": norm2, "gaussian": norm2, "polynomial": (norm2 + 1) ** 2}.get(kernel, 1.0)
    off = np.abs(found - right).max() / largest
    assert off <= CLOSE[found.dtype], f"off by {off:.3g} of the largest value"


def check_command(words: list[str]) -> None:
    """Compare what a command has written with the right answer, where its words let it be known."""
    given = dict(pairwise(words))
    options = {word for word in words if word.startswith("--")}
    plain = len(options) == sum(word.startswith("--") for word in words)
    match words[0]:
        case "gram" if not options - {"--out", "--cluster", "--memory", "--tile", "--layout"}:
            check_gram(_samples(words[1]), "heat", np.asarray(dhsk.open_gram(given["--out"])))
        case "predict" if words[2].endswith(".npy") and options == {"--out"}:
            kind = dhsk.NystromSVC if words[1].startswith("rank") else dhsk.HeatSVC
            right = kind.load(words[1]).predict(np.load(words[2]))
            said = Path(given["--out"]).read_text().split()
            assert said == ["label", *right.tolist()], said
        case "train" if plain and not options - {"--labels", "--out", "--rank", "--probability"}:
            _check_model(words[1], given)
        case "cv" if plain and options >= {"--C", "--folds"} and not options - {
            "--labels", "--folds", "--C", "--time-scale", "--out", "--rank", "--kernel", "--model",
            "--cluster",
        }:  # fmt: skip
            _check_grid(words[1], given)


def _samples(source: str) -> Any:
    """All samples of a file, (N, dim)."""
    blocks = open_samples("x.npy" if source == "cosines" else source).blocks(1000)
    return np.vstack([b if isinstance(b, np.ndarray) else b.toarray() for b in blocks])


TEMPLATE: Final = {"--C": "1", "--folds": "2", "--time-scale": "1", "--rank": "4"}
"""Values of options for which the right answer is known here."""

Decide = Callable[[Any, Any], tuple[Any, Any]]
"""Classes of all samples after a fit to the labels of some, and whether each is beyond doubt."""


def _peer(
    X: Any, y: Any, kernel: str, landmarks: Any = None, time: float | None = None, C: float = 1.0
) -> Decide:
    """What scikit-learn decides on the same samples, or on features of the same landmarks."""
    K = expected(X, kernel, time).astype(np.float64)
    if landmarks is not None:
        values, vectors = np.linalg.eigh(K[np.ix_(landmarks, landmarks)])
        kept = values > 1e-6 * values[-1]  # equal landmarks leave rounding
        X = K[:, landmarks] @ (vectors[:, kept] / np.sqrt(values[kept]))

    def decide(train: Any, which: Any) -> tuple[Any, Any]:
        if landmarks is not None:
            linear = LinearSVC(C=C, dual=False, tol=1e-9, max_iter=100_000).fit(X[train], y[train])
            found = linear.decision_function(X[which]).reshape(len(which), -1)
            two = np.sort(np.hstack([-found, found]) if found.shape[1] == 1 else found)[:, -2:]
            return linear.predict(X[which]), two[:, 1] - two[:, 0] > UNDECIDED
        svm = SVC(C=C, kernel="precomputed", tol=1e-6, decision_function_shape="ovo")
        svm.fit(K[np.ix_(train, train)], y[train])
        outer = K[np.ix_(which, train)]
        found = svm.decision_function(outer).reshape(len(which), -1)
        return svm.predict(outer), (np.abs(found) > UNDECIDED).all(axis=1)

    return decide


def _check_model(source: str, given: dict[str, str]) -> None:
    """Compare the training predictions of a model with scikit-learn's."""
    X = _samples(source)
    y = read_labels(given.get("--labels", source), len(X))
    kind = dhsk.NystromSVC if "--rank" in given else dhsk.HeatSVC
    model = kind.load(given["--out"])
    landmarks = model.landmark_indices_ if "--rank" in given else None
    all_samples = np.arange(len(X))
    peer = _peer(X, y, "heat", landmarks, model.kernel_.time, model.C_)
    right, clear = peer(all_samples, all_samples)
    found = model.predict(X)
    assert (found == right)[clear].all(), (found, right, clear)


def _check_grid(source: str, given: dict[str, str]) -> None:
    """Compare the accuracies of a cross-validation with scikit-learn's."""
    if any(given[name] != value for name, value in TEMPLATE.items() if name in given):
        return
    X = _samples(source)
    y = read_labels(given.get("--labels", source), len(X))
    landmarks = None
    if "--rank" in given:  # the same seed chooses the same
        again = dhsk.cross_validate(
            X, y, time_scale=1.0, C=1.0, cv=2, low_rank=dhsk.LowRank(4), refit=True
        )
        landmarks = again.model_.indices
    decide = _peer(X, y, given.get("--kernel", "heat"), landmarks)
    folds = list(StratifiedKFold(2, shuffle=True, random_state=0).split(X, y))
    for row in json.loads((Path(given["--out"]) / "results.json").read_text())["rows"]:
        train, test = folds[row["fold"]]
        guess, clear = decide(train, test)
        score = float(np.mean(guess == y[test]))
        assert abs(row["score"] - score) <= np.mean(~clear) + 1e-12, (row, score, clear)
