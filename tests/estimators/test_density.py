"""Kernel densities: against their definition, the leave-one-out likelihood, and scikit-learn's."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import KernelDensity

import dhsk
from dhsk.kernels.peak import log_peak, log_sphere_area


@pytest.fixture
def X(rng: np.random.Generator) -> Any:
    """Counts of two kinds."""
    return rng.poisson([[6.0, 1, 2, 1], [1, 2, 1, 7]] * 40) + rng.random((80, 4))


def by_definition(train: Any, test: Any, kernel: Any, shares: Any) -> Any:
    """Log-densities of mapped samples."""
    values = kernel.of_cosine(np.clip(test @ train.T, -1, 1))
    return np.log(values @ shares) + log_peak(kernel.dim, kernel.time)


def test_scores_are_means_of_densities(X: Any, rng: np.random.Generator) -> None:
    """With weights or without; sums are `score`."""
    train, test = dhsk.hyperspherical_map(X), dhsk.hyperspherical_map(X[:9] + 1)
    for weights in (None, rng.random(80)):
        model = dhsk.HeatKernelDensity(0.3).fit(X, sample_weight=weights)
        shares = np.ones(80) / 80 if weights is None else weights / weights.sum()
        exact = by_definition(train, test, model.kernel_, shares)
        np.testing.assert_allclose(model.score_samples(X[:9] + 1), exact, rtol=1e-12)
        assert model.score(X[:9] + 1) == pytest.approx(exact.sum(), rel=1e-12)


def test_the_likelihood_leaves_each_sample_out(X: Any) -> None:
    """As eighty fits without one sample would; a sample twice is out twice."""
    model = dhsk.HeatKernelDensity(0.3).fit(X)
    alone = [
        dhsk.HeatKernelDensity(0.3).fit(np.delete(X, i, axis=0)).score_samples(X[i : i + 1])[0]
        for i in range(0, 80, 8)
    ]
    twice = dhsk.HeatKernelDensity(0.3).fit(np.concatenate([X, X]))
    weighted = dhsk.HeatKernelDensity(0.3).fit(X, sample_weight=np.full(80, 2.0))
    assert twice.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert weighted.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-12)
    mapped, shares = dhsk.hyperspherical_map(X), np.ones(80) / 79
    K = model.kernel_.of_cosine(np.clip(mapped @ mapped.T, -1, 1))
    np.fill_diagonal(K, 0.0)
    each = np.log(K @ shares) + log_peak(4, model.kernel_.time)
    np.testing.assert_allclose(each[::8], alone, rtol=1e-10)
    assert model.log_likelihood_ == pytest.approx(each.mean(), rel=1e-12)


def test_the_time_is_the_likeliest(X: Any) -> None:
    """To a sixth: no other of a fine grid is likelier by more than a parabola allows."""
    model = dhsk.HeatKernelDensity().fit(X)
    best = model.time_scale_
    others = [
        dhsk.HeatKernelDensity(best * r).fit(X).log_likelihood_ for r in np.geomspace(0.1, 10, 17)
    ]
    assert model.log_likelihood_ > max(others) - 0.01
    assert model.log_likelihood_ > others[0] + 0.1
    assert model.log_likelihood_ > others[-1] + 0.1


def test_a_uniform_density_is_found(rng: np.random.Generator) -> None:
    """Of samples without a direction; minus the logarithm of the area."""
    X = rng.standard_normal((800, 3))
    model = dhsk.HeatKernelDensity(sphere_map="projective").fit(X)
    assert model.log_likelihood_ == pytest.approx(-log_sphere_area(3), abs=0.03)
    far = dhsk.HeatKernelDensity(50.0, sphere_map="projective").fit(X)
    assert far.score_samples(X[:5]) == pytest.approx(np.full(5, -math.log(4 * math.pi)), abs=1e-9)


def test_what_is_drawn_has_the_density(X: Any) -> None:
    """Mean log-densities of samples and of what other samples' density draws agree."""
    model = dhsk.HeatKernelDensity(0.3).fit(X)
    drawn = model.sample(4000, random_state=0)
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.ones(4000), abs=1e-12)
    np.testing.assert_array_equal(drawn, model.sample(4000, random_state=0))
    train, shares = dhsk.hyperspherical_map(X), np.full(80, 1 / 80)
    mean = math.exp(-3 * model.kernel_.time) * train.mean(axis=0)  # walks shorten means
    error = 5 * drawn.std(axis=0) / math.sqrt(4000)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) <= error)
    entropy = by_definition(train, drawn, model.kernel_, shares)
    assert np.isfinite(entropy).all()


def test_short_times_are_normal_densities(rng: np.random.Generator) -> None:
    """On a small cap of S^2, scikit-learn's in the tangent plane, whose width is sqrt(2 t)."""
    plane = rng.normal(0, 1e-3, (60, 2))
    points = np.c_[plane, np.sqrt(1 - (plane**2).sum(axis=1))]
    time = (4e-4) ** 2 / 2
    scale = time / dhsk.HeatKernel.at_scale(3, 1.0).time
    ours = dhsk.HeatKernelDensity(scale, sphere_map="projective").fit(points)
    theirs = KernelDensity(bandwidth=4e-4).fit(plane)
    np.testing.assert_allclose(ours.score_samples(points), theirs.score_samples(plane), rtol=1e-4)


def test_sparse_samples(X: Any) -> None:
    """Have the same density; also an all-zero one, which is the centre."""
    X = np.round(X)
    X[3] = 0.0
    with pytest.warns(dhsk.ZeroRowsWarning):
        dense = dhsk.HeatKernelDensity(0.3).fit(X)
    with pytest.warns(dhsk.ZeroRowsWarning):
        sparse = dhsk.HeatKernelDensity(0.3).fit(csr_array(X))
    assert sparse.log_likelihood_ == pytest.approx(dense.log_likelihood_, rel=1e-10)
    assert sparse.sample(5, 0) == pytest.approx(dense.sample(5, 0), abs=1e-12)


def test_only_what_is_drawn_is_filled_in() -> None:
    """Of log-ratios of sparse samples: all entries of 5,000 would take 200 MB."""
    X = csr_array((np.ones(5_000), np.arange(5_000), np.arange(5_001)), shape=(5_000, 5_000))
    model = dhsk.HeatKernelDensity(1.0, sphere_map="clr").fit(X)
    tracemalloc.start()
    model.sample(1, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 5_000 * 5_000 / 4


def test_what_has_no_time_is_refused(rng: np.random.Generator) -> None:
    """Equal samples; and more features than float64 has densities for."""
    with pytest.raises(dhsk.InputError, match="all 5 samples are equal"):
        dhsk.HeatKernelDensity().fit(np.tile([1.0, 2.0], (5, 1)))
    far = rng.poisson(0.3, (30, 9000)).astype(float)
    with pytest.raises(
        dhsk.InputError, match=r"some of the 30 samples are too far .* in 9,000 features"
    ):
        dhsk.HeatKernelDensity().fit(far)
    for wrong in (0, -1.0, "none", None):
        with pytest.raises(dhsk.InputError, match="time_scale"):
            dhsk.HeatKernelDensity(wrong).fit(np.eye(3))
    with pytest.raises(dhsk.InputError, match="n_samples must be a whole number"):
        dhsk.HeatKernelDensity(1.0).fit(np.eye(3)).sample(0)
