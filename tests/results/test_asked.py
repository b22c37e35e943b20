"""What is asked of a cross-validation is checked where it is made."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dhsk

WRONG: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "zero rows": (dhsk.Fitting, {"zero_rows": "drop"}, "zero_rows must be 'center' or 'error'"),
    "rule": (dhsk.Fitting, {"indefinite": "warn"}, "indefinite must be 'error' or 'allow'"),
    "choice": (
        dhsk.Refit,
        {"choose": "first"},
        "choose must be 'simplest' or 'best', but it is 'first'",
    ),
    "array": (dhsk.Refit, {"choose": np.ones(2)}, "choose must be 'simplest' or 'best'"),
    "test": (dhsk.Refit, {"test": np.ones(3)}, r"test must be samples and labels, \(X, y\)"),
    "eigenvalues": (dhsk.Output, {"eigenvalues": 5}, "eigenvalues must be True, False or None"),
    "baselines": (dhsk.Output, {"baselines": "all"}, "baselines must be True, False or None"),
    "seed": (dhsk.StratifiedFolds, {"random_state": -1}, "random_state must be"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_asked_is_refused(case: str) -> None:
    """By the name of the parameter."""
    kind, given, message = WRONG[case]
    with pytest.raises(dhsk.InputError, match=message):
        kind(**given)


X = np.random.default_rng(0).poisson(3.0, (30, 5)).astype(float)
Y = np.arange(30) % 2
OTHER: dict[str, dict[str, Any]] = {
    "fit must be a dhsk.Fitting": {"fit": 1e-3},
    "refit must be True, False or a dhsk.Refit": {"refit": "best"},
    "low_rank must be a dhsk.LowRank": {"low_rank": 20},
}


@pytest.mark.parametrize("message", OTHER)
def test_other_things_in_their_place_are_refused(message: str) -> None:
    """With what it must be."""
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.cross_validate(X, Y, **OTHER[message])


def test_the_highest_mean_may_be_chosen_without_a_model() -> None:
    """As with one; a choice alone fits nothing."""
    grid: dict[str, Any] = {"kernels": ["cosine", "linear"], "C": [0.1, 10], "cv": 3}
    found = dhsk.cross_validate(X, Y, **grid, refit=dhsk.Refit("best", model=False))
    assert found.model_ is None
    assert found.best == found.decision.best
    assert found.choice is not None
    assert found.choice.rule == "best"
