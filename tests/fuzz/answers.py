"""The right answers: kernel values in extended precision, by formulas that dhsk does not use."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

import dhsk
from dhsk.samples import open_samples

MAPPED: Final = ("heat", "parametrix", "cosine")
"""Kernels of unit vectors: samples are counts unless they are told otherwise."""

CLOSE: Final = {np.dtype("float64"): 1e-9, np.dtype("float32"): 1e-5}
"""Differences that rounding explains, as a part of the largest value that a kernel can have: 1e-16
of a cosine is multiplied by at most 6 here, of a squared distance by the squared norms."""


def expected(X: Any, kernel: str) -> Any:
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
            return np.exp(-np.maximum(squares[:, None] + squares - 2 * products, 0) / 2)
        case "cosine":
            return products
    time, cosines = math.log(dim) / dim, np.clip(products, -1, 1)
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
    if words[0] == "gram" and not options - {
        "--out",
        "--cluster",
        "--memory",
        "--tile",
        "--layout",
    }:
        blocks = open_samples(words[1]).blocks(1000)
        X = np.vstack([b if isinstance(b, np.ndarray) else b.toarray() for b in blocks])
        check_gram(X, "heat", np.asarray(dhsk.open_gram(given["--out"])))
    if words[0] == "predict" and words[2].endswith(".npy") and options == {"--out"}:
        kind = dhsk.NystromSVC if words[1].startswith("rank") else dhsk.HeatSVC
        right = kind.load(words[1]).predict(np.load(words[2]))
        said = Path(given["--out"]).read_text().split()
        assert said == ["label", *right.tolist()], said
