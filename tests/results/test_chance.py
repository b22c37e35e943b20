"""Scores of guessing, against drawn guesses."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from dhsk.results.chance import guessing

DRAWS = 2000

SPREAD = 0.08
"""Relative tolerance of a standard deviation of so many draws: five times 1 / sqrt(2 DRAWS)."""


@pytest.mark.parametrize("counts", [(50, 50), (30, 120), (20, 30, 60)])
def test_standard_errors_are_those_of_guesses(counts: tuple[int, ...]) -> None:
    """Labels at random, and scores without ties, spread as much as is said."""
    rng, k = np.random.default_rng(0), len(counts)
    y = np.repeat(np.arange(k), counts)
    share = max(counts) / sum(counts)
    drawn: dict[str, list[float]] = {"accuracy": [], "balanced_accuracy": [], "roc_auc": []}
    for _ in range(DRAWS):
        # Samples are drawn anew, of which always the largest class is said.
        own = rng.random(len(y)) < share
        drawn["accuracy"].append(accuracy_score(own, np.ones(len(y))))
        drawn["balanced_accuracy"].append(balanced_accuracy_score(y, rng.integers(k, size=len(y))))
        if k == 2:
            drawn["roc_auc"].append(roc_auc_score(y, rng.random(len(y))))
    for scoring, scores in drawn.items():
        if scores:
            found = guessing(scoring, counts)
            assert found is not None
            assert np.std(scores) == pytest.approx(found.standard_error, rel=SPREAD)
            within = 5 * found.standard_error / np.sqrt(DRAWS)
            assert np.mean(scores) == pytest.approx(found.score, abs=within)


def test_of_other_scores_nothing_is_known() -> None:
    """Not what guessing scores, and not the area of more than two classes."""
    assert guessing("f1_macro", (50, 50)) is None
    assert guessing("roc_auc", (50, 50, 50)) is None
