"""Capacity of support vector machines: smallest enclosing ball and bound on the VC dimension."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, union
from dhsk.solvers.dual import differences
from dhsk.solvers.smo import ascend
from dhsk.solvers.sources import Combination, Source, products

_ROUNDS: Final = 3
"""Restarts from a recomputed gradient: rounding errors accumulate in it over many steps."""

FEW_COLUMNS: Final = 1024
"""Columns of a matrix from which `balls_about_few` takes all centres."""

_MAX_STEPS: Final = 1_000_000
"""Most steps of a restart, or 100 a sample if those are more."""


@dataclass(frozen=True)
class Ball:
    """A ball in feature space that contains the mapped samples."""

    radius2: float
    """Squared radius, an upper bound on that of the smallest ball."""
    gap: float
    """Relative gap: the smallest squared radius is at least (1 - gap) radius2."""
    steps: int
    """Steps of the solver."""
    exact: bool
    """Whether the smallest ball was computed; else the centre is the mean of the samples."""


@dataclass(frozen=True)
class Capacity:
    """Capacity of a binary classifier."""

    margin: float | None
    """Distance in feature space from the hyperplane to where the decision value is 1; None without
    support vectors, that is without a hyperplane."""
    vc: int
    """Upper bound on the VC dimension."""
    effective: float
    """Effective sample size: samples for each unit of `vc`."""


def smallest_ball(K: NDArray[Any], tol: float = 1e-6) -> Ball:
    """Smallest ball in feature space that contains the mapped samples.

    With the mean of the samples of weights b as the centre, the dual problem [1]_ maximises
    sum_i b_i K_ii - b'Kb. This is twice the objective of `smo.ascend` with s_i = K_ii / 2.

    Parameters
    ----------
    K
        Symmetric matrix, (n, padded(n)), n at least 1, see `smo.ascend`. An indefinite matrix has
        no feature space, and the result, at least 0, bounds nothing.
    tol
        Upper bound on the gap. Radii below about n eps / tol of the largest entry may have a larger
        one, because of rounding.

    Returns
    -------
    Ball
        Certified by a recomputed gradient, up to its rounding.

    References
    ----------
    .. [1] D. M. J. Tax and R. P. W. Duin, "Support vector data description", Machine Learning 54
       (2004).
    """
    n = len(K)
    s = np.diagonal(K).astype(np.float64) / 2
    rounding = n * np.finfo(np.float64).eps * float(np.abs(s).max())
    lower, upper, steps = np.zeros(n), np.ones(n), 0
    b = np.full(n, 1 / n)
    f = differences(K, s, b)
    radius2, gap = _judge(s, b, f)
    # The mean is near the centre only if most samples are on the surface. Else steps from there
    # would take each other sample away: 1,080 digits took 1,050 to 1,080 steps, and 30 to 130 from
    # the sample that is farthest from the mean.
    if gap > tol:
        farthest = int(f.argmax())
        b = np.zeros(n)
        b[farthest] = 1.0
        f = s - K[farthest, :n]
    for _ in range(_ROUNDS):
        if gap <= tol:
            break
        # A violation v leaves a gap of at most 2 v. The centre lies in the smallest ball, so no
        # sample is farther than its diameter: radius2 is at most 4 times the optimum.
        violation = max(tol * radius2 / 8, rounding)
        more, _ = ascend(K, (lower, upper), b, f, violation, max(_MAX_STEPS, 100 * n))
        f = differences(K, s, b)
        radius2, gap = _judge(s, b, f)
        steps += more
    return Ball(radius2, gap, steps, exact=True)


def balls_about_means(source: Source, groups: Sequence[Indices]) -> list[Ball]:
    """Balls about the means of groups of distinct samples, in one pass over the matrix."""
    means = [(members, np.full(len(members), 1 / len(members))) for members in groups]
    diagonal, balls = source.diagonal(), []
    for (members, b), product in zip(means, products(source, means), strict=True):
        s = diagonal[members] / 2
        balls.append(Ball(*_judge(s, b, s - product), steps=0, exact=False))
    return balls


def balls_about_few(
    source: Source, classes: Sequence[Indices], groups: Iterable[Sequence[int]]
) -> list[float]:
    """Squared radii of balls that contain the samples of groups of classes, from few columns.

    Their centres are the means of a few samples of each class. So they are upper bounds on the
    squared radii of the smallest balls.
    """
    rng, most = np.random.default_rng(0), max(1, FEW_COLUMNS // len(classes))
    few = [np.sort(rng.choice(own, min(most, len(own)), replace=False)) for own in classes]
    columns = union(few, source.n)
    means = np.zeros((len(columns), len(classes)))
    for c, chosen in enumerate(few):
        means[np.searchsorted(columns, chosen), c] = 1 / len(chosen)
    (products,) = source.combine([Combination(np.arange(source.n), columns, means)])
    diagonal, between = source.diagonal(), means.T @ products[columns]
    radii2 = []
    for group in groups:
        own, twice = np.array(group), 2 / len(group)
        norm2 = float(between[np.ix_(own, own)].mean())
        farthest = max(
            float((diagonal[members] - twice * products[np.ix_(members, own)].sum(axis=1)).max())
            for members in (classes[c] for c in own)
        )
        radii2.append(max(0.0, farthest + norm2))
    return radii2


def capacity(norm2: float, radius2: float, n: int) -> Capacity:
    """Bound the VC dimension of a binary classifier of n samples by its margin [1]_.

    Hyperplanes of margin M in a ball of radius R and dimension d have a VC dimension of at most
    min(ceil(R^2 / M^2), d) + 1 [2]_. Here d is at most n - 1, the dimension of the affine span of
    the samples, so the bound is at most n, the number of points in general position (K of full
    rank) that can be shattered.

    Parameters
    ----------
    norm2
        Squared norm of the normal vector, such as `Fit.norm2`. If it is 0, or negative by rounding,
        the decision is constant: the VC dimension is 1, and there is no margin.
    radius2
        Squared radius of a ball that contains the samples, such as `Ball.radius2`.
    n
        Number of samples, at least 1.

    References
    ----------
    .. [1] C. Zhao and J. S. Song, "Exact heat kernel on a hypersphere and its applications in
       kernel SVM", 2017, section 2.3 and Figure 3.
    .. [2] V. N. Vapnik, "The Nature of Statistical Learning Theory" (2000), Theorem 5.1.
    """
    norm2 = max(norm2, 0.0)
    vc = math.ceil(min(radius2 * norm2, n - 1)) + 1
    return Capacity(margin=norm2**-0.5 if norm2 > 0 else None, vc=vc, effective=n / vc)


def _judge(s: Floats, b: Floats, f: Floats) -> tuple[float, float]:
    """Squared radius about the centre of weights b, and its relative gap, from f = s - K b.

    The squared distance of sample i is K_ii - 2 (K b)_i + b'Kb = 2 f_i + b'Kb, and its mean with
    weights b is the dual objective.
    """
    norm2 = float(b @ (s - f))
    radius2 = 2 * float(f.max()) + norm2
    dual = 2 * float(b @ f) + norm2
    if radius2 <= 0:
        return 0.0, 0.0
    return radius2, max(0.0, 1 - max(0.0, dual) / radius2)
