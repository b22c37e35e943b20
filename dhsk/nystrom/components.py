"""Sums, products and principal components of features, and the normalization that makes them."""

from collections.abc import Iterable
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import ROWS, Floats, blocks
from dhsk.devices import current_device, fetched
from dhsk.errors import InputError
from dhsk.nystrom.kept_values import KeptPasses
from dhsk.nystrom.spans import FeatureMatrix
from dhsk.solvers.eigenvalues import largest_pairs

Parts = Iterable[tuple[slice, NDArray[Any]]]
"""Values of a span, from `Span.blocks`."""


_STRIPS: Final = 4
"""Strips of a triangular root: 5/8 of the products of a full one."""

_EIGEN_WORK: Final = 4
"""Multiplications of all eigenvectors, of each of k cubed; a guess."""


def squared_length(parts: Parts, root: NDArray[Any]) -> float:
    """Sum of squares of a span's features K root."""
    strips = _strips(root)
    return _squares(
        _times(K, root, strips, np.empty_like(K, shape=(len(K), root.shape[1]))) for _, K in parts
    )


def write_features(parts: Parts, out: NDArray[Any], root: NDArray[Any]) -> float:
    """Write a span's features K root to out, (n, r); return what `squared_length` does."""
    strips = _strips(root)
    return _squares(_times(K, root, strips, out[part]) for part, K in parts)


def _strips(root: NDArray[Any]) -> list[tuple[slice, slice]]:
    """Rows and columns of root that are multiplied: by strips of columns, if it is triangular."""
    m, r = root.shape
    if np.tril(root, -1).any():
        return [(slice(0, m), slice(0, r))]
    return [(slice(0, part.stop), part) for part in blocks(r, -(-r // _STRIPS))]


def _times(
    K: NDArray[Any], root: NDArray[Any], strips: list[tuple[slice, slice]], out: NDArray[Any]
) -> NDArray[Any]:
    """K root, written to out."""
    for rows, columns in strips:
        np.matmul(K[:, rows], root[rows, columns], out=out[:, columns])
    return out


def _squares(parts: Iterable[NDArray[Any]]) -> float:
    return sum(float(np.einsum("ij,ij->i", Z, Z).sum(dtype=np.float64)) for Z in parts)


def components(Z: FeatureMatrix, k: int, passes: KeptPasses) -> tuple[Floats, Floats, float]:
    """Leading k < r principal components of features Z, (N, r), not centred.

    Returned are V, orthonormal, (r, k), float64, with the components Z V in descending order,
    their squared norms, (k,), and the sum of squares of Z.
    """
    root = None if Z.root is None else Z.root.astype(Z.dtype)
    S = passes.sum(Z, _products, (), root)
    weights, V = largest_pairs(S, k)
    return V[:, ::-1], weights[::-1], float(np.trace(S))


def _products(parts: Parts, root: NDArray[Any] | None) -> Floats:
    """Z' Z of a span; blocks are summed in float64."""
    total: Any = 0.0
    for _, values in parts:
        Z = values if root is None else values @ root
        total += (Z.T @ Z).astype(np.float64)
    return cast(Floats, total)


def turned(Z: FeatureMatrix, values: NDArray[Any], V: Floats, passes: KeptPasses) -> NDArray[Any]:
    """Features in memory, values of Z, (N, r), times V, (r, k); a view of the same memory."""
    k = V.shape[1]
    passes.sum(Z, _turn, (), V.astype(Z.dtype), written=[values[:, :k]])
    return narrowed(values, k)


def _turn(parts: Parts, V: NDArray[Any]) -> float:
    for _, Z in parts:
        Z[:, : V.shape[1]] = Z @ V
    return 0.0


def narrowed(values: NDArray[Any], width: int) -> NDArray[Any]:
    """First columns of a C-ordered array, made contiguous in the same memory."""
    if width == values.shape[1]:
        return values
    flat = values.reshape(-1)
    for part in blocks(len(values), ROWS):  # writes stay before the rows that are still to be read
        flat[part.start * width : part.stop * width] = values[part, :width].reshape(-1)
    return flat[: len(values) * width].reshape(-1, width)


def inverse_root(K: Floats) -> Floats:
    """R, (k, rank), float64, with R R' = K^+, largest eigenvalue of K first.

    Eigenvalues within rounding of 0 are dropped. Rounding of the entries of K may move them by k
    eps (of K's type) times the largest diagonal entry; computing them, by k eps (of float64) times
    the largest eigenvalue; and the most negative eigenvalue shows how far rounding did reach.

    Raises InputError if K has an eigenvalue below -sqrt(eps) times the largest, or is zero.
    """
    values, vectors = _eigenpairs(K.astype(np.float64))
    eps, largest = float(np.finfo(K.dtype).eps), float(np.abs(values).max())
    if values[0] < -np.sqrt(eps) * largest:
        raise InputError(
            f"the kernel matrix of the {len(K)} landmarks has eigenvalue {values[0]:.3g}: "
            "choose a positive semi-definite kernel"
        )
    rounding = max(eps * float(K.diagonal().max()), float(np.finfo(np.float64).eps) * largest)
    cut = max(len(K) * rounding, -values[0])
    kept = np.flatnonzero(values > cut)[::-1]
    if not kept.size:
        raise InputError(f"the kernel is 0 between all {len(K)} landmarks: choose others")
    root: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return root


def _eigenpairs(K: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix, on a device if it pays."""
    device = current_device()
    if device is None or not device.pays(_EIGEN_WORK * len(K) ** 3, 3 * K.nbytes):
        return cast(tuple[Floats, Floats], np.linalg.eigh(K))
    with device.turn():
        return cast(
            tuple[Floats, Floats], fetched(device, tuple(device.xp.linalg.eigh(device.put(K))))
        )
