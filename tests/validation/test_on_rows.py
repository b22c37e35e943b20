"""Linear kernels of a grid on rows in memory, against those on stored products."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.gram.compute import compute_gram
from tests.validation.test_working_sets import agree, without_seconds

GRID: dict[str, Any] = {
    "kernels": [dhsk.CosineKernel(), dhsk.LinearKernel()],
    "C": [1.0, 10.0],
    "cv": dhsk.StratifiedFolds(3),
    "fit": dhsk.Fitting(tol=1e-6),
}


@pytest.fixture(scope="module")
def counts() -> tuple[Any, Any]:
    """Sparse counts of 40 words and three classes in any order, 420 samples."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 420)
    rates = np.full((420, 40), 0.15)
    rates[np.arange(420), y] = 1.0
    X = rng.poisson(rates).astype(float)
    X[:, -1] = 1.0
    return csr_array(X), y


@pytest.fixture(autouse=True)
def large_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems of few samples count as large ones."""
    for module in ("solvers.pairs", "validation.matrices"):
        monkeypatch.setattr(f"dhsk.{module}.FINE_SAMPLES", 64)
    monkeypatch.setattr("dhsk.validation.matrices.SAMPLES_OF_ENTRY", 1)


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Kernels whose matrices were made, and whether they were stored."""
    made: list[tuple[str, bool]] = []

    def recorded(samples: Any, kernel: Any, **options: Any) -> Any:
        made.append((kernel.name, options["store"] is not None))
        return compute_gram(samples, kernel, **options)

    monkeypatch.setattr("dhsk.validation.matrices.compute_gram", recorded)
    return made


@pytest.mark.parametrize("way", ["ovo", "ovr"])
def test_results_are_those_of_stored_products(
    way: Any, counts: Any, stores: list[tuple[str, bool]], tmp_path: Path
) -> None:
    """In both ways, with the model of the best; nothing is stored where nothing is asked for."""
    X, y = counts
    how = GRID | {"multi_class": way, "refit": True}
    found = dhsk.cross_validate(X, y, **how)
    assert stores == [("cosine", False), ("linear", False)]
    stored = dhsk.cross_validate(X, y, **how, out=dhsk.Output(store=tmp_path))
    assert stores[2:] == [("cosine", True), ("linear", True)]
    agree(found, stored)
    assert "on normal vectors" in dict(found.plan)["fits"]
    assert "on normal vectors" not in dict(stored.plan)["fits"]
    assert found.model_ is not None
    assert stored.model_ is not None
    np.testing.assert_array_equal(found.model_.predict(X), stored.model_.predict(X))


def test_other_kernels_have_their_products(counts: Any, stores: list[tuple[str, bool]]) -> None:
    """A heat kernel's cosines are stored; the cosine kernel takes its rows from there."""
    X, y = counts
    dhsk.cross_validate(X, y, **GRID | {"time_scale": 1.0})
    assert sorted(stores) == [("cosine", True), ("linear", False)]


def test_rows_that_do_not_fit_are_not_kept(
    counts: Any, stores: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their products are stored as ever, with the same scores."""
    X, y = counts
    found = dhsk.cross_validate(X, y, **GRID)
    monkeypatch.setattr("dhsk.validation.matrices.KEPT_BYTES", 1000)
    stored = dhsk.cross_validate(X, y, **GRID)
    assert stores[2:] == [("cosine", True), ("linear", True)]
    agree(found, stored)


def test_long_rows_are_not_kept(
    counts: Any, stores: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps on them would take longer than on a matrix."""
    X, y = counts
    monkeypatch.setattr("dhsk.validation.matrices.SAMPLES_OF_ENTRY", 100)
    dhsk.cross_validate(X, y, **GRID)
    assert stores == [("cosine", True), ("linear", True)]


def test_tfidf_has_rows_in_every_fold(counts: Any, stores: list[tuple[str, bool]]) -> None:
    """Of each fold its own."""
    X, y = counts
    only = GRID | {"kernels": [dhsk.CosineKernel()], "sphere_map": "tfidf"}
    dhsk.cross_validate(X, y, **only)
    assert stores == [("cosine", False)] * 3


class StopHereError(Exception):
    """Raised by the progress callback."""


def test_a_killed_grid_goes_on_with_the_same_bits(counts: Any, tmp_path: Path) -> None:
    """From what is finished, kernel by kernel and pair by pair."""
    X, y = counts
    whole, seen = dhsk.cross_validate(X, y, **GRID), 0

    def stop(event: dhsk.Progress) -> None:
        nonlocal seen
        seen += event.stage == "fits"
        if seen > 3:
            raise StopHereError

    with pytest.raises(StopHereError):
        dhsk.cross_validate(X, y, **GRID, out=tmp_path, progress=stop)
    again = dhsk.cross_validate(X, y, **GRID, out=tmp_path)
    assert without_seconds(again) == without_seconds(whole)


def test_workers_find_the_same_bits(counts: Any, client: Any) -> None:
    """They are sent the rows once."""
    X, y = counts
    whole = dhsk.cross_validate(X, y, **GRID)
    assert without_seconds(dhsk.cross_validate(X, y, **GRID, client=client)) == without_seconds(
        whole
    )
