"""How far a whole run is: one share that never falls, and the time that is left."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.progress import Progress
from dhsk.run_progress import RunProgress, passes_reported, told_whole

rng = np.random.default_rng(0)
X = rng.poisson(2.0, size=(90, 8)) + 1.0
Y = np.repeat([0, 1, 2], 30)
targets = X[:, 0] + rng.normal(size=90)

RUNS: dict[str, Callable[[Any], Any]] = {
    "search": lambda p: dhsk.cross_validate(
        X, Y, cv=3, out=dhsk.Output(baselines=True), refit=True, progress=p
    ),
    "two maps": lambda p: dhsk.cross_validate(
        X, Y, cv=3, sphere_map="auto", time_scale=[0.5, 1], C=[1, 10], refit=True, progress=p
    ),
    "on working sets": lambda p: dhsk.cross_validate(
        X, Y, cv=3, time_scale=[0.5, 1], C=[1, 10], out=dhsk.Output(disk="10kB"), progress=p
    ),
    "low rank": lambda p: dhsk.cross_validate(
        X, Y, cv=3, time_scale=1, C=[1, 10], low_rank=dhsk.LowRank([10, 20]), progress=p
    ),
    "HeatSVC": lambda p: dhsk.HeatSVC().fit(X, Y, progress=p),
    "NystromSVC": lambda p: dhsk.NystromSVC(10, oversampling=2).fit(X, Y, progress=p),
    "k-means": lambda p: dhsk.NystromFeatures(10, selection="kmeans").fit(X, progress=p),
    "ridge": lambda p: dhsk.HeatKernelRidge(preconditioner_rank=10).fit(X, targets, progress=p),
    "process": lambda p: dhsk.HeatGaussianProcessRegressor("auto").fit(X, targets, progress=p),
    "iterative process": lambda p: dhsk.HeatGaussianProcessRegressor(
        "auto", solver="iterative", preconditioner_rank=10
    ).fit(X, targets, progress=p),
    "components": lambda p: dhsk.HeatKernelPCA(2).fit(X, progress=p),
    "clusters": lambda p: dhsk.HeatSpectralClustering(3).fit(X, progress=p),
    "one class": lambda p: dhsk.HeatOneClassSVM().fit(X, progress=p),
    "eigenpairs": lambda p: dhsk.compute_gram(X, "heat", tile=16).eigh(3, progress=p),
    "diffusion map": lambda p: dhsk.diffusion_map(
        dhsk.compute_gram(X, "heat", tile=16), 2, progress=p
    ),
    "discrepancy": lambda p: dhsk.maximum_mean_discrepancy(
        dhsk.compute_gram(X, "heat", tile=16), Y == 0, permutations=200, progress=p
    ),
}


SLOW = ("search", "process", "iterative process")
"""Runs of several heat kernels."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in RUNS]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_run_is_one_bar(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its share of all never falls, and is 1 at the end and not before.

    Gaussian processes take two steps of their search, as each time has a kernel of its own.
    """
    monkeypatch.setattr("dhsk.estimators.evidence.MOST_ITERATIONS", 2)
    events: list[Progress] = []
    RUNS[name](events.append)
    shares = [event.of_all for event in events]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    ends = [share for share in shares if share == 1.0]
    # What follows when all is counted is at most the last event of the last stage.
    assert len(ends) <= 2, [(event.stage, event.of_all) for event in events[-5:]]


def test_a_grid_says_kernel_fold_and_the_best_so_far() -> None:
    """The best is a mean over all folds, that of the results in the end."""
    events: list[Progress] = []
    result = dhsk.cross_validate(
        X, Y, cv=3, sphere_map="auto", time_scale=[0.5, 1], C=[1, 10], progress=events.append
    )
    said = list(dict.fromkeys(event.what for event in events))
    assert "heat s=1 (1 of about 6)" in said  # the other maps are still to come
    assert "tf-idf heat s=1 (4 of about 6), fold 3 of 3" in said
    assert "clr heat s=1 (5 of 6)" in said
    best = [event.best for event in events if event.best is not None]
    assert best == sorted(best)
    assert best[-1] == max(cell.mean for cell in result.summary)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("dhsk.run_progress.working_seconds", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Clock of all runs in a test."""
    return Clock(monkeypatch)


