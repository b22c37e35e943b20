"""Scores that need no samples: those of guessing, and how far chance alone leads from them."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

CLEAR: Final = 2.0
"""Standard errors of guessing that a score is above it where something was learnt: the best of many
candidates passes one of them by chance."""


_MEANS: Final = ("f1_macro", "precision_macro", "recall_macro")


class Guessing(NamedTuple):
    """What a classifier scores that does not look at the samples."""

    score: float
    standard_error: float
    """Of a guess for each sample that is tested, whatever the folds' scores are."""
    words: str


def guessing(scoring: str, class_counts: Sequence[float]) -> Guessing | None:
    """Score of guessing, for counts of tested samples by class; None of other scorers.

    It is the largest class for "accuracy", and labels at random for "balanced_accuracy", the mean
    over K classes of the share r_k of the n_k samples that is found: the variance of r_k is that of
    a binomial share of 1/K. The area under the curve of "roc_auc" has the variance of the statistic
    of Mann and Whitney [1]_, (n_1 + n_2 + 1) / (12 n_1 n_2). "f1" is 2 p / (1 + p) where all are
    predicted to be of the second class, of share p, and its error is that of p times the slope.
    "matthews_corrcoef" of two classes is that of Pearson: its variance is 1/n where they have
    nothing in common. Means over the classes of f1, precision and recall are those of the given
    labels in a random order: each class has its share p_k, with the variance p_k (1 - p_k) / n_k.

    References
    ----------
    .. [1] H. B. Mann and D. R. Whitney, "On a Test of Whether one of Two Random Variables is
       Stochastically Larger than the Other", Annals of Mathematical Statistics 18 (1947), 50-60.
    """
    n, k = sum(class_counts), len(class_counts)
    if scoring in _MEANS:
        variances = [own / n * (1 - own / n) / own for own in class_counts]
        return Guessing(1 / k, math.sqrt(sum(variances)) / k, "that of guessing")
    if scoring == "accuracy":
        share = max(class_counts) / n
        error = math.sqrt(share * (1 - share) / n)
        return Guessing(share, error, "that of always the largest class")
    if scoring == "balanced_accuracy":
        share = 1 / k
        error = math.sqrt(share * (1 - share) * sum(1 / own for own in class_counts)) / k
        return Guessing(share, error, "that of guessing")
    if scoring == "roc_auc" and k == 2:
        error = math.sqrt((n + 1) / (12 * math.prod(class_counts)))
        return Guessing(0.5, error, "that of guessing")
    if scoring == "f1" and k == 2:
        share = class_counts[1] / n
        error = 2 / (1 + share) ** 2 * math.sqrt(share * (1 - share) / n)
        return Guessing(2 * share / (1 + share), error, "that of always the second class")
    if scoring == "matthews_corrcoef" and k == 2:
        return Guessing(0.0, 1 / math.sqrt(n), "that of guessing")
    return None
