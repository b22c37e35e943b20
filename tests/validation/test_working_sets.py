"""Grids on working sets, whose N x N matrix is never computed, against those on stored products."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.models.fit_plan import plan_fits
from dhsk.models.gram_source import GramSource
from dhsk.models.rescaling import matrix_in_units
from dhsk.solvers.ball import balls_about_few

ROOM = 512**2 * 8
"""Memory of a matrix: less than that of a pair, more than that of its support vectors."""

TOL = 1e-3

GRID: dict[str, Any] = {
    "time_scale": [0.5, 1.5],
    "C": [1.0, 30.0],
    "cv": dhsk.StratifiedFolds(3, min_class=3),
    "fit": dhsk.Fitting(tol=TOL),
}


@pytest.fixture(scope="module")
def mixtures() -> tuple[Any, Any]:
    """Counts of three topics with a margin, and a class of two samples: 1,082 samples."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.3), 3)
    y = np.concatenate([np.repeat(np.arange(3), 360), [3, 3]])
    share = rng.uniform(0, 0.4, len(y))[:, None]
    mixed = (1 - share) * topics[y % 3] + share * topics[(y + 1) % 3]
    order = rng.permutation(len(y))
    return rng.multinomial(60, mixed)[order].astype(float), y[order]


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan has the memory for the whole matrix of a pair."""

    def planned(*args: Any, **options: Any) -> Any:
        return replace(plan_fits(*args, **options), whole=False, held=False, room=ROOM)

    monkeypatch.setattr("dhsk.validation.exact.plan_fits", planned)


def without_seconds(result: dhsk.CvResult) -> list[dict[str, Any]]:
    """The table, but for what a clock said."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in result.results_]


def agree(found: dhsk.CvResult, stored: dhsk.CvResult) -> None:
    """Scores are equal, and the rest is to the tolerance; VC bounds are valid but larger."""
    for one, other in zip(found.results_, stored.results_, strict=True):
        assert one["score"] == other["score"]
        assert one["converged"]
        assert one["kkt"] <= TOL
        assert one["n_support"] == pytest.approx(other["n_support"], rel=0.05, abs=2)
        assert one["margin"] == pytest.approx(other["margin"], rel=0.01)
        assert 0.98 * other["vc"] <= one["vc"] <= 1.6 * other["vc"] + 1
    assert found.data["confusion"] == stored.data["confusion"]
    assert found.data["trace"] == pytest.approx(stored.data["trace"], rel=1e-12)


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("kernel", ["heat", "gaussian", "smoothed"])
def test_grids_agree_with_those_on_stored_products(
    mixtures: Any, little_memory: None, tmp_path: Path, kernel: str
) -> None:
    """All classes, folds and C, the refit too; no tile is computed, and nothing is stored."""
    X, y = mixtures
    grid = dict(GRID)
    if kernel != "heat":
        del grid["time_scale"]
        own = dhsk.SmoothedKernel(dhsk.HeatKernel.at_scale(30, 0.7), 0.5)
        grid["kernels"] = [dhsk.GaussianKernel(8.0)] if kernel == "gaussian" else [own]
    stages: list[str] = []
    found = dhsk.cross_validate(
        X,
        y,
        **grid,
        refit=True,
        out=tmp_path,
        progress=lambda e: stages.append(e.stage),
    )
    stored = dhsk.cross_validate(
        X, y, **grid, refit=True, out=dhsk.Output(store=tmp_path / "stored", eigenvalues=True)
    )
    agree(found, stored)
    assert "columns of 1,082" in stages
    assert "tiles" not in stages
    assert not (tmp_path / "gram").exists()
    assert found.eigenvalues == ()
    assert len(stored.eigenvalues) > 0
    plan = dict(found.plan)
    assert "on working sets" in plan["fits"]
    assert "upper bounds" in plan["eigenvalues"]
    assert "working sets" not in dict(stored.plan)["fits"]
    np.testing.assert_array_equal(found.model_.predict(X), stored.model_.predict(X))
    assert found.refit is not None
    assert stored.refit is not None
    assert found.refit.margin == pytest.approx(stored.refit.margin, rel=0.01)


