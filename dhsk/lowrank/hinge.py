"""The hinge loss on features in memory: LIBLINEAR's dual coordinate descent."""

import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.gram.sizes import human_bytes
from dhsk.lowrank.primal import Solution
from dhsk.lowrank.primal_passes import Columns
from dhsk.svm.train import Problem

_VALUE_BYTES: Final = 24
"""Of a feature: LIBLINEAR takes float64, and makes a list of numbered values of it."""

_MOST_STEPS: Final = 10_000


def solve_hinge(
    Z: NDArray[Any] | None, problem: Problem, columns: Columns, room: int, seed: int
) -> Solution:
    """Minimise |w|^2/2 + C sum_i s_i max(0, 1 - y_i f(z_i)), see `dhsk.lowrank.primal`.

    Parameters
    ----------
    Z
        Features, (N, r); None where they are not in memory.
    problem
        Labels and weights.
    columns
        What is to be told.
    room
        Bytes that their copies may take.
    seed
        Of the order in which LIBLINEAR takes the samples.

    Returns
    -------
    Solution
        The solution. It has no certificate: the gradient is NaN.

    Raises
    ------
    InputError
        The features, or their copies, do not fit the memory.

    References
    ----------
    .. [1] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual
       coordinate descent method for large-scale linear SVM", ICML 2008.
    """
    if Z is None or _VALUE_BYTES * Z.size > room:
        raise InputError(
            f"loss='hinge' holds the features of all {len(problem.codes)} samples in memory, at "
            f"{_VALUE_BYTES} bytes a value besides, and {human_bytes(room)} are left: allow more, "
            "take fewer landmarks, or use loss='squared_hinge', which needs neither"
        )
    X, parts = Z.astype(np.float64, copy=False), []
    for positive in columns.positive:
        y = np.where(problem.codes == positive, 1.0, -1.0)
        parts.append(_column(X, y, problem.weights, problem.C, problem.tol, seed))
    return Solution(
        coef=np.column_stack([v for v, _, _ in parts]),
        objective=np.array([value for _, value, _ in parts]),
        gradient_norm=np.full(len(parts), np.nan),
        relative=np.full(len(parts), np.nan),
        converged=np.array([steps < _MOST_STEPS for _, _, steps in parts]),
        newton=max(steps for _, _, steps in parts),
        passes=1,
    )


def _column(
    X: NDArray[Any], y: Floats, weights: Floats, C: float, tol: float, seed: int
) -> tuple[Floats, float, int]:
    """Coefficients, objective, and steps over all samples."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    svc = LinearSVC(C=C, loss="hinge", tol=tol, max_iter=_MOST_STEPS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `converged` says it
        svc.fit(X, y, sample_weight=weights)
    v = np.append(svc.coef_[0], svc.intercept_)
    losses = np.maximum(0, 1 - y * (X @ v[:-1] + v[-1]))
    return v, float(v @ v / 2 + C * weights @ losses), int(svc.n_iter_)
