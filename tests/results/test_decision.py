"""The simplest kernel within one standard error of the best, paired over the folds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dhsk.results.columns import Cell, Row, summarise
from dhsk.results.decision import Decision, decide, highest, simplicity
from dhsk.results.paired import FoldSizes


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
    n = len(cells[0])
    return decide(summary, by_point, FoldSizes(n, 1, 80, 20, 100, repeatable=True))


HEAT = rows("heat", [0.90, 0.80, 0.97, 0.93], C=5.0, time=0.1)


def test_the_standard_error_is_of_paired_differences() -> None:
    """Folds that are hard for both kernels do not count; Bessel's correction does."""
    lower = np.array([0.010, 0.012, 0.008, 0.014])
    cosine = rows("cosine", [row.score - d for row, d in zip(HEAT, lower, strict=True)])
    found = decided(HEAT, cosine)
    (one, _) = found.compared
    assert one.cell.kernel == "cosine"
    assert one.difference == pytest.approx(0.011)
    assert one.standard_error == pytest.approx(lower.std(ddof=1) * np.sqrt(1 / 4 + 20 / 80))
    assert not one.within
    # The scores themselves vary so much that the unpaired error would let it in.
    assert np.std([row.score for row in HEAT]) / 2 > 0.011
    assert found.simplest.cell == found.best
    assert found.best.kernel == "heat"
    assert found.sentence == (
        "take heat, C = 5: the highest mean, and no simpler one tried is within one standard error "
        "of it; cosine is 0.0110 ± 0.0018 below the best (± one standard error, corrected, of "
        "differences paired over 4 folds)"
    )


def test_a_kernel_that_a_simpler_one_beats_is_not_taken() -> None:
    """Cosine is within one standard error as its differences vary; linear, above it, is not."""
    linear = rows(
        "linear", [row.score - d for row, d in zip(HEAT, [0.01, 0.012, 0.008, 0.01], strict=True)]
    )
    cosine = rows(
        "cosine", [row.score - d for row, d in zip(HEAT, [0.0, 0.06, 0.0, 0.02], strict=True)]
    )
    found = decided(HEAT, cosine, linear)
    assert [one.within for one in found.compared] == [False, True, True]
    assert found.simplest.cell == found.best
    assert found.sentence.startswith(
        "take heat, C = 5: the highest mean, and no simpler one tried is within one standard error "
        "of it but cosine, which linear beats; linear is 0.0100 "
    )
    assert decided(HEAT, cosine).simplest.cell.kernel == "cosine"
    gaussian = rows("gaussian", [0.90, 0.79, 0.97, 0.93])
    found = decided(HEAT, cosine, linear, gaussian)
    assert found.simplest.cell.kernel == "gaussian"
    assert (
        "standard error of the best but cosine, which linear beats (heat, C = 5" in found.sentence
    )