@pytest.mark.slow
def test_sets_that_do_not_fit_need_no_pass_over_the_matrix(
    mixtures: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """There are steps on blocks, from samples of few bytes."""
    X, y = mixtures
    grid = GRID | {"time_scale": 0.5, "C": [0.003, 1.0]}  # nearly all are support vectors of one
    stored = dhsk.cross_validate(X, y, **grid, out=dhsk.Output(store=tmp_path / "stored"))

    def planned(*args: Any, **options: Any) -> Any:
        return replace(plan_fits(*args, **options), whole=False, held=False, room=320**2 * 8)

    monkeypatch.setattr("dhsk.validation.exact.plan_fits", planned)
    monkeypatch.setattr(GramSource, "product", lambda *_: pytest.fail("a pass over the matrix"))
    agree(dhsk.cross_validate(X, y, **grid), stored)


def test_cores_are_not_idle_for_whole_matrices(mixtures: Any) -> None:
    """Where fewer fit in memory than there are cores, working sets are solved on all of them."""
    X, y = mixtures
    grid = GRID | {"time_scale": 0.5, "C": 1.0}

    def fits(threads: int) -> str:
        def planned(*args: Any, **options: Any) -> Any:
            plan = plan_fits(*args, **options)
            return replace(plan, at_once=1) if plan.whole else plan

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dhsk.validation.exact.plan_fits", planned)
            patch.setattr("dhsk.execution.workers.core_count", lambda: threads)
            return str(dict(dhsk.cross_validate(X, y, **grid).plan)["fits"])

    assert "on working sets" in fits(2)
    assert "on its whole matrix" in fits(1)


@pytest.mark.slow
def test_automatic_C_is_from_a_sample_of_columns(
    mixtures: Any, little_memory: None, tmp_path: Path, monkeypatch: Any
) -> None:
    """All columns give C as the stored way has it, and a few of them nearly so."""
    X, y = mixtures
    grid = GRID | {"C": "auto", "time_scale": 0.7}

    def bounds(**options: Any) -> Any:
        found = dhsk.cross_validate(X, y, **grid, **options)
        return np.array([row["C"] for row in found.results_])

    stored = bounds(out=dhsk.Output(store=tmp_path))
    monkeypatch.setattr("dhsk.validation.exact.SPREAD_COLUMNS", 10_000)
    np.testing.assert_array_equal(bounds(), stored)
    monkeypatch.setattr("dhsk.validation.exact.SPREAD_COLUMNS", 200)
    # The mean of 200 columns, whose own means differ by a few percent, is off by less than one.
    np.testing.assert_allclose(bounds(), stored, rtol=0.02)
    assert (bounds() != stored).any()


class StopHereError(Exception):
    """Raised by the progress callback."""


@pytest.mark.slow
def test_interrupted_grids_go_on_with_the_same_bits(
    mixtures: Any, little_memory: None, tmp_path: Path, monkeypatch: Any, client: Any
) -> None:
    """Ended in the middle of kernels, on threads and on a client; rounds are dropped in the end.

    Each call finds some bytes less of free memory, which begins no rounds anew.
    """
    X, y = mixtures
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    rounds: list[str] = []

    def remember(event: dhsk.Progress) -> None:
        rounds.append(event.stage)

    with client.as_current():
        whole = dhsk.cross_validate(X, y, **GRID, progress=remember)
    kept, ends = [], 0

    def planned(*args: Any, **options: Any) -> Any:
        plan = replace(plan_fits(*args, **options), whole=False, held=False)
        return replace(plan, room=ROOM - 8 * ends)

    monkeypatch.setattr("dhsk.validation.exact.plan_fits", planned)
    while ends < 100:
        try:
            result = dhsk.cross_validate(X, y, **GRID, out=tmp_path, progress=stop_after_a_round)
            break
        except StopHereError:
            ends += 1
            kept += list((tmp_path / "fits").glob("sets-*"))
    assert ends == rounds.count(f"columns of {len(y):,}") > 2  # each call makes the next round
    assert len(set(kept)) == 3  # a kernel each, and the memory of the first call
    assert without_seconds(result) == without_seconds(whole)
    assert len(list((tmp_path / "fits").iterdir())) == 2


def stop_after_a_round(event: dhsk.Progress) -> None:
    """End the grid once a round is reported."""
    if event.stage.startswith("columns of"):
        raise StopHereError("here")


@pytest.fixture
def stages() -> tuple[list[str], Callable[[dhsk.Progress], None]]:
    """Stages of progress, and who remembers them."""
    seen: list[str] = []
    return seen, lambda event: seen.append(event.stage)


@pytest.mark.slow
def test_products_are_stored_where_they_are_wanted(
    mixtures: Any, stages: Any, tmp_path: Path
) -> None:
    """With memory for whole matrices, unless the disk is too small; and where a store is there."""
    X, y = mixtures
    seen, progress = stages
    grid = GRID | {"progress": progress}
    found = dhsk.cross_validate(X, y, **grid, out=dhsk.Output(disk="1MB"))
    assert "tiles" not in seen
    assert "on working sets" in dict(found.plan)["fits"]
    stored = dhsk.cross_validate(X, y, **GRID, out=dhsk.Output(store=tmp_path / "gram"))
    agree(found, stored)
    again = dhsk.cross_validate(X, y, **grid, out=dhsk.Output(store=tmp_path / "gram"))
    assert "tiles" in seen  # of the store, all of which are there
    assert without_seconds(again) == without_seconds(stored)


@pytest.mark.slow
def test_matrices_on_demand_are_solved_on_working_sets(
    mixtures: Any, little_memory: None, stages: Any
) -> None:
    """Those of the user too; stored ones are read."""
    X, y = mixtures
    seen, progress = stages
    G = dhsk.compute_gram(X, "cosine")
    found = dhsk.cross_validate(G, y, **GRID, progress=progress)
    assert "columns of 1,082" in seen
    assert without_seconds(found) == without_seconds(dhsk.cross_validate(X, y, **GRID))


@pytest.mark.parametrize("scale", [0.5, 30.0])
def test_balls_about_few_hold_all_samples(mixtures: Any, scale: float) -> None:
    """Also of a stretched kernel; and they are hardly larger than those about the means."""
    X, y = mixtures
    G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(30, scale))
    G, unit = matrix_in_units(G)
    assert (unit == 1.0) is (scale < 1)
    classes = [np.flatnonzero(y == c) for c in range(4)]
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    *found, all_of = balls_about_few(GramSource(G), classes, [*pairs, range(4)])
    assert all_of > 0.99 * max(found)
    K = G[:, :]
    for radius2, (a, b) in zip(found, pairs, strict=True):
        own = np.concatenate([classes[a], classes[b]])
        mean = np.full(len(own), 1 / len(own))
        if 3 in (a, b):  # the centre is half way to the mean of few samples
            mean = np.repeat(
                [0.5 / len(classes[a]), 0.5 / len(classes[b])], [len(classes[a]), len(classes[b])]
            )
        part = K[np.ix_(own, own)]
        about_mean = (np.diagonal(part) - 2 * part @ mean).max() + mean @ part @ mean
        assert 0.9 * about_mean <= radius2 <= 1.1 * about_mean
