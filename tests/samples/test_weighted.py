"""Inverse document frequencies, against scikit-learn's, and samples that are weighted by them."""

import sys
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

import dhsk
from dhsk.samples import open_samples, scan
from dhsk.samples.weighted import (
    WeightedSamples,
    fixed_map,
    inverse_frequencies,
    means_and_factors,
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
    """Learnt ones are beside those of rows."""
    assert parse_map_name("tfidf") == "tfidf"
    assert parse_map_name("identity") == "identity"
    assert (fixed_map("tfidf"), fixed_map("identity"), fixed_map(None)) == (
        "projective", "identity", None,
    )  # fmt: skip
    with pytest.raises(dhsk.InputError, match=r"no map 'tf': .*, identity, tfidf, scaled$"):
        parse_map_name("tf")


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_scales_are_those_of_scikit_learn(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For several groups in blocks, of columns far from 0, tiny, constant, and of one group none.

    Dense ones of the first column are rounded to 1e-16 of 1e6, which is 1e-10 of their deviation.
    """
    monkeypatch.setattr(sys.modules["dhsk.samples.scan"], "BLOCK_BYTES", 1000)
    rng = np.random.default_rng(0)
    far = 1e6 if kind is np.asarray else 1.0
    X = rng.normal(size=(60, 5)) * [1.0, 1e-9, 1e9, 0.0, 3.0] + [far, 0.0, 0.0, 7.0, 0.0]
    X[rng.random(60) < 0.5, 4] = 0.0
    used = rng.random((60, 3)) < 0.6
    used[:, 2] = False
    found = means_and_factors(open_samples(kind(X)), used)
    for group in (0, 1):
        scaler = StandardScaler(with_mean=kind is np.asarray).fit(kind(X[used[:, group]]))
        means = np.zeros(5) if scaler.mean_ is None or kind is csr_array else scaler.mean_
        np.testing.assert_allclose(found[group, 0], means, rtol=1e-12, atol=1e-24)
        np.testing.assert_allclose(found[group, 1], 1 / scaler.scale_, rtol=1e-8)
        if kind is np.asarray:
            expected = scaler.transform(X)
            rows = next(WeightedSamples(open_samples(X), found[group]).blocks(60))
            np.testing.assert_allclose(rows, expected, atol=1e-8)
    np.testing.assert_array_equal(found[2, 1], 1.0)


def test_scales_need_finite_values() -> None:
    """The row is named."""
    X = np.ones((4, 2))
    X[3, 1] = np.inf
    with pytest.raises(dhsk.InputError, match=r"^X: row 3, column 1 .* holds inf"):
        means_and_factors(open_samples(X), np.ones((4, 1)))


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("block_bytes", [1, 5_000, 2**24])
def test_scaled_features_are_those_of_scikit_learn_in_each_fold(
    monkeypatch: pytest.MonkeyPatch, kind: Any, block_bytes: int
) -> None:
    """A feature that is constant in some, far from 0, or large in one sample, in any blocks.

    Values near 1e6 are rounded to 1e-10 of their deviation, of which each block adds one.
    """
    monkeypatch.setattr(sys.modules["dhsk.samples.scan"], "BLOCK_BYTES", block_bytes)
    rng, once = np.random.default_rng(0), np.arange(300) == 17
    usual = rng.normal(size=300)
    columns = [usual, once, np.where(once, 0.2, 0.1), np.full(300, 0.1), usual + 1e6, 1e9 * once]
    X = kind(np.column_stack([*columns, usual + 1e9 * once, np.zeros(300)]))
    used = np.array([np.arange(300) % 5 != fold for fold in range(5)]).T
    found = means_and_factors(open_samples(X), used)
    for fold, (means, factors) in enumerate(found):
        peer = StandardScaler(with_mean=kind is np.asarray).fit(X[np.flatnonzero(used[:, fold])])
        if kind is np.asarray:
            np.testing.assert_allclose(means, peer.mean_, rtol=1e-13, atol=1e-15)
        else:
            assert not means.any()
        np.testing.assert_allclose(factors * peer.scale_, 1.0, rtol=1e-9)
