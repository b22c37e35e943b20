"""The simplest cell within one standard error of the best, paired over the folds."""

from typing import Any

import numpy as np
import pytest

from dhsk.results.columns import Cell, Row, summarise
from dhsk.results.decision import Decision, decide, simplicity


def rows(kernel: str, scores: Any, C: float = 1.0, *, converged: bool = True, **more: Any) -> Any:
    """Rows of a cell with these scores on the folds."""
    columns = {"label": kernel, "seconds": 1.0, "n_iter": 1, "gap": 0.0} | more
    return [
        Row(kernel=kernel, C=C, fold=fold, score=score, converged=converged, **columns)
        for fold, score in enumerate(scores)
    ]


def decided(*cells: Any) -> Decision:
    """Decision between cells, each given by its rows."""
    summary = summarise(row for cell in cells for row in cell)
    by_point = {cell.point: own for cell, own in zip(summary, cells, strict=True)}
    return decide(summary, by_point)


HEAT = rows("heat", [0.90, 0.80, 0.97, 0.93], C=5.0, time=0.1)


def test_the_standard_error_is_of_paired_differences() -> None:
    """Folds that are hard for both kernels do not count; Bessel's correction does."""
    lower = np.array([0.010, 0.012, 0.008, 0.014])
    cosine = rows("cosine", [row.score - d for row, d in zip(HEAT, lower, strict=True)])
    found = decided(HEAT, cosine)
    (one, _) = found.compared
    assert one.cell.kernel == "cosine"
    assert one.difference == pytest.approx(0.011)
    assert one.standard_error == pytest.approx(lower.std(ddof=1) / 2)
    assert not one.within
    # The scores themselves vary so much that the unpaired error would let it in.
    assert np.std([row.score for row in HEAT]) / 2 > 0.011
    assert found.simplest.cell == found.best
    assert found.best.kernel == "heat"
    assert found.sentence == (
        "take heat, C = 5: the highest mean, and nothing simpler is within one standard error of "
        "it; cosine is 0.0110 ± 0.0013 below the best (± one standard error, of differences paired "
        "over 4 folds)"
    )


def test_a_simpler_kernel_within_one_standard_error_is_taken() -> None:
    """Linear, too far off, is mentioned; of cosine the best cell that is near enough."""
    cosine = rows("cosine", [0.91, 0.78, 0.97, 0.92], C=2.0)
    linear = rows("linear", [0.8, 0.7, 0.9, 0.9])
    found = decided(HEAT, cosine, linear)
    assert found.simplest.cell.kernel == "cosine"
    assert [one.cell.kernel for one in found.compared] == ["linear", "cosine", "heat"]
    assert (found.compared[2].difference, found.compared[2].standard_error) == (0.0, 0.0)
    assert found.sentence.startswith(
        "take cosine, C = 2: the simplest within one standard error of the best (heat, C = 5, "
        "0.0050 ± 0.0065 better); linear is 0.0750 ± 0.0166 below the best (±"
    )


def test_what_is_simple() -> None:
    """Kernel, rank, time, C, in this order."""
    order = [
        rows("linear", [0.5, 0.5], C=9.0),
        rows("cosine", [0.5, 0.5], C=9.0),
        rows("gaussian", [0.5, 0.5], sigma=3.0),
        rows("gaussian", [0.5, 0.5], sigma=2.0),
        rows("parametrix", [0.5, 0.5]),
        rows("heat", [0.5, 0.5], time=3.0, rank=10, C=9.0),
        rows("heat", [0.5, 0.5], time=3.0, rank=20, C=8.0),
        rows("heat", [0.5, 0.5], time=2.0, rank=20, C=1.0, C_scaled=0.1),
        rows("heat", [0.5, 0.5], time=2.0, rank=20, C=0.5),
        rows("hyperbolic", [0.5, 0.5]),
    ]
    cells = summarise(row for own in order for row in own)
    assert sorted(set(cells), key=simplicity) == list(cells)


def test_cells_that_did_not_converge_take_no_part() -> None:
    """Unless none did."""
    wrong = rows("linear", [1.0, 1.0, 1.0, 1.0], converged=False)
    assert decided(wrong, HEAT).best.kernel == "heat"
    assert [one.cell.kernel for one in decided(wrong, HEAT).compared] == ["heat"]
    assert decided(wrong).best.kernel == "linear"


def test_one_fold_has_no_standard_error() -> None:
    """Only equals are within 0 of the best."""
    found = decided(rows("heat", [0.9]), rows("cosine", [0.8]), rows("linear", [0.9]))
    assert found.simplest.cell.kernel == "linear"
    assert [one.standard_error for one in found.compared] == [0.0, 0.0, 0.0]
    assert isinstance(found.best, Cell)
