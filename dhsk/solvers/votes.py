"""Classes and scores of several classes: one-vs-one by LIBSVM's votes, or one-vs-rest."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.compiled import compiled
from dhsk.solvers.problems import MultiClass


def winners(decisions: Floats, n_classes: int, multi_class: MultiClass) -> Indices:
    """Numbers of the predicted classes, (N,): see `vote`, or one-vs-rest those of the greatest.

    Of equal decisions the first counts, as in `LinearSVC`. One-vs-rest two classes may have one
    column, (N, 1), which is above 0 for the second class.
    """
    if multi_class == "ovo":
        return vote(decisions, n_classes)
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(np.intp)
    best: Indices = decisions.argmax(axis=1)
    return best


def class_scores(decisions: Floats, n_classes: int, multi_class: MultiClass) -> Floats:
    """Scores of the classes, (N, k), or of two (N,), above 0 for the second.

    One-vs-one they are those of `one_vs_rest`; one-vs-rest they are the decisions.
    """
    if multi_class == "ovo":
        return one_vs_rest(decisions, n_classes)
    return decisions[:, 0] if decisions.shape[1] == 1 else decisions


def vote(decisions: Floats, n_classes: int) -> Indices:
    """Class with the most votes, the first of several, (N,), as LIBSVM's ``svm_predict`` chooses.

    Decision values have a column per pair, in the order of ``combinations(range(n_classes), 2)``,
    (N, n_pairs). A positive one is a vote for the first class of the pair, any other for the
    second. For two classes scikit-learn's ``SVC.decision_function`` has the opposite sign.
    """
    wins = decisions > 0
    winners: Indices = _per_class(wins, ~wins, n_classes).argmax(axis=1)
    return winners


def one_vs_rest(decisions: Floats, n_classes: int) -> Floats:
    """Scores of all classes, (N, n_classes): votes plus the confidence, scaled to (-1/3, 1/3).

    They are those of the ``decision_function`` of ``SVC(decision_function_shape="ovr")`` [1]_; for
    two classes they are (N,), and a POSITIVE score means the SECOND class. The class of the largest
    score may differ from that of `vote`: ties are broken here, and a decision value of exactly 0
    counts for the first class of its pair.

    References
    ----------
    .. [1] ``sklearn.utils.multiclass._ovr_decision_function``, scikit-learn 1.9.
    """
    if n_classes == 2:
        return -decisions[:, 0]
    votes = _per_class(decisions >= 0, decisions < 0, n_classes)
    confidence = _per_class(decisions, -decisions, n_classes)
    squashed: Floats = confidence / (3 * (np.abs(confidence) + 1))
    return votes + squashed


def _per_class(to_first: NDArray[Any], to_second: NDArray[Any], n_classes: int) -> Floats:
    """Sums over all pairs of the values for their first and second class, (N, n_classes)."""
    if to_first.shape[1] != n_classes * (n_classes - 1) // 2:
        raise ValueError(f"{to_first.shape[1]} decision values for pairs of {n_classes} classes")
    total = np.zeros((n_classes, len(to_first)))
    _add_pairs(np.ascontiguousarray(to_first.T), np.ascontiguousarray(to_second.T), total)
    return np.ascontiguousarray(total.T)


@compiled()
def _add_pairs(firsts: NDArray[Any], seconds: NDArray[Any], total: Floats) -> None:
    pair = 0
    for a in range(len(total)):
        for b in range(a + 1, len(total)):
            for sample in range(total.shape[1]):
                total[a, sample] += firsts[pair, sample]
                total[b, sample] += seconds[pair, sample]
            pair += 1
