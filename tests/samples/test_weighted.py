"""Inverse document frequencies, against scikit-learn's, and samples that are weighted by them."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

import dhsk
from dhsk.samples import open_samples, scan
from dhsk.samples.weighted import (
    WeightedSamples,
    fixed_map,
    inverse_frequencies,
    parse_map_name,
)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_weights_are_those_of_scikit_learn(counts: Any, kind: Any) -> None:
    """For several groups of samples in one pass, one of them with none."""
    X = counts(50, 12)
    X[:, 3] = 0
    used = np.random.default_rng(0).random((50, 3)) < 0.6
    used[:, 2] = False
    found = inverse_frequencies(open_samples(kind(X)), used)
    for group in (0, 1):
        expected = TfidfTransformer().fit(X[used[:, group]]).idf_
        np.testing.assert_allclose(found[group], expected, rtol=1e-15)
    np.testing.assert_array_equal(found[2], 1.0)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_weighted_samples_are_products(counts: Any, kind: Any) -> None:
    """In blocks of any size; the source keeps its rows, and other weights another fingerprint.

    They are so up to a power of two, which the projective map undoes.
    """
    X = counts(30, 8)
    weights = np.arange(1.0, 9.0)
    samples = WeightedSamples(open_samples(kind(X)), weights)
    rows: list[Any] = list(samples.blocks(7))
    whole = np.concatenate([b if isinstance(b, np.ndarray) else b.toarray() for b in rows])
    np.testing.assert_array_equal(whole, X * weights / 16)  # the weights are brought below 1
    assert [block.shape[0] for block in rows] == [7, 7, 7, 7, 2]
    np.testing.assert_array_equal(next(samples.samples.blocks(30)).sum(), X.sum())
    other = WeightedSamples(open_samples(kind(X)), weights + 1)
    prints = {scan(one, "projective").fingerprint for one in (samples, other, samples.samples)}
    assert len(prints) == 3


def test_names_of_maps() -> None:
    """tf-idf is one beside those of rows."""
    assert parse_map_name("tfidf") == "tfidf"
    assert parse_map_name("identity") == "identity"
    assert (fixed_map("tfidf"), fixed_map("identity"), fixed_map(None)) == (
        "projective", "identity", None,
    )  # fmt: skip
    with pytest.raises(dhsk.InputError, match=r"no map 'tf': .*, identity, tfidf$"):
        parse_map_name("tf")
