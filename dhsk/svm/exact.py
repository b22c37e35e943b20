"""Exact support vector classification in memory, with a certificate of its optimum."""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from dhsk.arrays import Floats

TOLERANCE = 1e-3
"""KKT violation at which LIBSVM stops, scikit-learn's own default."""

CACHE_MB = 200
"""LIBSVM's cache of kernel rows, scikit-learn's own default."""


def fit_svc(K: Floats, y: NDArray[Any], C: float, tol: float = TOLERANCE) -> SVC:
    """Fit LIBSVM on a Gram matrix.

    Parameters
    ----------
    K
        Gram matrix of the training samples, (N, N), C-ordered float64 (not copied).
    y
        Labels, (N,).
    C
        Bound of the dual coefficients.
    tol
        KKT violation at which to stop.

    Returns
    -------
    sklearn.svm.SVC
        Fitted, ``kernel="precomputed"``, one-vs-one.
    """
    return SVC(C=C, kernel="precomputed", tol=tol, cache_size=CACHE_MB).fit(K, y)


def kkt_violation(model: SVC, K: Floats, y: NDArray[Any]) -> float:
    """Largest KKT violation of a fitted classifier over all pairs of classes.

    For the dual of each pair with gradient g it is ``max(-y g over I_up) - min(-y g over I_low)``,
    LIBSVM's stopping criterion, evaluated here anew in float64 over all training samples.

    Parameters
    ----------
    model
        From `fit_svc`.
    K
        The Gram matrix that it was fitted on, (N, N).
    y
        Its labels, (N,).

    Returns
    -------
    float
        0 at the exact optimum; about the tolerance of the fit in practice.

    References
    ----------
    .. [1] R.-E. Fan, P.-H. Chen and C.-J. Lin, "Working set selection using second order
       information for training support vector machines", JMLR 6 (2005), equation 6.
    """
    pairs = combinations(range(len(model.classes_)), 2)
    return max(0.0, *(_pair_violation(model, K, y, a, b) for a, b in pairs))


def _pair_violation(model: SVC, K: Floats, y: NDArray[Any], a: int, b: int) -> float:
    """Violation of the two-class problem of classes number a and b."""
    members = np.flatnonzero((y == model.classes_[a]) | (y == model.classes_[b]))
    support, coefficients = _pair_coefficients(model, a, b)
    coef = np.zeros(len(y))
    coef[support] = coefficients
    coef = coef[members]
    first = y[members] == model.classes_[a]
    # scikit-learn turns the sign of a two-class model round: there the second class is +1.
    sign = np.where(first == (len(model.classes_) > 2), 1.0, -1.0)
    minus_y_gradient = sign - K[np.ix_(members, support)] @ coefficients
    alpha = sign * coef
    below, above = alpha < model.C, alpha > 0
    up = np.where(sign > 0, below, above)
    low = np.where(sign > 0, above, below)
    highest = minus_y_gradient[up].max(initial=-np.inf)
    lowest = minus_y_gradient[low].min(initial=np.inf)
    return max(0.0, float(highest - lowest))


def _pair_coefficients(model: SVC, a: int, b: int) -> tuple[NDArray[Any], Floats]:
    """Training indices and signed dual coefficients of the support vectors of a pair.

    LIBSVM keeps those of class a against b in row b - 1, and of b against a in row a.
    """
    ends = np.cumsum(model.n_support_)
    of_a = slice(ends[a] - model.n_support_[a], ends[a])
    of_b = slice(ends[b] - model.n_support_[b], ends[b])
    dual = model.dual_coef_
    support = np.concatenate([model.support_[of_a], model.support_[of_b]])
    return support, np.concatenate([dual[b - 1, of_a], dual[a, of_b]])
