"""What the drop-ins of scikit-learn's estimators share: its contract."""

import warnings
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import dhsk

WEIGHTS_OF_GAMMA = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        'gamma="scale" is that of the samples without their weights, as in scikit-learn, whose own '
        "classes do not pass either"
    )
    for kind in ("dense", "sparse")
}

FORGET_PAIRWISE = dict.fromkeys(
    ("check_outliers_fit_predict", "check_outliers_train"),
    "forgets the tag `pairwise`: scikit-learn's own class does not pass either",
)


def expected_to_fail(estimator: Any) -> dict[str, str]:
    """Checks that scikit-learn's own classes do not pass either."""
    if estimator.kernel == "precomputed":
        return FORGET_PAIRWISE if hasattr(estimator, "nu") else {}
    return WEIGHTS_OF_GAMMA if estimator.gamma == "scale" and estimator.kernel == "rbf" else {}


@parametrize_with_checks(
    [
        kind(**own)
        for kind in (dhsk.SVC, dhsk.OneClassSVM, dhsk.SVR)
        for own in ({}, {"kernel": "linear"}, {"gamma": 0.5}, {"kernel": "precomputed"})
    ],
    expected_failed_checks=expected_to_fail,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_contract(estimator: Any, check: Any) -> None:
    """Every check but those that scikit-learn's own classes do not pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
