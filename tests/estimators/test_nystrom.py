"""Nyström features: scikit-learn's contract, and an error that is what it is said to be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

import dhsk
from dhsk.errors import BudgetError, InputError
from dhsk.estimators.nystrom import NystromFeatures

ZERO_ROW = "a sample of the check is all zero, and such a row has no image on the sphere"
EXPECTED = dict.fromkeys(
    (
        "check_estimators_dtypes",
        "check_estimator_sparse_tag",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
    ),
    ZERO_ROW,
)


def expected_failures(estimator: Any) -> dict[str, str]:
    """Checks whose samples the map of an estimator refuses."""
    return {} if estimator.sphere_map == "identity" else EXPECTED


@parametrize_with_checks(
    [
        NystromFeatures(),
        NystromFeatures(sphere_map="identity", kernel=dhsk.GaussianKernel(sigma=1.0)),
        NystromFeatures(
            selection="uniform", sphere_map="identity", kernel=dhsk.GaussianKernel(sigma=1.0)
        ),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator: Any, check: Callable[[Any], None]) -> None:
    """Every check of scikit-learn passes; with a map that takes every sample, without exception."""
    check(estimator)
