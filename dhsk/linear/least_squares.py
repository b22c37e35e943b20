"""Ridge regression on features: sums of one pass, and the coefficients of all targets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dhsk.arrays import Floats
from dhsk.linear.features import Features, sum_of


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients of features, with their certificate."""

    coef: Floats
    """(width, targets)."""
    intercepts: Floats
    """(targets,); 0 without an intercept."""
    residual: Floats
    """Norm of each target's gradient relative to that at 0, (targets,)."""


def fit_ridge(
    features: Features, targets: Floats, weights: Floats, alpha: float, *, intercept: bool
) -> RidgeFit:
    """Minimise sum_i s_i |y_i - z_i'w - b|^2 + alpha |w|^2 for each target, in one pass.

    targets are (N, J), and weights s, (N,), at least 0.
    """
    sums = sum_of(features.map(_sums, (targets, weights), features.root))
    width = features.width
    A, B = sums[:, : width + 1], sums[:, width + 1 :]
    H, c = A[:width, :width], B[:width]
    if intercept:
        total = A[width, width]
        of_features, of_targets = A[:width, width] / total, B[width] / total
        H = H - total * np.outer(of_features, of_features)
        c = c - total * np.outer(of_features, of_targets)
    factor = cho_factor(H + alpha * np.eye(width), lower=True)
    coef = cho_solve(factor, c)
    coef += cho_solve(factor, c - _times(H, alpha, coef))  # what rounding has left
    left = np.linalg.norm(c - _times(H, alpha, coef), axis=0)
    size = np.linalg.norm(c, axis=0)
    residual = np.divide(left, size, out=np.zeros_like(left), where=size > 0)
    if not intercept:
        return RidgeFit(coef, np.zeros(coef.shape[1]), residual)
    return RidgeFit(coef, of_targets - of_features @ coef, residual)


def _times(H: Floats, alpha: float, coef: Floats) -> Floats:
    """(H + alpha I) coef."""
    return np.asarray(H @ coef + alpha * coef)


def _sums(
    blocks: Iterable[tuple[slice, NDArray[Any]]],
    targets: Floats,
    weights: Floats,
    root: Floats | None,
) -> Floats:
    """Weighted products of a span's features and 1 with themselves and with targets.

    They are (width + 1, width + 1 + targets). Kernel values become features before they are
    squared: products of kernel values would lose the small components.
    """
    total: Any = None
    for part, values in blocks:
        Z = values.astype(np.float64, copy=False)
        Z = Z if root is None else Z @ root
        M = np.hstack([Z, np.ones_like(Z[:, :1])])
        found = (M * weights[part][:, None]).T @ np.hstack([M, targets[part]])
        total = found if total is None else total + found
    return cast(Floats, total)
