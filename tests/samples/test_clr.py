"""Centred log-ratios: the map against exact arithmetic, and at every door."""

from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

import dhsk
from dhsk.errors import InputError
from dhsk.kernels import inner_product, squared_norms
from dhsk.kernels.centre import with_all_entries
from dhsk.samples import apply_map, clr_map, parse_sphere_map
from dhsk.samples.log_ratios import most_entries

EPS = float(np.finfo(np.float64).eps)

ROUNDINGS = 16
"""Half an eps of the largest logarithm for each: the quotient, two for log1p, 13 for the mean of
100 numbers, which are added in 8 sums; less for the difference and the length."""


CLOSE = 2 * (ROUNDINGS + 2) * EPS / 2
"""Between two images of the same samples, one of rounded proportions (two roundings more): no
logarithm here is larger than the length of them all."""

PRODUCTS = 100 * EPS
"""Of inner products of up to 100 features: each is a sum of terms that are images within `CLOSE` of
one another, of length 1, so by Cauchy-Schwarz within twice the length of their differences."""

SAME = 1e-12
"""Of kernel values, whose slope is below 10 here: ten times `PRODUCTS` and less."""

TOL = 1e-6
"""Of fits; their decisions differ by some of it."""


def counts(n: int = 60, dim: int = 30, seed: int = 0) -> tuple[Any, Any]:
    """Counts of two classes, two thirds of which are zeros, at depths that differ."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    rates = rng.lognormal(sigma=2, size=dim) * np.where(y[:, None] == np.arange(dim) % 2, 4.0, 1.0)
    return rng.poisson(rates * rng.uniform(0.1, 2, (n, 1))) + np.eye(n, dim), y


def test_against_exact_arithmetic(rng: np.random.Generator) -> None:
    """Of rows of 100 values at all scales, within rounding of their largest logarithm."""
    X = rng.lognormal(sigma=3, size=(8, 100)) * (rng.random((8, 100)) < 0.5)
    X *= 10.0 ** np.array([-305, -200, -20, -1, 1, 20, 200, 300])[:, None]
    found = clr_map(X)
    for row, image in zip(X, found, strict=True):
        with mpmath.workdps(60):
            least = mpmath.mpf(min(row[row > 0]))
            logs = [mpmath.log1p(mpmath.mpf(x) / least) for x in row]
            mean = mpmath.fsum(logs) / len(logs)
            length = mpmath.sqrt(mpmath.fsum((z - mean) ** 2 for z in logs))
            exact = np.array([float((z - mean) / length) for z in logs])
            size = float(max(logs) / length)
        np.testing.assert_allclose(image, exact, rtol=0, atol=ROUNDINGS * EPS / 2 * size)


def test_counts_get_one_more() -> None:
    """Where a sample has a single count: logarithms of counts + 1, as people take them."""
    X, _ = counts()
    logs = np.log1p(X)
    logs -= logs.mean(axis=1, keepdims=True)
    expected = logs / np.linalg.norm(logs, axis=1, keepdims=True)
    np.testing.assert_allclose(clr_map(X), expected, rtol=0, atol=CLOSE)


def test_factors_of_samples_change_nothing() -> None:
    """Powers of two not a bit; proportions are as good as counts."""
    X, _ = counts()
    assert (clr_map(X * 2.0**40) == clr_map(X)).all()
    shares = X / X.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clr_map(shares), clr_map(X), rtol=0, atol=CLOSE)


def test_samples_without_a_direction_are_the_centre() -> None:
    """Zeros, which are counted, and values that are all equal, whatever rounding makes of them."""
    X = np.array([[0.1] * 3, [0.0] * 3, [0.0, 0.0, 0.3]])
    with pytest.warns(dhsk.ZeroRowsWarning, match="1 of 3"):
        rows = clr_map(X)
    np.testing.assert_allclose(rows[:2], np.sqrt(1 / 3), rtol=EPS)
    with pytest.raises(InputError, match=r"row 1 .* all zero"):
        clr_map(X, zero_rows="error")


def test_ratios_out_of_range_count_as_the_largest() -> None:
    """No infinity is made of a value that is 1e320 times another."""
    (row,) = clr_map([[1e-320, 1e10, 0.0, 1.0]])
    assert np.isfinite(row).all()
    assert row @ row == pytest.approx(1)
    assert row[1] == row.max()


def test_what_has_no_logarithm_is_refused() -> None:
    """With the place and what to do."""
    with pytest.raises(InputError, match=r"row 0, column 1 .* the clr map needs non-negative"):
        clr_map([[1.0, -1.0]])
    with pytest.raises(InputError, match=r"row 0, column 1 .* the clr:0.5 map needs non-negative"):
        apply_map("clr:0.5", np.array([[1.0, -1.0]]))


def test_a_pseudo_count_is_added_to_all_values() -> None:
    """In the function and in the name of the map."""
    X, _ = counts()
    logs = np.log(X + 0.5)
    logs -= logs.mean(axis=1, keepdims=True)
    expected = logs / np.linalg.norm(logs, axis=1, keepdims=True)
    found = clr_map(X, 0.5)
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE)
    images = apply_map("clr:0.5", X.astype(np.float64))
    np.testing.assert_allclose(images @ images.T, found @ found.T, rtol=0, atol=PRODUCTS)


def test_a_large_pseudo_count_leaves_differences() -> None:
    """Logarithms of 1 + x/c are x/c then, whose squares are below all numbers: the shape of x."""
    X = np.array([[1.0, 3.0, 0.0, 0.0, 0.0], [5.0, 1.0, 2.0, 4.0, 0.5]])
    expected = X - X.mean(axis=1, keepdims=True)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(clr_map(X, 1e200), expected, rtol=0, atol=CLOSE)
    sparse = with_all_entries(apply_map("clr:1e200", sp.csr_array(X)))
    np.testing.assert_allclose(sparse.toarray(), expected, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("wrong", ["0", "-1", "nan", "inf", "", "x"])
def test_a_wrong_pseudo_count_is_refused(wrong: str) -> None:
    """Where it is said, before anything is read."""
    with pytest.raises(InputError, match=r"pseudo-count|no number after the colon"):
        parse_sphere_map(f"clr:{wrong}")
    with pytest.raises(InputError, match=r"projective map has no pseudo-count"):
        parse_sphere_map("projective:1")
    with pytest.raises(InputError, match="pseudo_count must be 'auto' or a number"):
        clr_map([[1.0, 2.0]], "some")
    with pytest.raises(InputError, match="above 0, but it is -1"):
        clr_map([[1.0, 2.0]], -1)


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 30, 100])
@pytest.mark.parametrize("name", ["clr", "clr:0.1"])
def test_sparse_images_are_those_of_dense_samples(dim: int, name: str) -> None:
    """With no more entries than are planned for; of zeros and of equal values the centre.

    Some rows have more than half of all entries, some fewer, and some in the first columns.
    """
    X = counts(40, dim)[0].astype(np.float64)
    X[3], X[4], X[5, dim // 3 :] = 3.0, 0.0, 0.0
    dense, sparse = apply_map(name, X), apply_map(name, sp.csr_array(X))
    assert isinstance(sparse, sp.csr_array)
    assert sparse.has_canonical_format
    assert (np.diff(sparse.indptr) <= most_entries(np.count_nonzero(X, axis=1), dim)).all()
    np.testing.assert_allclose(with_all_entries(sparse).toarray(), dense, rtol=0, atol=CLOSE)
    for rows in (dense, sparse):
        for others in (dense, sparse):
            found = inner_product(rows, others)
            np.testing.assert_allclose(found, dense @ dense.T, rtol=0, atol=PRODUCTS)
        np.testing.assert_allclose(squared_norms(rows), 1.0, rtol=0, atol=PRODUCTS)


def test_few_entries_of_many_features_stay_few() -> None:
    """One more a row than the sample has."""
    X = sp.random_array((20, 100_000), density=0.001, rng=np.random.default_rng(0), format="csr")
    rows = apply_map("clr", X)
    assert rows.nnz == X.nnz + 20
    found = dhsk.compute_gram(X, dhsk.CosineKernel(), sphere_map="clr")
    assert found.header.nnz == (rows.nnz,)


def test_sparse_samples_are_dense_ones_at_every_door(tmp_path: Path) -> None:
    """Matrices, models and searches: the same to rounding, and each takes the other's samples."""
    X, y = counts()
    new, sparse = counts(seed=1)[0], sp.csr_array(X)
    kernel = dhsk.HeatKernel(30, 0.1)
    found = dhsk.compute_gram(sparse, kernel, sphere_map="clr", store=tmp_path / "sparse.gram")
    expected = dhsk.compute_gram(X, kernel, sphere_map="clr")
    np.testing.assert_allclose(found[:], expected[:], rtol=0, atol=SAME)
    models = [dhsk.HeatSVC(2.0, time_scale=0.5, sphere_map="clr", tol=TOL).fit(Z, y)
              for Z in (X, sparse)]  # fmt: skip
    decisions = [model.decision_function(Z) for model in models for Z in (new, sp.csr_array(new))]
    for decision in decisions:
        np.testing.assert_allclose(decision, decisions[0], rtol=0, atol=10 * TOL)
    low = dhsk.NystromSVC(20, time_scale=0.5, sphere_map="clr", random_state=0)
    scores = [low.fit(Z, y).decision_function(new) for Z in (X, sparse)]
    np.testing.assert_allclose(*scores, rtol=0, atol=10 * low.tol)
    given: dict[str, Any] = {"kernels": "heat", "cv": 3, "out": dhsk.Output(baselines=False)}
    dense, thin = (dhsk.cross_validate(Z, y, sphere_map="clr", **given) for Z in (X, sparse))
    assert [row.score for row in dense.rows] == [row.score for row in thin.rows]
    assert thin.samples.nnz == sparse.nnz


