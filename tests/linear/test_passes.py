"""What the primal solver asks of the features, against its definition."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import dhsk
from dhsk.execution.threads import Threads
from dhsk.linear.losses import LOSSES
from dhsk.linear.passes import (
    Columns,
    Estimate,
    Targets,
    _spread,
    active,
    curvature_of,
    curvatures,
    curved,
    gradients,
    hessians,
)
from dhsk.linear.preconditioner import Factors
from dhsk.nystrom.components import inverse_root
from dhsk.nystrom.spans import Basis, FeatureMatrix, InMemoryFeatures, of_rows

N, K, J = 700, 30, 4
ROUNDING = {"float64": 1e-12, "float32": 2e-5}
"""Relative, of sums of 700 products: some sqrt(700) units of the last digit, and a margin."""

columns = Columns(np.arange(J), np.array([0, 1, 0, 1]), np.full(J, 2.0))

HINGE = LOSSES["squared_hinge"]


class Drawn:
    """Features, labels, weights and coefficients."""

    def __init__(self, dtype: str) -> None:
        rng = np.random.default_rng(0)
        self.Z = rng.normal(size=(N, K)).astype(dtype)
        self.codes = rng.integers(0, J, N)
        self.weights = rng.uniform(0.5, 2, (N, 2)).astype(dtype)
        self.weights[::7] = 0
        self.V = rng.normal(size=(K + 1, J)) / 3
        self.D = rng.normal(size=(K + 1, J))
        self.with_one = np.hstack([self.Z, np.ones((N, 1))]).astype(np.float64)
        self.signs = np.where(self.codes[:, None] == columns.positive, 1.0, -1.0)

    def blocks(self) -> Any:
        """Of a span."""
        return InMemoryFeatures(self.Z).blocks(None)

    def factors(self, loss: Any) -> NDArray[Any]:
        """Second derivatives of the losses by the decisions, by definition."""
        margin = self.signs * (self.with_one @ self.V)
        found: NDArray[Any] = loss.curvature(margin) * self.weights[:, columns.group]
        return found


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("name", LOSSES)
def test_products_with_second_derivatives(name: str, dtype: str) -> None:
    """From curvatures that are held, of some columns, and computed on the way."""
    drawn, loss, chosen = Drawn(dtype), LOSSES[name], np.array([3, 1])
    given = (drawn.codes, drawn.weights, drawn.V)
    held = curvature_of(drawn.blocks(), *given, columns, loss)
    assert held.dtype == dtype
    D = np.ascontiguousarray(drawn.D[:, chosen].T, dtype)
    by_rows = curved(drawn.blocks(), held, D, chosen)
    whole = curvatures(drawn.blocks(), *given, drawn.D, columns, loss)
    expected = drawn.with_one.T @ (drawn.factors(loss) * (drawn.with_one @ drawn.D))
    atol = ROUNDING[dtype] * np.abs(expected).max()
    np.testing.assert_allclose(whole, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(by_rows, expected[:, chosen].T, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("few", [False, True])
def test_gradients_of_few_samples_and_of_many(few: bool, dtype: str) -> None:
    """Row by row where few samples are on the wrong side of their margin, else as a product."""
    drawn, loss = Drawn(dtype), HINGE
    drawn.V[-1] = -20 if few else 0  # a constant that most samples, of other classes, like
    margin = drawn.signs * (drawn.with_one @ drawn.V)
    slopes = loss.slope(margin) * drawn.signs * drawn.weights[:, columns.group]
    assert (np.count_nonzero(slopes) < 0.5 * slopes.size) == few
    values, sums = gradients(
        drawn.blocks(), drawn.codes, drawn.weights, drawn.V, columns, loss
    )  # fmt: skip
    expected = drawn.with_one.T @ slopes
    atol = ROUNDING[dtype] * np.abs(expected).max()
    np.testing.assert_allclose(sums, expected, rtol=0, atol=atol)
    losses = (loss.value(margin) * drawn.weights[:, columns.group]).sum(axis=0)
    np.testing.assert_allclose(values, losses, rtol=ROUNDING[dtype])


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_second_derivatives_by_a_share_of_the_samples(share: float) -> None:
    """Those of the samples that make it up, divided by it; of all of them the whole."""
    drawn, loss = Drawn("float64"), HINGE
    given = (drawn.codes, drawn.weights, drawn.V, columns, loss)
    parts = np.array([share, 1.0, share, 1.0])
    found = hessians(drawn.blocks(), *given, Estimate(parts))
    used = drawn.factors(loss) * _spread(0, N, parts) / parts
    expected = np.einsum("ni,nj,nm->jim", drawn.with_one, used, drawn.with_one)
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())
    counts = active(drawn.blocks(), *given)
    np.testing.assert_array_equal(counts, np.count_nonzero(drawn.factors(loss), axis=0))


@pytest.mark.parametrize("first", [0, 12345, 10**9])
@pytest.mark.parametrize("period", [1, 2, 5, 13])
def test_a_share_is_spread_over_samples_in_any_order(first: int, period: int) -> None:
    """Also over every fifth of them, as where classes take turns.

    Multiples of an irrational number with bounded partial quotients miss a share by O(log n);
    those of a multiple of it have larger quotients: log2(5000) = 12, times the period.
    """
    count, share = 5000, np.array([0.1, 0.37])
    taken = _spread(first, count * period, share)[::period].sum(axis=0)
    np.testing.assert_allclose(taken, share * count, atol=12 * period)


def test_factors_of_a_share_serve_as_those_of_all() -> None:
    """With 8 active samples a feature, eigenvalues are within (1 +- 8^-0.5)^2 and a margin.

    The quotients of two such matrices, for features of a normal law, by Marchenko and Pastur.
    """
    n, k = 40_000, 60
    rng = np.random.default_rng(1)
    Z, y = rng.normal(size=(n, k)), rng.integers(0, 2, n)
    features, weights = FeatureMatrix.in_memory(Z, Threads(1)), np.ones((n, 1))
    one, loss = Columns(np.array([1]), np.array([0]), np.array([1.0])), HINGE
    factors, V = Factors(one), np.zeros((k + 1, 1))
    factors.compute(features, Targets(y, weights), V, one, loss, 10**9)
    with_one = np.hstack([Z, np.ones((n, 1))])
    exact = np.eye(k + 1) + 2 * with_one.T @ with_one
    ratio = np.linalg.eigvals(
        np.column_stack([factors.solve(row[:, None], one)[:, 0] for row in exact])
    ).real
    low, high = (1 - 8**-0.5) ** 2, (1 + 8**-0.5) ** 2
    assert 0.9 / high <= ratio.min() < 0.95  # so not all samples were used
    assert ratio.max() <= 1.1 / low


@pytest.mark.slow
def test_factors_of_computed_features_keep_their_small_components(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Squares are of features, not of kernel values, whose small components float32 would lose."""
    monkeypatch.setattr("dhsk.linear.preconditioner._ENOUGH", 1000)  # so all samples are used
    X, y = load_digits(return_X_y=True)
    rows = dhsk.hyperspherical_map(X + 1e-3).astype(np.float32)
    kernel, y = dhsk.HeatKernel.at_scale(64, 1.0), y % 2
    landmarks = rows[::4]
    root = inverse_root(kernel.of_rows(landmarks))
    assert np.linalg.norm(root, 2) > 50  # twice, to squares that are off by some 1e-6 of 500
    Z = FeatureMatrix(of_rows(rows), len(rows), Threads(1),
                      dtype=rows.dtype, basis=Basis(kernel, landmarks), root=root)  # fmt: skip
    one, loss = Columns(np.array([1]), np.array([0]), np.array([100.0])), HINGE
    factors, V = Factors(one), np.zeros((Z.width + 1, 1))
    factors.compute(Z, Targets(y, np.ones((len(y), 1), np.float32)), V, one, loss, 10**9)
    features = kernel.of_rows(rows, landmarks).astype(np.float64) @ root
    with_one = np.hstack([features, np.ones((len(y), 1))])
    exact = np.eye(Z.width + 1) + 2 * 100.0 * with_one.T @ with_one
    ratio = np.linalg.eigvals(
        np.column_stack([factors.solve(row[:, None], one)[:, 0] for row in exact])
    ).real
    assert 0.8 < ratio.min() < ratio.max() < 1.25