def test_measured_time_takes_the_place_of_guesses(clock: Clock) -> None:
    """Parts of one second and of nine, guessed alike: half of the second one is 55 %, not 75 %."""
    events: list[Progress] = []
    run = RunProgress(events.append, first=1, second=1)
    clock.now = 1.0
    run(Progress("first", 10, 10))
    assert events[-1].share == pytest.approx(0.5)
    clock.now = 1.0 + 4.5
    run(Progress("second", 5, 10))
    # Guesses count as `TRUST` of a part that is measured, 0.02 of 0.5: 4 % of nine seconds.
    assert events[-1].share == pytest.approx(5.5 / 10, abs=0.02)
    assert events[-1].left == pytest.approx(4.5, rel=0.05)


def test_what_an_earlier_run_had_finished_takes_no_time(clock: Clock) -> None:
    """Half is there: 10 units in 10 seconds leave 40 more, and the run is at 60 %."""
    events: list[Progress] = []
    run = RunProgress(events.append)
    run.expect("fits", 100, 1.0)
    run.advance("fits", 50, found=True)
    with run.part("fits"):
        clock.now = 10.0
        run.advance("fits", 10)
    assert events[-1].share == pytest.approx(0.6)
    assert events[-1].left == pytest.approx(40.0, rel=0.01)


def test_what_is_counted_does_not_undo_what_was_told(clock: Clock) -> None:
    """Rounds told that all is done; counting the pairs then leaves no time."""
    events: list[Progress] = []
    run = RunProgress(events.append)
    run.expect("fits", 10, 1.0)
    with run.part("fits", span=10):
        clock.now = 10.0
        run(Progress("columns", 5, 5))
        run.advance("fits", 1)
    assert [event.left for event in events] == [0.0, 0.0]
    assert events[-1].done == 1


def test_more_work_than_expected_does_not_turn_back(clock: Clock) -> None:
    """The share stays until the work has caught up."""
    events: list[Progress] = []
    run = RunProgress(events.append)
    run.expect("fits", 2, 1.0)
    clock.now = 1.0
    run.advance("fits", 1)
    run.expect("fits", 10)
    clock.now = 2.0
    run.advance("fits", 1)
    assert [event.share for event in events] == [0.5, 0.5]
    assert events[-1].left == pytest.approx(8.0, rel=0.05)


def test_a_run_within_a_run_counts_as_its_part(clock: Clock) -> None:
    """Stages of the inner one move the outer one by its own share, and its words win."""
    events: list[Progress] = []
    with told_whole(events.append, matrix=1, fits=3) as outer:
        outer.what = "the kernel"
        with outer.part("matrix", 1.0), told_whole(outer, reading=1, tiles=3) as inner:
            clock.now = 1.0
            inner(Progress("reading", 1, 1))
            assert events[-1].share == pytest.approx(0.25 * 0.25, abs=0.01)
            clock.now = 4.0
            inner(Progress("tiles", 1, 1))
        assert events[-1].share == pytest.approx(0.25, abs=0.01)
        clock.now = 16.0
        outer(Progress("fits", 3, 3))
    assert {event.what for event in events} == {"the kernel"}
    assert events[-1].share == 1.0


def test_a_failed_run_does_not_say_that_it_ended() -> None:
    """The last event stands."""
    events: list[Progress] = []

    def fail() -> None:
        with told_whole(events.append, tiles=1) as run:
            run(Progress("tiles", 1, 2))
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        fail()
    assert events[-1].share == 0.5


def test_passes_of_several_solves_are_one_run() -> None:
    """The second solve goes on where the first one ended."""
    events: list[Progress] = []
    with told_whole(events.append) as run, passes_reported(run) as passes:
        for _ in passes.report.each("solves", range(2)):
            passes.begin(10, 1e-3)
            passes.passed(5, 1e-2)
            passes.end()
    assert events[-1].share == 1.0
    shares = [event.of_all for event in events]
    assert shares == sorted(shares)
    assert 0.5 in shares