def test_a_simpler_kernel_within_one_standard_error_is_taken() -> None:
    """Linear, too far off, is mentioned; of cosine its best cell, though others are near too."""
    cosine = rows("cosine", [0.91, 0.78, 0.97, 0.92], C=2.0)
    lower = rows("cosine", [0.91, 0.78, 0.97, 0.91], C=1.0)
    linear = rows("linear", [0.8, 0.7, 0.9, 0.9])
    found = decided(HEAT, lower, cosine, linear)
    assert found.taken == found.simplest.cell
    assert found.simplest.cell.kernel == "cosine"
    assert [one.cell.kernel for one in found.compared] == ["linear", "cosine", "heat"]
    assert (found.compared[2].difference, found.compared[2].standard_error) == (0.0, 0.0)
    assert found.sentence.startswith(
        "take cosine, C = 2: the simplest kernel within one standard error of the best (heat, C = "
        "5, 0.0050 ± 0.0091 better); linear is 0.0750 ± 0.0235 below the best (±"
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


def test_of_one_kernel_the_highest_mean_is_taken() -> None:
    """A larger time and a smaller C gain nothing for anybody; a smaller rank does."""
    best = rows("heat", [0.9, 0.8, 0.9, 0.8], C=5.0, time=1.0)
    near = rows("heat", [0.9, 0.8, 0.9, 0.79], C=1.0, time=2.0)
    assert decided(near, best).simplest.cell.C == 5.0
    large = rows("heat", [0.9, 0.8, 0.9, 0.8], C=5.0, time=1.0, rank=80)
    small = rows("heat", [0.9, 0.8, 0.9, 0.79], C=1.0, time=2.0, rank=20)
    found = decided(large, small)
    assert (found.best.rank, found.simplest.cell.rank) == (80, 20)


def test_no_map_of_a_kernel_is_simpler_than_another() -> None:
    """Cosines on log-ratios and on square roots are as simple; of equal means, no other map."""
    heat = rows("clr heat", [0.9, 0.8, 0.97, 0.93], time=1.0)
    cosine = rows("cosine", [0.91, 0.7, 0.97, 0.92])
    ratios = rows("clr cosine", [0.91, 0.78, 0.97, 0.92])
    found = decided(heat, cosine, ratios)
    assert all(one.within for one in found.compared)
    assert found.simplest.cell.kernel == "clr cosine"
    assert "cosine, C" in found.sentence
    assert "cosine is" not in found.sentence  # no simpler one
    same = rows("tf-idf cosine", [0.91, 0.7, 0.97, 0.92])
    assert decided(same, heat, cosine).simplest.cell.kernel == "cosine"


def test_log_ratios_that_cannot_be_told_from_another_map_are_taken() -> None:
    """Of the same kernel, although another has the higher mean; not where that is surely better."""
    cosine = rows("cosine", [0.91, 0.78, 0.97, 0.92])
    ratios = rows("clr cosine", [0.91, 0.70, 0.97, 0.93])
    found = decided(cosine, ratios)
    assert (found.best.kernel, found.simplest.cell.kernel) == ("cosine", "clr cosine")
    assert found.sentence.startswith(
        "take clr cosine, C = 1: on log-ratios, and within one standard error of the best (cosine, "
    )
    lower = rows("clr cosine", [0.81, 0.70, 0.87, 0.83])
    assert decided(cosine, lower).simplest.cell.kernel == "cosine"
    tfidf = rows("tf-idf cosine", [0.91, 0.70, 0.97, 0.93])
    assert decided(cosine, tfidf).simplest.cell.kernel == "cosine"


def test_equal_means_are_decided_by_simplicity_not_by_rounding() -> None:
    """The same scores on other folds add up to another last bit."""
    scores = [0.1 + 0.2, 0.7, 0.6, 0.9, 0.8, 0.3]
    orders = [np.random.default_rng(seed).permutation(scores) for seed in range(9)]
    cells = [rows("heat", own, C=9.0 - k) for k, own in enumerate(orders)]
    summary = summarise(row for cell in cells for row in cell)
    assert len({cell.mean for cell in summary}) > 1
    assert highest(summary).C == 1.0
    assert max(summary, key=lambda cell: cell.mean).C != 1.0


def test_the_best_can_be_asked_for() -> None:
    """The sentence says so, and what the simpler one would be."""
    cosine = rows("cosine", [0.91, 0.78, 0.97, 0.92], C=2.0)
    found = decided(HEAT, cosine)
    asked = replace(found, taken=found.best)
    assert asked.sentence.startswith(
        "take heat, C = 5: the highest mean, as was asked for; cosine, C = 2 is simpler, and "
        "within one standard error of it (0.0050 ± 0.0091 below)"
    )


def test_what_the_folds_cannot_see_is_said() -> None:
    """Where a simpler kernel is taken and the best may be a point better; five repeats see more."""
    cosine = rows("cosine", [0.93, 0.76, 0.97, 0.92], C=2.0)
    found = decided(HEAT, cosine)
    error = found.simplest.standard_error
    assert found.simplest.cell.kernel == "cosine"
    smaller = error * np.sqrt((1 / 20 + 20 / 80) / (1 / 4 + 20 / 80))
    assert found.unseen == (
        f"with 100 samples a difference from the best below {error:.3f} cannot be told from chance "
        f"here; --repeats 5 makes that about {smaller:.3f}"
    )
    fixed = replace(found, sizes=replace(found.sizes, repeatable=False))
    assert "repeats" not in fixed.unseen
    assert "here" in fixed.unseen
    assert decided(HEAT).unseen == ""
