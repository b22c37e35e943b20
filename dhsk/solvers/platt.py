"""Class probabilities: Platt's sigmoids, and one-vs-one their pairwise coupling."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.solvers.problems import MultiClass

EPS = float(np.finfo(np.float64).eps)

MAX_STEPS = 100
"""Most Newton steps, LIBSVM's limit; ten are usual."""

GRADIENT = 1e-12
"""Tolerance of the gradient, per unit of weight and of half the range of the decision values."""

RIDGE = 1e-12
"""Added to the Hessian's diagonal, as in LIBSVM: it may be singular to rounding."""

HALVINGS = 34
"""Most halvings of a Newton step, to 1e-10 of it, as in LIBSVM."""

SMALLEST = 1e-270
"""Decision values below it count as 0: a slope per unit of their range would overflow."""

MIN_PROBABILITY = 1e-7
"""Least distance of pairwise probabilities from 0 and from 1, as in LIBSVM."""


def fit_sigmoid(
    decision: Floats, positive: NDArray[np.bool_], weights: Floats | None = None
) -> tuple[float, float]:
    """Fit Platt's sigmoid P(positive | f) = 1 / (1 + exp(A f + B)), and return A and B.

    Newton's method with backtracking [1]_ minimises the cross-entropy of Platt's smoothed targets:
    (n₊ + 1) / (n₊ + 2) for the n₊ positive samples, 1 / (n₋ + 2) for the others. These keep the
    optimum finite for separable classes. A is 0 if all decision values are equal to rounding.

    Parameters
    ----------
    decision
        Decision values f of samples that the classifier was not trained on, (N,).
    positive
        Mask of the samples of the positive class, the first of the pair, (N,).
    weights
        Sample weights, (N,), at least 0; 1 by default.

    Raises
    ------
    InputError
        A decision value is not finite, or no sample has a positive weight.

    References
    ----------
    .. [1] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for
       support vector machines", Machine Learning 68 (2007), Appendix C.
    """
    weights = np.ones(len(decision)) if weights is None else weights
    used = weights > 0
    f, positive, weights = decision[used], positive[used], weights[used]
    bad = np.count_nonzero(~np.isfinite(f))
    if bad or len(f) == 0:
        raise InputError(
            f"A sigmoid needs finite decisions of at least one sample, got {len(f)} with a "
            f"positive weight of which {bad} are not finite: check the classifier and the weights."
        )
    n_positive = float(weights[positive].sum())
    n_negative = float(weights[~positive].sum())
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    unit, center, half = _to_unit(f)
    start = math.log((n_negative + 1) / (n_positive + 1))
    A, B = _minimise(unit, targets, weights / weights.sum(), start)
    return A / half, B - A / half * center


def couple(pairwise: Floats) -> Floats:
    """Class probabilities, (N, k), from pairwise ones: Wu, Lin and Weng's second approach [1]_.

    They minimise the sum over i ≠ j of (r_ji p_i - r_ij p_j)² where the p sum to 1, that is
    pᵀ Q p with Q_ii the sum of r_si² over s ≠ i, and Q_ij = -r_ji r_ij. At the optimum Q p is a
    multiple of the vector e of ones, hence (Q + e eᵀ) p is one too. This matrix is positive
    definite as long as r_ij and r_ji are not both 0, so p is unique, and it has no negative
    entry.

    Parameters
    ----------
    pairwise
        r_ij, the probability of class i among the classes i and j, with r_ij + r_ji = 1,
        (N, k, k); the diagonal is not read.

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", JMLR 5 (2004), section 4.2.
    """
    k = pairwise.shape[1]
    r = np.where(np.eye(k, dtype=bool), 0.0, pairwise)
    matrix = -r * r.transpose(0, 2, 1) + 1.0  # [N, k, k]
    diagonal = np.arange(k)
    matrix[:, diagonal, diagonal] += (r**2).sum(axis=1)
    p = np.linalg.solve(matrix, np.ones((len(r), k, 1)))[..., 0]
    p = np.maximum(p, 0.0)  # rounding may leave -1e-17
    coupled: Floats = p / p.sum(axis=1, keepdims=True)
    return coupled


