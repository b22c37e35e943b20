"""Rows of results: their columns, and what they are over the folds."""

from typing import Any

import pytest

from dhsk.results.columns import Cell, Certificate, GridPoint, Row, flat, summarise

POINT = GridPoint("heat", "heat s=1", time_scale=1.0, C=10.0)


def row(fold: int, point: GridPoint = POINT, **changes: Any) -> Row:
    """A row of an exact fit."""
    proof = {"seconds": 1.0, "converged": True, "n_iter": 7, "gap": 1e-3, "n_support": 10,
             "kkt": 1e-4, "margin": 0.5, "vc": 3, "effective": 6.0}  # fmt: skip
    return Row(**vars(point), **{"fold": fold, "score": 0.5 + 0.1 * fold, **proof, **changes})


def test_a_cell_has_means_sums_and_the_worst_of_its_folds() -> None:
    """Of every column what it says over the folds; a margin that is None does not count."""
    rows = [
        row(0),
        row(1, n_support=20, kkt=5e-4, gap=1e-5, margin=None, vc=9, effective=2.0, seconds=2.5),
        row(2, converged=False, n_iter=5, margin=0.25),
    ]
    (cell,) = summarise(rows)
    assert cell.point == POINT
    assert (cell.mean, cell.std) == (pytest.approx(0.6), pytest.approx(0.1 * (2 / 3) ** 0.5))
    assert (cell.n_support, cell.kkt, cell.gap) == (pytest.approx(40 / 3), 5e-4, 1e-3)
    assert (cell.margin, cell.vc, cell.effective) == (0.25, 9, 2.0)
    assert (cell.seconds, cell.n_iter, cell.converged) == (4.5, 19, False)
    assert (cell.n_features, cell.gradient) == (None, None)


def test_ranks_of_one_kernel_are_cells_of_their_own() -> None:
    """Kernel, rank and C tell cells apart, in the order in which they come."""
    ranked = [GridPoint("heat", "heat s=1", rank=k, trace_error=1 / k, C=1.0) for k in (40, 20)]
    rows = [row(fold, point) for point in (*ranked, POINT) for fold in (0, 1)]
    assert [cell.point for cell in summarise(rows)] == [*ranked, POINT]


def test_columns_that_do_not_apply_are_none() -> None:
    """A fit of low rank has features and a gradient, and no support vectors or violation."""
    found = flat(row(0, n_support=None, kkt=None, n_features=40, gradient=2e-4))
    assert list(found)[:11] == [
        "kernel", "label", "time_scale", "time", "sigma", "rank", "trace_error", "C", "C_scaled",
        "fold", "score",
    ]  # fmt: skip
    assert (found["n_support"], found["kkt"]) == (None, None)
    assert (found["n_features"], found["gradient"]) == (40, 2e-4)


@pytest.mark.parametrize(("columns", "size"), [({"n_support": 12.5}, 12.5), ({"n_features": 7}, 7)])
def test_size_is_what_a_decision_costs(columns: dict[str, Any], size: float) -> None:
    """Support vectors, or features."""
    proof = Certificate(seconds=1.0, converged=True, n_iter=1, gap=0.0, **columns)
    assert proof.size == size


def test_the_penalty_is_in_the_units_it_was_chosen_in() -> None:
    """C, or C times the spread."""
    assert POINT.penalty == 10.0
    assert GridPoint("heat", "heat s=1", C=10.0, C_scaled=0.5).penalty == 0.5
    assert isinstance(summarise([row(0)])[0], Cell)
