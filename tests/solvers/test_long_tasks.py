"""Problems of more steps than a task may make: several tasks solve each, and keep what is done."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.threads import Threads
from dhsk.solvers.decomposition import Decomposition, RoundWatch
from dhsk.solvers.pairs import solve_pairs
from dhsk.solvers.problems import make_pairs
from dhsk.solvers.rounds import solve_in_rounds
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.whole import PairTask, Unsolved, solve_whole
from tests.optimum import assert_optimal, solve_block

TOL = 1e-5

ROUNDING = 1e-12
"""Sums of some thousand changes in float64, relative to the sum of the coefficients."""

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
Y = np.where(RNG.random(240) < 0.2, RNG.integers(0, 3, 240), np.argmax(X[:, :3], axis=1))
K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 4)
FOLDS = np.array([(np.arange(240) % 2 != k) * 1.0 for k in range(2)])
PAIRS = make_pairs(Y, FOLDS, [0.1, 10.0])


class Counting(Threads):
    """Counts tasks, and those that are not finished."""

    def __init__(self) -> None:
        super().__init__(1)
        self.tasks = self.unfinished = self.looks = 0

    def run(self, function: Any, tasks: Any, *, ordered: bool = False) -> Any:
        """Run tasks."""
        for found in super().run(function, tasks, ordered=ordered):
            self.tasks += 1
            every = found if isinstance(found, list) else [found]
            self.unfinished += sum(
                isinstance(one, Unsolved) or not getattr(one, "finished", True) for one in every
            )
            yield found


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task makes as many steps as there are variables."""
    monkeypatch.setattr("dhsk.solvers.dual.CHANGES_OF_TASK", 1)
    monkeypatch.setattr("dhsk.solvers.dual.STEPS_OF_TASK", 1)
    monkeypatch.setattr("dhsk.solvers.whole.FINE_SAMPLES", 32)
    monkeypatch.setattr("dhsk.solvers.small.SMALL_SAMPLES", 32)


class Source(ArraySource):
    """Counts looks and passes."""

    def __init__(self, executor: Counting) -> None:
        super().__init__(K)
        self._counts = executor

    def combine(self, parts: Any) -> Any:
        """Combinations of columns."""
        self._counts.looks += 1
        return super().combine(parts)

    def product(self, V: Any) -> Any:
        """Product with V."""
        self._counts.looks += 1
        return super().product(V)


def whole(executor: Counting, watch: RoundWatch | None = None) -> dict[int, Any]:
    """Fits on whole matrices."""
    tasks = (PairTask(k, Source(executor), pair) for k, pair in enumerate(PAIRS))
    found = solve_pairs(tasks, TOL, 10**9, executor, watch=watch)
    return {k: fits for k, fits, _ in found}


def on_sets(executor: Counting) -> dict[int, Any]:
    """Fits on working sets."""
    return Decomposition(TOL, 10**6).solve(Source(executor), dict(enumerate(PAIRS)), executor)[0]


def in_rounds(executor: Counting) -> dict[int, Any]:
    """Fits in rounds over parts."""
    return dict(solve_in_rounds(Source(executor), dict(enumerate(PAIRS)), TOL, 64, executor))


@pytest.mark.parametrize("way", [whole, on_sets, in_rounds])
@pytest.mark.usefixtures("few_steps")
def test_several_tasks_end_at_the_solution(way: Any) -> None:
    """On each of the three ways, for all pairs, folds and C."""
    executor, once = Counting(), Counting()
    found = way(executor)
    assert executor.unfinished >= 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dhsk.solvers.dual.STEPS_OF_TASK", 10**6)
        way(once)
    assert executor.looks <= 1.2 * once.looks  # all others are looked at from solutions
    for k, pair in enumerate(PAIRS):
        own = K[np.ix_(pair.members, pair.members)]
        padded = np.pad(own, ((0, 0), (0, -len(own) % 64)))
        assert_optimal(K, pair, found[k], solve_block(padded, pair.dual, TOL), TOL, ROUNDING)


@pytest.mark.parametrize("way", [whole, on_sets, in_rounds])
def test_a_problem_of_few_steps_is_one_task(way: Any) -> None:
    """As nearly all are."""
    executor = Counting()
    way(executor)
    assert executor.tasks >= 3
    assert executor.unfinished == 0


@pytest.mark.usefixtures("few_steps")
def test_a_killed_pair_goes_on_from_its_last_task(tmp_path: Path) -> None:
    """With the same bits, and no entry is left in the end."""
    alone, counted = whole(Counting()), Counting()
    watch = RoundWatch(checkpoint=Checkpoint(tmp_path), name="a")
    with pytest.raises(KeyboardInterrupt):
        whole(_Killed(4), watch)
    assert list(tmp_path.iterdir())
    found = whole(counted, watch)
    every = Counting()
    whole(every)
    assert counted.tasks == every.tasks - 3
    for k, fits in alone.items():
        for one, other in zip(fits, found[k], strict=True):
            assert one.coef.tobytes() == other.coef.tobytes()
            assert (one.steps, one.intercept) == (other.steps, other.intercept)
    assert not list(tmp_path.iterdir())


class _Killed(Counting):
    """Ends at a task, whose result is lost."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last

    def run(self, function: Any, tasks: Any, *, ordered: bool = False) -> Any:
        """Run tasks."""
        for found in super().run(function, tasks, ordered=ordered):
            if self.tasks == self.last:
                raise KeyboardInterrupt
            yield found


@pytest.mark.usefixtures("few_steps")
def test_a_column_without_end_does_not_keep_others_from_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its steps are bounded in all tasks together."""
    monkeypatch.setattr("dhsk.solvers.dual.most_steps", lambda _: 1000)
    pair = make_pairs(Y % 2, FOLDS[:1], [1e-3, 1e7])[0]
    task = PairTask(0, ArraySource(K), pair)
    found: Any = solve_whole(task, 1e-9, fine=False)
    tasks = 1
    while isinstance(found, Unsolved):
        found = solve_whole(PairTask(0, ArraySource(K), pair, begun=found.begun), 1e-9, fine=False)
        tasks += 1
    easy, hard = found[1]
    assert tasks >= 3
    assert easy.converged
    assert not hard.converged
    assert 1000 <= hard.steps <= 1000 + len(pair.members)