def class_probabilities(
    decisions: Floats, sigmoids: Floats, n_classes: int, multi_class: MultiClass = "ovo"
) -> Floats:
    """Class probabilities, (N, k), of decisions and A and B of each column from `fit_sigmoid`.

    One-vs-one they are LIBSVM's, but the coupling is solved to rounding, where LIBSVM stops at an
    error of some 1e-3; the most probable class may differ from that of `vote`. One-vs-rest they are
    those of each class against the rest, scaled to sum to 1 as of scikit-learn's
    `OneVsRestClassifier`. For two classes the one sigmoid is the probability of the first
    one-vs-one, and of the second one-vs-rest.
    """
    positive = expit(-(decisions * sigmoids[:, 0] + sigmoids[:, 1]))
    if multi_class == "ovr" and positive.shape[1] == 1:
        return np.hstack([1 - positive, positive])
    positive = np.clip(positive, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    if multi_class == "ovr":
        return np.asarray(positive / positive.sum(axis=1, keepdims=True))
    if n_classes == 2:
        return np.column_stack([positive, 1 - positive])
    pairwise = np.zeros((len(decisions), n_classes, n_classes))
    first, second = np.triu_indices(n_classes, 1)  # the order of combinations
    pairwise[:, first, second] = positive
    pairwise[:, second, first] = 1 - positive
    return couple(pairwise)


def _to_unit(f: Floats) -> tuple[Floats, float, float]:
    """Decision values shifted and scaled to [-1, 1], with their centre and half range.

    Newton's method does not depend on the unit, but its stopping rule and its ridge do. Values that
    are equal to rounding become 0.
    """
    low, high = float(f.min()), float(f.max())
    half = high / 2 - low / 2  # halved first: the range itself may overflow
    if half <= EPS * max(abs(low), abs(high), SMALLEST):
        return np.zeros_like(f), low, 1.0
    center = low + half
    return (f - center) / half, center, half


def _minimise(f: Floats, targets: Floats, weights: Floats, start: float) -> tuple[float, float]:
    """A and B of least weighted cross-entropy, from A = 0 and B = `start`; f is in [-1, 1]."""
    X = np.column_stack([f, np.ones_like(f)])
    point = np.array([0.0, start])
    for _ in range(MAX_STEPS):
        z = X @ point
        p = expit(-z)
        gradient = X.T @ (weights * (targets - p))
        if np.abs(gradient).max() < GRADIENT:
            break
        curvature = weights * p * expit(z)
        step = -np.linalg.solve((X.T * curvature) @ X + RIDGE * np.eye(2), gradient)
        size = _step_size(z, X @ step, float(gradient @ step), targets, weights)
        if size == 0:
            break
        point = point + size * step
    return float(point[0]), float(point[1])


def _step_size(z: Floats, dz: Floats, slope: float, targets: Floats, weights: Floats) -> float:
    """Largest of 1, 1/2, 1/4 ... that lowers the cross-entropy by 1e-4 of the linear prediction.

    A rise within rounding is accepted, so that the last steps to the optimum are not refused. The
    size is 0 if no step is accepted.
    """
    before = _cross_entropy(z, targets, weights)
    for size in 0.5 ** np.arange(HALVINGS):
        after = _cross_entropy(z + size * dz, targets, weights)
        if after <= before * (1 + EPS) + 1e-4 * size * slope:
            return float(size)
    return 0.0


def _cross_entropy(z: Floats, targets: Floats, weights: Floats) -> float:
    """Weighted mean of -t log p - (1 - t) log(1 - p) at p = 1 / (1 + exp(z)), without overflow."""
    linear = np.where(z >= 0, targets, targets - 1) * z
    return float(weights @ (linear + np.log1p(np.exp(-np.abs(z)))))
