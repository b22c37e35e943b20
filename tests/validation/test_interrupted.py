"""Grids that are interrupted: what is on disk, and how they go on."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.execution.checkpoint import Checkpoint
from dhsk.models.pair_fits import PairSolver

KERNEL = dhsk.HeatKernel.at_scale(64, 0.5)


class StopHereError(Exception):
    """Raised by the progress callback."""


GRID: dict[str, Any] = {
    "kernels": [dhsk.CosineKernel(), KERNEL, dhsk.GaussianKernel(20.0)],
    "C": [0.5, 5.0],
    "cv": 3,
}


def without_seconds(result: dhsk.CvResult) -> list[dict[str, Any]]:
    """The table, but for what a clock said."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in result.results_]


def count_fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the fits that are finished from now on."""
    names: list[str] = []
    put = Checkpoint.put

    def counting(self: Checkpoint, name: str, arrays: Any, values: Any = None) -> None:
        if "coef" in arrays:
            names.append(name)
        put(self, name, arrays, values)

    monkeypatch.setattr(Checkpoint, "put", counting)
    return names


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "memory"), [(0, "ample"), (1, "ample"), (2, "parts")])
def test_interrupted_grids_go_on(
    digits: Any, force_rounds: Any, tmp_path: Path, monkeypatch: Any, seed: int, memory: str
) -> None:
    """Ended at random points, as often as it takes: the same table, and nothing fitted twice."""
    X, y, _ = digits
    in_parts = force_rounds() if memory == "parts" else [0]
    reports: list[int] = []

    def remember(event: dhsk.Progress) -> None:
        if event.stage == "fits":
            reports.append(event.done)

    grid = GRID | ({"out": dhsk.Output(store=tmp_path / "gram")} if memory == "parts" else {})
    uninterrupted = dhsk.cross_validate(X, y, **grid, progress=remember)
    rng = np.random.default_rng(seed)
    fitted = count_fits(monkeypatch)
    kept = dhsk.Output(tmp_path, store=tmp_path / "gram" if memory == "parts" else None)
    options = grid | {"out": kept}
    interruptions = 0
    while True:
        stop = len(fitted) + int(rng.integers(1, 16))

        def progress(event: dhsk.Progress, stop: int = stop) -> None:
            if event.stage == "fits" and len(fitted) >= stop:
                raise StopHereError("here")

        try:
            result = dhsk.cross_validate(X, y, **options, progress=progress)
            break
        except StopHereError:
            interruptions += 1
    assert interruptions > 0
    assert in_parts
    assert without_seconds(result) == without_seconds(uninterrupted)
    assert result.data["confusion"] == uninterrupted.data["confusion"]
    # Each with all C, and all folds unless there are few fits (`fit_plan.FEW_TASKS`).
    assert len(fitted) == len(set(fitted)) in (reports[-1] // 2, reports[-1] // (3 * 2))
    fitted.clear()
    again = dhsk.cross_validate(X, y, **options)
    assert fitted == []
    assert again.results_ == result.results_  # with their seconds
    names = [path.name for path in (tmp_path / "fits").iterdir()]
    assert len(names) == 3


def rows_of(table: Path) -> list[dict[str, str]]:
    """What is in a table, none if there is no such file."""
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def test_rows_of_finished_kernels_are_on_disk(digits: Any, tmp_path: Path) -> None:
    """All of what is finished, at any moment; of what an earlier call had left, nothing."""
    X, y, _ = digits
    table = tmp_path / "results.csv"
    table.write_text("old\n1\n")
    grid = GRID | {"out": tmp_path}
    seen: list[list[dict[str, str]]] = []

    def look(event: dhsk.Progress) -> None:
        if event.stage == "fits":
            seen.append(rows_of(table))
            if len({row["label"] for row in seen[-1]}) == 2 and not seen[0]:
                raise StopHereError("here")

    with pytest.raises(StopHereError, match="here"):
        dhsk.cross_validate(X, y, **grid, progress=look)
    assert {len(rows) for rows in seen} == {0, 6, 12}
    seen = [rows_of(table)]
    result = dhsk.cross_validate(X, y, **grid, progress=look)
    assert seen[1] == seen[0]  # from the journal
    result.to_csv(tmp_path / "whole.csv")
    assert table.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert all(row in rows_of(table) for rows in seen for row in rows)
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.csv",
        "whole.csv",
        "fits",
    }


@pytest.mark.slow
def test_rows_of_a_search_are_of_all_its_stages(digits: Any, tmp_path: Path) -> None:
    """Times that were tried first stay in the table."""
    X, y, _ = digits
    result = dhsk.cross_validate(X, y, time_scale="auto", C=1.0, cv=2, out=tmp_path)
    assert len(result.data["search"]) > 1
    assert [float(row["time"]) for row in rows_of(tmp_path / "results.csv")] == [
        row["time"] for row in result.results_
    ]


@pytest.mark.slow
def test_journal_of_another_problem_is_not_taken(
    digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever changes a fit or its score makes it new; what does not, does not."""
    _, y, K = digits
    fitted = count_fits(monkeypatch)
    base: dict[str, Any] = {"C": [1.0], "cv": 2, "out": tmp_path}

    def run(K: Any, y: Any, **changes: Any) -> bool:
        fitted.clear()
        dhsk.cross_validate(K, y, kernels="precomputed", **(base | changes))
        return bool(fitted)

    assert run(K, y)
    assert not run(K, y)
    assert not run(K, y + 10)  # other names of the same classes
    changed = K.copy()
    changed[0, 1] = changed[1, 0] = np.nextafter(K[0, 1], 1)
    for matrix, labels, changes in (
        (changed, y, {}),
        (K.astype(np.float32), y, {}),
        (K, y[::-1], {}),
        (K, y, {"C": [1.0, 2.0]}),
        (K, y, {"cv": dhsk.StratifiedFolds(2, random_state=1)}),
        (K, y, {"fit": dhsk.Fitting(tol=1e-4)}),
        (K, y, {"scoring": "f1_macro"}),
        (K, y, {"class_weight": "balanced"}),
        (K, y, {"sample_weight": np.r_[2.0, np.ones(259)]}),
    ):
        assert run(matrix, labels, **changes), changes
    assert not run(K, y)


