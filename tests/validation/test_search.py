"""Where the search for a time looks next, where it ends, and which cell wins."""

import gc
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import dhsk
from dhsk.execution.shared import live_names
from dhsk.solvers.sources import ArraySource
from dhsk.validation.search import (
    LINEAR,
    PENALTIES,
    SPREAD_C,
    is_linear,
    next_penalties,
    next_scales,
    next_width,
    scaled,
    spread_of,
)

FIRST = (0.5, 0.7, 1.0, 1.4, 2.0)


def never(_: float) -> bool:
    """No kernel is linear."""
    return False


def hill(top: float, scales: Any = FIRST) -> dict[float, float]:
    """Scores with their highest at a time scale."""
    return {s: 0.9 - abs(np.log(s / top)) for s in scales}


@pytest.mark.parametrize(
    ("top", "stage", "expected", "why"),
    [
        (1.0, 1, [0.84, 1.2], "between 1 and its neighbours"),
        (0.5, 1, [0.25, 0.35], "0.5 was the smallest: now smaller ones"),
        (2.0, 1, [2.8, 4.0], "2 was the largest: now larger ones"),
        (1.0, 4, [], "ended after 4 rounds of time scales"),
    ],
)
def test_where_to_look_next(top: float, stage: int, expected: list[float], why: str) -> None:
    """Around the best one, or beyond the end that it lies at."""
    assert next_scales(hill(top), stage, never) == (expected, why)


def test_close_neighbours_end_it() -> None:
    """A hill that is flat to 15 % of the time is at its top."""
    assert next_scales(hill(1.0, (0.9, 1.0, 1.1)), 2, never) == (
        [],
        "ended: the neighbours of time scale 1 were tried, and are close",
    )


def test_no_larger_times_than_linear_ones() -> None:
    """The first linear one is tried, none after it, and none between two of them."""
    scales, why = next_scales(hill(2.0), 1, lambda s: s >= 2.5)
    assert scales == [2.8]
    assert "larger ones" in why
    scales, why = next_scales(hill(2.0), 1, lambda s: s >= 3.5)
    assert scales == [2.8, 4.0]
    scales, why = next_scales(hill(2.0), 1, lambda s: s >= 1.9)
    assert scales == [1.7]
    assert why.startswith("from 2 on the kernel is linear, and larger times change nothing; ")
    scales, why = next_scales(hill(2.0), 1, lambda s: s >= 1.3)
    assert scales == []
    assert why.startswith("ended: from 1.4 on the kernel is linear")
    scales, _ = next_scales(hill(1.4), 1, lambda s: s >= 1.3)
    assert scales == [1.2]


def test_no_smaller_times_than_proven_ones() -> None:
    """Those that are proven are tried; without any the search ends."""
    assert next_scales(hill(0.5), 1, never, 0.3)[0] == [0.35]
    assert next_scales(hill(0.5), 1, never, 0.4) == (
        [],
        "ended: below 0.5 the kernel is not proven",
    )


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((1, 2, 3, 4), [50.0, 150.0]),
        ((1, 2, 3, 3), []),  # of equals the smallest, which is inside
        ((4, 3, 2, 1), [0.05, 0.15]),
        ((4, 4, 2, 1), []),
        ((2, 2, 2, 2), [50.0, 150.0]),
        ((1, 4, 2, 1), []),
        ((1, 4, 2, -np.inf), []),
        ((-np.inf,) * 4, []),
    ],
)
def test_penalties_beyond_the_end_that_the_best_lies_at(means: Any, expected: Any) -> None:
    """Two more, none where the best is inside or no fit converged."""
    assert next_penalties(dict(zip(SPREAD_C, means, strict=True))) == expected


def test_penalties_have_limits() -> None:
    """Which are the ends of what may be tried."""
    assert next_penalties({C: C for C in PENALTIES}) == []
    assert next_penalties({C: -C for C in PENALTIES}) == []
    assert next_penalties({C: C for C in PENALTIES[:-1]}) == [PENALTIES[-1]]
    assert next_penalties({C: -C for C in PENALTIES[1:]}) == [PENALTIES[0]]


@pytest.mark.parametrize("dim", [64, 375, 12_000])
def test_linear_means_the_distances_of_the_linear_kernel(dim: int) -> None:
    """Up to a thousandth from the first such time scale on, and not at half of it."""
    scales = np.geomspace(1, 20, 400)
    first = scales[np.argmax([is_linear(dim)(s) for s in scales])]
    cosines = np.linspace(-1, 0.99, 30)
    for scale, linear in ((first, True), (2 * first, True), (first / 2, False)):
        distances2 = -dhsk.HeatKernel.at_scale(dim, scale).of_cosine_minus_one(cosines)
        ratios = distances2 / (1 - cosines)
        assert bool(ratios.max() / ratios.min() - 1 <= LINEAR) is linear


