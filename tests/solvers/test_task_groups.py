"""Several small problems in a task: which, and that their fits stay the same."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.execution.threads import Threads
from dhsk.models.sources import RowsSource
from dhsk.solvers.pairs import solve_pairs
from dhsk.solvers.problems import make_pairs
from dhsk.solvers.task_groups import GROUP_SECONDS, in_groups
from dhsk.solvers.whole import PairTask

CLASSES = 5


class Tasks(Threads):
    """Counts tasks."""

    def __init__(self) -> None:
        super().__init__(1)
        self.count = 0

    def run(self, function: Any, tasks: Any, *, ordered: bool = False) -> Any:
        """Run tasks."""
        for found in super().run(function, tasks, ordered=ordered):
            self.count += 1
            yield found


def test_groups_are_consecutive_and_take_as_long_as_told() -> None:
    """A long problem ends its group; what is left at the end is a group."""
    seconds = [GROUP_SECONDS * share for share in (0.4, 0.4, 0.4, 3.0, 0.1, 2.0, 0.2)]
    groups = list(in_groups(range(len(seconds)), seconds.__getitem__))
    assert groups == [[0, 1, 2], [3], [4, 5], [6]]
    assert list(in_groups([], float)) == []


def test_groups_come_before_all_problems_are_there() -> None:
    """Problems are made when they are sent: all of them take much memory."""
    made = []

    def problems() -> Any:
        for number in range(10):
            made.append(number)
            yield number

    assert next(in_groups(problems(), lambda _: GROUP_SECONDS)) == [0]
    assert made == [0]


@pytest.mark.parametrize("large", [4, 2048])
def test_fits_in_groups_are_those_of_each_by_itself(
    large: int, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit, by coordinates and on whole matrices, in a task instead of ten."""
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", large)
    y = np.arange(200) % CLASSES
    X = csr_array(
        (rng.random((200, 30)) < np.where(np.arange(30) % CLASSES == y[:, None], 0.4, 0.1)) * 1.0
    )
    pairs = make_pairs(y, np.ones((1, 200)), [1.0])

    def fitted(executor: Tasks) -> dict[int, Any]:
        source = RowsSource(X, dhsk.LinearKernel())
        tasks = (PairTask(k, source, pair) for k, pair in enumerate(pairs))
        return {k: fits for k, fits, _ in solve_pairs(tasks, 1e-6, 10**9, executor)}

    together, apart = Tasks(), Tasks()
    found = fitted(together)
    monkeypatch.setattr("dhsk.solvers.task_groups.GROUP_SECONDS", 0.0)
    alone = fitted(apart)
    assert (together.count, apart.count) == (1, len(pairs))
    assert sorted(found) == sorted(alone) == list(range(len(pairs)))
    for k, fits in found.items():
        for one, other in zip(fits, alone[k], strict=True):
            np.testing.assert_array_equal(one.coef, other.coef)
            assert one.intercept == other.intercept
