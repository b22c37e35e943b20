"""Disk of a cross-validation: bounded before anything is written, empty of products at the end."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.costs import Cost, costs_told
from dhsk.errors import BudgetError
from dhsk.execution.checkpoint import Checkpoint
from dhsk.objects.places import bytes_below

GRID: dict[str, Any] = {"time_scale": [0.7, 1.0], "C": [1.0, 10.0], "cv": 3}


@pytest.fixture
def X(counts: Any) -> Any:
    """Counts of 600 samples, of two kinds."""
    X = counts(600, 12)
    X[300:, :4] += 3
    return X


@pytest.fixture
def y() -> Any:
    """Their kinds."""
    return np.repeat([0, 1], 300)


def scores(result: dhsk.CvResult) -> list[float]:
    """Scores of all rows."""
    return [row["score"] for row in result.results_]


def test_products_are_there_until_the_end(X: Any, y: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A run that is stopped leaves them for the next one, which removes them."""

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "put", stopped)
        with pytest.raises(KeyboardInterrupt):
            dhsk.cross_validate(X, y, **GRID, out=tmp_path)
    (chunk,) = (tmp_path / "fits" / "gram" / "cosine" / "gram" / "c").glob("*/*")
    before, stages = chunk.stat().st_mtime_ns, []

    def look(event: dhsk.Progress) -> None:
        stages.append(event)
        if event.stage == "fits":
            assert chunk.stat().st_mtime_ns == before  # it was not computed again

    found = dhsk.cross_validate(X, y, **GRID, out=tmp_path, progress=look)
    assert any(event.stage == "fits" for event in stages)
    assert {path.name for path in tmp_path.iterdir()} == {"fits", "results.csv"}
    assert not (tmp_path / "fits" / "gram").exists()
    assert scores(found) == scores(dhsk.cross_validate(X, y, **GRID))


def test_a_store_that_was_asked_for_stays(X: Any, y: Any, tmp_path: Path) -> None:
    """Wherever it is."""
    dhsk.cross_validate(X, y, **GRID, out=dhsk.Output(tmp_path, store=tmp_path / "mine"))
    assert dhsk.open_gram(tmp_path / "mine" / "cosine").verify() == 1


@pytest.mark.parametrize("sphere_map", [None, "tfidf"])
def test_products_beyond_the_limit_are_not_stored(
    X: Any, y: Any, tmp_path: Path, sphere_map: Any
) -> None:
    """They are computed when they are needed; of tf-idf the products of all folds count."""
    seen = set()

    def look(_: dhsk.Progress) -> None:
        seen.update(path.name for path in tmp_path.rglob("c"))

    grid = GRID | {"sphere_map": sphere_map, "progress": look}
    limit = 8 * 600**2 * (1.5 if sphere_map else 0.5)
    found = dhsk.cross_validate(X, y, **grid, out=dhsk.Output(tmp_path, disk=int(limit)))
    assert not seen
    assert "on demand" in dict(found.plan)["fits"]
    stored = dhsk.cross_validate(X, y, **grid, out=tmp_path / "stored")
    assert seen
    assert np.allclose(scores(found), scores(stored), atol=0.01)