@pytest.mark.parametrize("kernel", [dhsk.HeatKernel(12, 0.1), dhsk.LinearKernel()])
def test_spread_is_the_mean_squared_distance_from_the_mean(counts: Any, kernel: Any) -> None:
    """In feature space: for the linear kernel the variance of the samples, as numpy has it."""
    X = counts(50, 12)
    rows = dhsk.hyperspherical_map(X) if kernel.spherical else X
    K = np.asarray(kernel(rows))
    found = spread_of(ArraySource(K))
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    assert found == pytest.approx(np.trace(centred) / 50, rel=1e-13 * K.max() / found)
    if not kernel.spherical:
        assert found == pytest.approx(X.var(axis=0).sum(), rel=1e-12)


def test_equal_samples_have_a_spread_above_zero() -> None:
    """So C in its units is finite; also where all are 0."""
    assert spread_of(ArraySource(np.zeros((5, 5)))) == 1
    spread = spread_of(ArraySource(np.ones((5, 5))))
    assert spread == 1e-12
    assert scaled([0.5, 5.0], spread) == [5e11, 5e12]


def test_values_of_C_are_in_units_of_the_spread() -> None:
    """To six digits."""
    assert scaled([1.0, 1.5], 0.3) == [3.33333, 5.0]


def test_a_grid_leaves_out_what_did_not_converge() -> None:
    """The highest mean of a cell with one fit at its last step does not win the grid."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:100], (y[:100] > 4).astype(int)
    # Each twice, some with both labels: coefficients reach C, and rounding is 1e-16 of their sum.
    X, y = np.concatenate([X, X]), np.concatenate([y, np.where(np.arange(100) < 30, 1 - y, y)])
    with pytest.warns(dhsk.InputWarning, match="200 of 200 samples equal others"):
        found = dhsk.cross_validate(
            X, y, time_scale=0.5, C=[1e-3, 1e12], cv=3, fit=dhsk.Fitting(tol=1e-6)
        )
    converged = {row["C"]: row["converged"] for row in found.summary_}
    assert converged == {1e-3: True, 1e12: False}
    assert found.best_["C"] == 1e-3


@pytest.mark.slow
def test_search_goes_no_further_than_the_linear_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a small time, where all samples look alike, and one that is linear already."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    rates = np.where(np.arange(2000) < 30, 0.3 + 0.25 * y[:, None], 0.3)
    X = rng.poisson(rates)
    monkeypatch.setattr("dhsk.validation.stages.first_scales", lambda *_: [0.3, 4.0])
    found = dhsk.cross_validate(X, y, time_scale="auto", cv=4)
    assert all(row["converged"] for row in found.results_)
    stages = found.data["search"]
    assert max(scale for stage in stages for scale in stage["time_scales"]) == 4.0
    assert stages[1]["why"] == (
        "from 4 on the kernel is linear, and larger times change nothing; between 4 and its "
        "neighbours"
    )
    assert found.best_score_ == max(row["mean"] for row in found.summary_)


@pytest.mark.slow
def test_workers_hold_what_one_stage_needs(client: Any) -> None:
    """A search of several stages: the values of the one before go without garbage collection.

    Of digits they are 13 MB a stage on every worker, of 6,000 images of MNIST 150 MB.
    """
    X, y = load_digits(return_X_y=True)
    live: list[int] = []
    gc.disable()
    try:
        result = dhsk.cross_validate(
            X[:300], y[:300], time_scale="auto", cv=3, client=client,
            out=dhsk.Output(eigenvalues=False),
            progress=lambda _: live.append(len(live_names(client))),
        )  # fmt: skip
    finally:
        gc.enable()
    assert len(result.search) > 2
    assert max(live) <= 2  # the problems, and support vectors


def test_equal_scores_end_a_search_soon() -> None:
    """A larger C may tell samples apart, and is tried once; no time is better than another."""
    first = dict.fromkeys(SPREAD_C, 0.9)
    assert next_penalties(first) == [50.0, 150.0]
    assert next_penalties(first | {50.0: 0.9, 150.0: 0.9}) == []
    assert next_penalties(first | {50.0: 0.9, 150.0: 0.91}) == [500.0, 1500.0]
    flat = dict.fromkeys((0.5, 1.0, 2.0), 0.9)
    assert next_scales(flat, 1, never) == ([], "ended: all time scales have the same score")


def test_the_next_width_is_beyond_a_last_one_that_is_the_best() -> None:
    """Not where another is as good, between others, nor without end."""
    assert next_width({1.0: 0.9, 2.0: 0.8, 4.0: 0.7})[0] == 0.5
    width, why = next_width({1.0: 0.7, 2.0: 0.8, 4.0: 0.9})
    assert (width, why) == (8.0, "the largest width was the best: now a larger one")
    for best in ({1.0: 0.9, 2.0: 0.9}, {1.0: 0.8, 2.0: 0.9, 4.0: 0.8}, {1.0: 0.9}, {}):
        assert next_width(best) == (None, "")
    assert next_width({2.0**k: k / 10 for k in range(8)})[0] is None