def test_matrices_are_those_of_mapped_samples() -> None:
    """A store says which map made it."""
    X, _ = counts()
    kernel = dhsk.HeatKernel(30, 0.1)
    found = dhsk.compute_gram(X, kernel, sphere_map="clr")
    assert found.sphere_map == "clr"
    expected = dhsk.compute_gram(clr_map(X), kernel, sphere_map="identity")
    np.testing.assert_allclose(found[:], expected[:], rtol=0, atol=SAME)


def test_models_keep_the_map(tmp_path: Path) -> None:
    """And predict what scikit-learn does with the matrix."""
    X, y = counts()
    new, _ = counts(seed=1)
    model = dhsk.HeatSVC(time_scale=0.5, C=2.0, sphere_map="clr", tol=TOL).fit(X, y)
    kernel = dhsk.HeatKernel.at_scale(30, 0.5)
    rows, others = clr_map(X), clr_map(new)
    peer = SVC(kernel="precomputed", C=2.0, tol=TOL).fit(kernel.of_rows(rows), y)
    expected = peer.decision_function(kernel.of_rows(others, rows))
    np.testing.assert_allclose(model.decision_function(new), expected, rtol=0, atol=10 * TOL)
    model.save(tmp_path / "model")
    again = dhsk.HeatSVC.load(tmp_path / "model")
    assert (again.decision_function(new) == model.decision_function(new)).all()


def test_a_search_is_that_of_mapped_samples() -> None:
    """The same scores; the code on the page has the map."""
    X, y = counts()
    given: dict[str, Any] = {"kernels": "heat", "cv": 3, "out": dhsk.Output(baselines=False)}
    found = dhsk.cross_validate(X, y, sphere_map="clr", **given)
    expected = dhsk.cross_validate(clr_map(X), y, sphere_map="identity", **given)
    assert [row.score for row in found.rows] == [row.score for row in expected.rows]
