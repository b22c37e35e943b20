"""Scores of diversity: against eigenvalues of the whole matrix, and what they mean."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from sklearn.exceptions import ConvergenceWarning

import dhsk
from dhsk.execution.workers import current_client

ORDERS = [0.5, 1, 1.5, 2, 3, np.inf]
ROUNDED = 1e-9
"""Relative error of scores from eigenvalues that are off by 1e-15 of the largest one, of some
hundred samples, at order 0.5: the root of 1e-15 would be 3e-8, of those that are 0."""


def by_eigenvalues(K: Any, order: float) -> float:
    """The definition, of a whole matrix."""
    p = np.linalg.eigvalsh(K / np.trace(K))
    p = p[p > 0]
    if order == 1:
        return float(np.exp(-(p * np.log(p)).sum()))
    if np.isinf(order):
        return float(1 / p.max())
    return float((p**order).sum() ** (1 / (1 - order)))


def samples(n: int = 120, dim: int = 6) -> Any:
    """Counts."""
    return np.random.default_rng(0).poisson(2.0, (n, dim)) + 0.25


MATRICES = {
    "heat": lambda X: dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(X.shape[1], 0.3)),
    "in tiles": lambda X: dhsk.compute_gram(X, dhsk.GaussianKernel(1.0), tile=32),
    "linear": lambda X: dhsk.compute_gram(X, "linear"),
    "centred": lambda X: dhsk.compute_gram(X, dhsk.GaussianKernel(2.0)).centered(),
    "normalised": lambda X: dhsk.compute_gram(X, "linear").normalized(),
    "float32": lambda X: dhsk.compute_gram(X, dhsk.GaussianKernel(1.0), dtype="float32"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", MATRICES)
def test_scores_are_those_of_the_eigenvalues(name: str, order: float) -> None:
    """Of kernels, views and types; in float32 eigenvalues are off by 6e-8, and roots of them."""
    G = MATRICES[name](samples())
    rounded = 1e-3 if name == "float32" else 1e-6 if order < 1 else ROUNDED
    assert G.vendi(order) == pytest.approx(
        by_eigenvalues(G[:, :].astype(float), order), rel=rounded
    )


@pytest.mark.parametrize("order", ORDERS)
def test_they_count_different_samples(order: float) -> None:
    """One of copies, seven of seven orthogonal ones, whatever the times that each was seen."""
    copies = dhsk.compute_gram(np.tile([1.0, 3.0, 2.0], (30, 1)), "heat")
    assert copies.vendi(order) == pytest.approx(1, rel=1e-6)
    each = np.tile(np.eye(7), (9, 1))
    assert dhsk.compute_gram(each, "linear").vendi(order) == pytest.approx(7, rel=1e-6)
    X = samples()
    once, twice = (MATRICES["heat"](some) for some in (X, np.tile(X, (2, 1))))
    assert twice.vendi(order) == pytest.approx(once.vendi(order), rel=1e-6)


def test_rke_is_one_pass() -> None:
    """And the score of order 2."""
    G = MATRICES["in tiles"](samples())
    told: list[Any] = []
    score = G.rke(progress=told.append)
    K = G[:, :]
    assert score == pytest.approx(np.trace(K) ** 2 / (K**2).sum(), rel=1e-12)
    assert (told[-1].done, told[-1].total) == (G.tiling.n_tiles, G.tiling.n_tiles)
    assert G.vendi(2) == score


@pytest.fixture
def estimating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large samples are those of more than a hundred."""
    monkeypatch.setattr("dhsk.gram.diversity.WHOLE", 100)


@pytest.mark.slow
@pytest.mark.usefixtures("estimating")
@pytest.mark.parametrize("order", [0.5, 1, 1.5, 3])
@pytest.mark.parametrize("name", ["heat", "in tiles", "centred"])
def test_estimates_are_as_close_as_asked(name: str, order: float) -> None:
    """To four standard errors, twice the tolerance; the seed decides."""
    G = MATRICES[name](samples(1200, 9))
    exact = by_eigenvalues(G[:, :], order)
    found = G.vendi(order, tol=0.06, max_passes=300)
    assert found == pytest.approx(exact, rel=2 * 0.06)
    assert found == G.vendi(order, tol=0.06, max_passes=300)
    assert found != G.vendi(order, tol=0.06, max_passes=300, seed=1)


@pytest.mark.usefixtures("estimating")
def test_what_is_computed_later_goes_where_it_should() -> None:
    """To a client that is connected after an estimate ended before its last pass."""
    MATRICES["heat"](samples(300)).vendi(0.5, tol=0.1)
    with Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as client:
        assert current_client() is client


@pytest.mark.usefixtures("estimating")
def test_too_few_passes_are_said() -> None:
    """With the error, and what to do."""
    G = MATRICES["heat"](samples(400))
    with pytest.warns(ConvergenceWarning, match=r"may be off by [\d.]+% after 5 passes, tol=1e-09"):
        G.vendi(tol=1e-9, max_passes=5)


@pytest.mark.usefixtures("estimating")
def test_a_journal_is_taken_up(tmp_path: Path) -> None:
    """Passes that are kept are not made again, and the bits are the same."""
    G = MATRICES["heat"](samples(300))
    asked: dict[str, Any] = {"tol": 0.05, "max_passes": 60}
    alone = G.vendi(**asked)
    assert G.vendi(**asked, journal=tmp_path / "kept") == alone
    told: list[Any] = []
    assert G.vendi(**asked, journal=tmp_path / "kept", progress=told.append) == alone
    assert not [event for event in told if "of the next" in event.detail]


@pytest.mark.usefixtures("estimating")
def test_vectors_have_to_fit() -> None:
    """Before any pass."""
    G = MATRICES["heat"](samples(4000))
    with pytest.raises(dhsk.BudgetError, match=r"random vectors of 4,000 samples needs .*MiB"):
        G.vendi(memory="1MB")


def test_what_has_no_score_is_refused() -> None:
    """Before a long pass, in a sentence."""
    X = samples()
    for score in ("vendi", "rke"):
        with pytest.raises(dhsk.InputError, match="scored for diversity"):
            getattr(dhsk.compute_gram(X, "linear", X[:5]), score)()
        with pytest.raises(dhsk.InputError, match="all samples have"):
            getattr(dhsk.compute_gram(np.zeros((4, 3)), "linear"), score)()
    G = dhsk.compute_gram(X, "linear")
    for order in (0, -1.0, np.nan, "one"):
        with pytest.raises(dhsk.InputError, match="order must be"):
            G.vendi(order)
    with pytest.raises(dhsk.InputError, match="max_passes must be a whole number"):
        G.vendi(max_passes=2)
    with pytest.raises(dhsk.InputError, match="tol must be above 0"):
        G.vendi(tol=0.0)


def test_indefinite_kernels_are_refused() -> None:
    """As their eigenvalues are no shares."""
    G = dhsk.compute_gram(samples(), dhsk.ParametrixKernel(1.0, order=1, dim=6))
    assert np.linalg.eigvalsh(G[:, :]).min() < -1e-3
    with pytest.raises(dhsk.InputError, match="positive semi-definite"):
        G.vendi()