def test_products_take_some_gigabytes_unasked(
    X: Any, y: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is free: more is for who says so, or asks for a store."""
    monkeypatch.setattr("dhsk.validation.disk.UNASKED", 1000)
    stores = list[bool]()

    def look(event: dhsk.Progress) -> None:
        stores.append(any((tmp_path / "out").rglob("cosine")))

    for out, kept in (
        (dhsk.Output(tmp_path / "out"), False),
        (dhsk.Output(tmp_path / "out", disk="1GB"), True),
    ):
        stores.clear()
        dhsk.cross_validate(X, y, **GRID, out=out, progress=look)
        assert any(stores) == kept
        for entry in (tmp_path / "out" / "fits").glob("*.npz"):
            entry.unlink()
    dhsk.cross_validate(X, y, **GRID, out=dhsk.Output(tmp_path, store=tmp_path / "mine"))
    assert (tmp_path / "mine" / "cosine").exists()


def test_half_of_the_free_disk_is_the_limit(
    X: Any, y: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless a store was asked for, which may take all of it."""
    need = 8 * 600**2 + 8 * 600 * 12
    monkeypatch.setattr("dhsk.validation.disk.free_bytes", lambda _: int(1.9 * need))
    found = dhsk.cross_validate(X, y, **GRID)
    assert "on demand" in dict(found.plan)["fits"]
    dhsk.cross_validate(X, y, **GRID, out=dhsk.Output(store=tmp_path / "g"))
    assert (tmp_path / "g" / "cosine").exists()
    monkeypatch.setattr("dhsk.validation.disk.free_bytes", lambda _: int(2.1 * need))
    assert "on demand" not in dict(dhsk.cross_validate(X, y, **GRID).plan)["fits"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": "g", "disk": "1MB"}, "stored inner products take .* MiB .* but 0.95 MiB|976"),
        ({"disk": "20kB"}, r"mapped samples of 1 matrix .* but 19.53 kiB are allowed"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    X: Any, y: Any, tmp_path: Path, monkeypatch: Any, options: Any, message: str
) -> None:
    """With the numbers."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BudgetError, match=message):
        dhsk.cross_validate(X, y, **GRID, out=dhsk.Output("o", **options))
    assert not list(tmp_path.rglob("*"))


def test_disk_that_is_no_size(X: Any, y: Any) -> None:
    """The message names the parameter."""
    with pytest.raises(dhsk.InputError, match="disk must be a positive size"):
        dhsk.cross_validate(X, y, **GRID, out=dhsk.Output(disk="much"))


@pytest.mark.slow
@pytest.mark.parametrize("store", [None, "mine"])
def test_the_disk_is_what_was_said(X: Any, y: Any, tmp_path: Path, store: str | None) -> None:
    """The largest and the last size of the folder, within a fifth but for the page of results."""
    told: list[Cost] = []
    largest = 0

    def look(_: dhsk.Progress) -> None:
        nonlocal largest
        largest = max(largest, bytes_below(tmp_path))

    out = dhsk.Output(tmp_path, store=None if store is None else tmp_path / store)
    grid = GRID | {"out": out, "progress": look}
    with costs_told(told.append):
        dhsk.cross_validate(X, y, **grid)
        dhsk.cross_validate(X, y, **grid)
    cost, again = told
    assert "less what an earlier run" not in cost.what
    assert "less what an earlier run has finished: " in again.sentence
    assert largest > 8 * 600**2
    assert largest <= cost.disk <= 1.2 * largest + 500_000
    assert bytes_below(tmp_path) <= cost.stays <= 1.2 * bytes_below(tmp_path) + 500_000
    assert "600 samples of 12 features, 2 classes, 2 kernels x 2 C x 3 folds: " in cost.sentence


class ToldError(Exception):
    """Ends a run when its costs are known."""


@pytest.mark.slow
def test_costs_of_all_kinds_of_input(X: Any, y: Any) -> None:
    """Matrices need no products, low ranks no matrix; a search says so."""
    told: list[Cost] = []

    def tell(cost: Cost) -> None:
        told.append(cost)
        raise ToldError

    G = dhsk.compute_gram(X, "cosine")
    with costs_told(tell):
        for given, options in (
            (G, GRID),
            (np.asarray(G), {"kernels": "precomputed", "cv": 2}),
            (X, {**GRID, "low_rank": dhsk.LowRank(20)}),
            (X, {"cv": 2}),
            (X, {**GRID, "sphere_map": "tfidf"}),
        ):
            with pytest.raises(ToldError):
                dhsk.cross_validate(given, y, **options)
    assert [cost.disk < 8 * 600**2 for cost in told] == [True, True, True, False, False]
    assert ["search" in cost.what for cost in told] == [False, False, False, True, False]
    assert all(cost.memory > 100_000_000 for cost in told)
    assert 4 * 8 * 600**2 < told[4].disk < 6 * 8 * 600**2