def test_damaged_entries_are_fitted_again(digits: Any, tmp_path: Path) -> None:
    """The table is the same as before."""
    _, y, K = digits
    options: dict[str, Any] = {"kernels": "precomputed", "C": [1.0], "cv": 2, "out": tmp_path}
    first = dhsk.cross_validate(K, y, **options)
    (entry,) = (tmp_path / "fits").iterdir()
    whole = entry.read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole[:200] + b"xyz" + whole[203:]):
        entry.write_bytes(content)
        assert without_seconds(dhsk.cross_validate(K, y, **options)) == without_seconds(first)


def test_cheap_kernels_come_first(digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large times are fitted before small ones; the table keeps the order that was asked for."""
    order: list[int] = []
    solved = PairSolver.solved

    def spy(self: PairSolver, wanted: Any) -> Any:
        order.extend(wanted)
        return solved(self, wanted)

    monkeypatch.setattr(PairSolver, "solved", spy)
    X, y, _ = digits
    found = dhsk.cross_validate(X, y, time_scale=[0.5, 1.4, 0.7], C=1, cv=2)
    assert [row["time_scale"] for row in found.summary_] == [0.5, 1.4, 0.7]
    assert order == [1, 2, 0]


@pytest.mark.parametrize("sphere_map", ["hyperspherical", "scaled"])
def test_linear_kernels_are_solved_in_one_way(
    digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sphere_map: Any
) -> None:
    """On rows, whose spread is that of some columns, also where an interrupt has left products."""
    monkeypatch.setattr("dhsk.validation.matrices.FINE_SAMPLES", 20)
    monkeypatch.setattr("dhsk.validation.matrices.SAMPLES_OF_ENTRY", 0)
    monkeypatch.setattr("dhsk.validation.exact.SPREAD_COLUMNS", 10)
    X, y, _ = digits
    other: Any = "cosine" if sphere_map == "hyperspherical" else dhsk.GaussianKernel(9.0)
    grid: dict[str, Any] = {
        "kernels": [other, "linear"], "C": "auto", "cv": 3, "sphere_map": sphere_map
    }  # fmt: skip
    expected = dhsk.cross_validate(X, y, **grid)

    left = tmp_path / "fits" / "gram" / "sample-1000"
    left.mkdir(parents=True)
    (left / "zarr.json").write_text("{}")
    found = dhsk.cross_validate(X, y, **grid, out=tmp_path)
    assert without_seconds(found) == without_seconds(expected)
