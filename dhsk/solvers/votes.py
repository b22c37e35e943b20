"""Class numbers and scores of one-vs-one classifiers, by votes as LIBSVM counts them."""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices


def vote(decisions: Floats, n_classes: int) -> Indices:
    """Class that wins the most pairs; of several, the first, as LIBSVM's ``svm_predict`` has it.

    Parameters
    ----------
    decisions
        One column per pair of classes, in the order of ``combinations(range(n_classes), 2)``,
        (N, n_pairs). Above 0 the first class of the pair gets the vote, otherwise the second.
        For two classes this is minus what scikit-learn's ``SVC.decision_function`` returns.
    n_classes
        Number of classes, at least 2.

    Returns
    -------
    Indices
        Class numbers, (N,): what ``sklearn.svm.SVC(break_ties=False).predict`` chooses.
    """
    wins = decisions > 0
    winners: Indices = _per_class(wins, ~wins, n_classes).argmax(axis=1)
    return winners


def one_vs_rest(decisions: Floats, n_classes: int) -> Floats:
    """Score of every class: its votes, and its confidence squashed to (-1/3, 1/3) for ties.

    The largest score need not belong to the class that `vote` chooses: votes that tie are
    told apart here, and a decision of exactly 0 counts for the first class of its pair.

    Parameters
    ----------
    decisions
        As in `vote`, (N, n_pairs).
    n_classes
        Number of classes, at least 2.

    Returns
    -------
    Floats
        Scores, (N, n_classes), or for two classes (N,), where a POSITIVE score means the SECOND
        class: in both cases what ``sklearn.svm.SVC(decision_function_shape="ovr")`` returns from
        its ``decision_function``.

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
    """Sums of what every pair gives to its first class and to its second, (N, n_classes)."""
    total = np.zeros((len(to_first), n_classes))
    pairs = combinations(range(n_classes), 2)
    for (a, b), first, second in zip(pairs, to_first.T, to_second.T, strict=True):
        total[:, a] += first
        total[:, b] += second
    return total
