"""Capacity of support vector machines, from Gram matrices alone: smallest ball and VC bound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.solvers.smo import ascend
from dhsk.solvers.sources import ArraySource, Source, products

_ROUNDS: Final = 3
"""Rounding drifts the gradient during many steps: so often a ball goes on from a new one."""

_MAX_STEPS: Final = 1_000_000
"""Steps after which a round ends in any case, or 100 a sample."""


@dataclass(frozen=True)
class Ball:
    """A ball in feature space that holds the mapped samples.

    Attributes
    ----------
    radius2
        Squared radius: no sample is farther from the centre. At least that of the smallest ball.
    gap
        How much smaller the smallest ball could be, as a part of `radius2`: its squared radius is
        at least (1 - gap) radius2.
    steps
        Of the solver.
    exact
        Whether the smallest ball was sought; else the centre is the mean of the samples.
    """

    radius2: float
    gap: float
    steps: int
    exact: bool


@dataclass(frozen=True)
class Capacity:
    """What a machine of two classes could learn by heart.

    Attributes
    ----------
    margin
        Distance in feature space from the hyperplane to where the decision is 1; None of a machine
        without support vectors, which has no hyperplane.
    vc
        Upper bound of the VC dimension.
    effective
        Effective sample size: samples for each unit of `vc`.
    """

    margin: float | None
    vc: int
    effective: float


def smallest_ball(K: NDArray[Any], tol: float = 1e-6) -> Ball:
    """Find the smallest ball in feature space that holds the mapped samples.

    With the centre a mean of the samples with weights b, the dual [1]_ is to maximise the sum of
    b_i K_ii less b'Kb; twice what `smo.ascend` maximises with s_i = K_ii / 2.

    Parameters
    ----------
    K
        Symmetric matrix, (n, padded(n)), n at least 1, see `smo.ascend`. If it is indefinite there
        is no feature space, and the result, at least 0, bounds nothing.
    tol
        Greatest `gap`. A radius so small that rounding decides, below about n eps / tol of the
        largest entry, may keep a larger one.

    Returns
    -------
    Ball
        Certified by a gradient computed anew, up to its rounding.

    References
    ----------
    .. [1] D. M. J. Tax and R. P. W. Duin, "Support vector data description", Machine Learning 54
       (2004).
    """
    n = len(K)
    s = np.diagonal(K).astype(np.float64) / 2
    rounding = n * np.finfo(np.float64).eps * float(np.abs(s).max())
    b, lower, upper = np.full(n, 1 / n), np.zeros(n), np.ones(n)
    f = s - _times(K, b)
    radius2, gap = _judge(s, b, f)
    steps = 0
    for _ in range(_ROUNDS):
        if gap <= tol:
            break
        # A violation v leaves a gap of 2 v at most. The centre is within the smallest ball, and so
        # no farther from a sample than its diameter: radius2 is at most 4 times the optimum.
        violation = max(tol * radius2 / 8, rounding)
        more, _ = ascend(K, lower, upper, b, f, violation, max(_MAX_STEPS, 100 * n))
        f = s - _times(K, b)
        radius2, gap = _judge(s, b, f)
        steps += more
    return Ball(radius2, gap, steps, exact=True)


def balls_about_means(source: Source, groups: Sequence[Indices]) -> list[Ball]:
    """Find balls that hold groups of samples, each about their mean, in one pass over the matrix.

    Parameters
    ----------
    source
        The matrix.
    groups
        Samples, each once, of every group.

    Returns
    -------
    list of Ball
        One for each group.
    """
    means = [(members, np.full(len(members), 1 / len(members))) for members in groups]
    diagonal, balls = source.diagonal(), []
    for (members, b), product in zip(means, products(source, means), strict=True):
        s = diagonal[members] / 2
        balls.append(Ball(*_judge(s, b, s - product), steps=0, exact=False))
    return balls


def capacity(norm2: float, radius2: float, n: int) -> Capacity:
    """Bound the VC dimension of a machine by its margin [1]_, and count samples by it.

    Hyperplanes of a margin M in a ball of radius R and dimension d have a VC dimension of at most
    min(ceil(R^2 / M^2), d) + 1 [2]_. Here d is at most n - 1, for the machine sees no more of the
    feature space than what n samples span: hence never more than n, the number of points in
    general position (K of full rank) that it can shatter.

    Parameters
    ----------
    norm2
        Squared length of the normal vector, such as `Fit.norm2`. If it is 0, or by rounding below,
        the decision is constant: a VC dimension of 1 bounds it, and there is no margin.
    radius2
        Squared radius of a ball that holds the samples, such as `Ball.radius2`.
    n
        Number of samples, at least 1.

    Returns
    -------
    Capacity
        Margin, bound and effective sample size.

    References
    ----------
    .. [1] C. Zhao and J. S. Song, "Exact heat kernel on a hypersphere and its applications in
       kernel SVM", 2017, section 2.3 and Figure 3.
    .. [2] V. N. Vapnik, "The Nature of Statistical Learning Theory" (2000), Theorem 5.1.
    """
    norm2 = max(norm2, 0.0)
    vc = math.ceil(min(radius2 * norm2, n - 1)) + 1
    return Capacity(margin=norm2**-0.5 if norm2 > 0 else None, vc=vc, effective=n / vc)


def _times(K: NDArray[Any], b: Floats) -> Floats:
    """Product of a padded matrix with b, in float64."""
    return ArraySource(K[:, : len(K)]).product(b[:, None])[:, 0]


def _judge(s: Floats, b: Floats, f: Floats) -> tuple[float, float]:
    """Squared radius about the centre of weights b, and its gap to the dual, from f = s - K b.

    The squared distance of sample i is K_ii - 2 (K b)_i + b'Kb = 2 f_i + b'Kb, and its mean with
    weights b is the dual objective.
    """
    norm2 = float(b @ (s - f))
    radius2 = 2 * float(f.max()) + norm2
    dual = 2 * float(b @ f) + norm2
    if radius2 <= 0:
        return 0.0, 0.0
    return radius2, max(0.0, 1 - max(0.0, dual) / radius2)
