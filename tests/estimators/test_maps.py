"""The transformers keep scikit-learn's contract and map as the functions do."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import dhsk
from dhsk.errors import InputError

MAPS = {
    dhsk.HypersphericalMap: dhsk.hyperspherical_map,
    dhsk.ProjectiveMap: dhsk.projective_map,
}


@pytest.mark.parametrize("made", MAPS)
@pytest.mark.parametrize("sparse", [False, True])
def test_maps_as_the_function_does(made: Any, sparse: bool, counts: Any) -> None:
    """Sparse samples stay sparse, and the samples are left as they were."""
    X = counts(20, 5)
    given = csr_array(X) if sparse else X.copy()
    found = made().fit_transform(given)
    assert isinstance(found, csr_array) is sparse
    dense = found.toarray() if sparse else found
    np.testing.assert_allclose(dense, MAPS[made](X), rtol=1e-15)
    np.testing.assert_array_equal(given.toarray() if sparse else given, X)


@pytest.mark.parametrize("made", MAPS)
def test_frames_keep_their_names(made: Any, counts: Any) -> None:
    """`set_output` and `get_feature_names_out` carry columns and index through."""
    frame = pd.DataFrame(counts(4, 3), columns=["a", "b", "c"], index=list("wxyz"))
    found = made().set_output(transform="pandas").fit_transform(frame)
    assert list(found.columns) == ["a", "b", "c"]
    assert list(found.index) == list("wxyz")


@pytest.mark.parametrize("made", MAPS)
def test_rows_without_an_image_are_named(made: Any, counts: Any) -> None:
    """In fit and in transform, where they are to be refused."""
    X = counts(9, 3)
    mapping = made(zero_rows="error").fit(X)
    X[7] = 0
    for use in (mapping.transform, made(zero_rows="error").fit):
        with pytest.raises(InputError, match=r"row 7 .* is all zero"):
            use(X)


def test_negative_samples_are_named(counts: Any) -> None:
    """In the words that scikit-learn asks for, with the row."""
    X = counts(9, 3)
    X[2, 1] = -4
    with pytest.raises(InputError, match=r"Negative values in data .* row 2, column 1 .* -4\.0"):
        dhsk.HypersphericalMap().fit(X)
    dhsk.ProjectiveMap().fit(X)


def test_a_map_that_is_not_fitted_says_so(counts: Any) -> None:
    """As scikit-learn's own transformers do."""
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        dhsk.ProjectiveMap().transform(counts(3, 3))


def test_a_map_begins_a_pipeline(counts: Any) -> None:
    """Before any classifier."""
    X = counts(40, 6)
    X[20:, :2] += 9
    y = np.arange(40) // 20
    svc, rows = LinearSVC(C=100, random_state=0), dhsk.hyperspherical_map(X)
    np.testing.assert_array_equal(
        make_pipeline(dhsk.HypersphericalMap(), svc).fit(X, y).decision_function(X),
        clone(svc).fit(rows, y).decision_function(rows),
    )
