"""Which samples of a problem the next part takes."""

import numpy as np

from dhsk.solvers.problems import make_pairs
from dhsk.solvers.rounds import RoundState


def state(seed: int, folds: int = 1) -> RoundState:
    """Where the problem of a pair of classes with a random border starts."""
    rng = np.random.default_rng(seed)
    train = (
        rng.integers(0, folds, 400) != np.arange(folds)[:, None] if folds > 1 else np.ones((1, 400))
    )
    (pair,) = make_pairs((rng.normal(size=400) > 0).astype(int), train * 1.0, [1.0])
    return RoundState(pair)


def test_worst_has_both_sides() -> None:
    """Half of it are the highest gradients that may grow, half the lowest that may shrink."""
    rng = np.random.default_rng(0)
    found = state(3)
    found.f[0] = rng.normal(size=400)
    found.b[0] = found.pair.dual.sign * rng.choice([0.0, 0.5, 1.0], 400)
    lower, upper = found.pair.dual.bounds(0)
    chosen = found.worst(100)
    grow = np.flatnonzero(found.b[0] < upper)
    shrink = np.flatnonzero(found.b[0] > lower)
    highest = grow[np.argsort(-found.f[0, grow])]
    lowest = shrink[np.argsort(found.f[0, shrink])]
    assert len(chosen) == len(set(chosen)) == 100
    assert (np.diff(chosen) > 0).all()
    assert set(highest[:50]) | set(lowest[:50]) <= set(chosen)
    last = set(highest[:100]) | set(lowest[:100])
    assert set(chosen) <= last


def test_worst_at_the_start_is_of_both_classes_and_spread() -> None:
    """All violate alike then: neither the first samples only, nor those of one class."""
    found = state(4)
    chosen = found.worst(100)
    first = int((found.pair.dual.sign > 0).sum())
    assert abs(int((chosen < first).sum()) - 50) <= 10
    for part in (chosen[chosen < first] / first, (chosen[chosen >= first] - first) / (400 - first)):
        assert np.histogram(part, 5, (0, 1))[0].min() >= 5


def test_worst_leaves_out_columns_that_are_solved_and_samples_held_out() -> None:
    """Only what a column that is left may move is of use."""
    found = state(5, folds=4)
    found.left = [2]
    allowed = np.flatnonzero(found.pair.dual.boxes[2])
    assert set(found.worst(200)) <= set(allowed)
    assert len(found.worst(10_000)) == 400


def test_worst_pair_of_a_column_is_always_in() -> None:
    """However many others there are."""
    found = state(6, folds=20)
    found.f[:] = np.random.default_rng(1).normal(size=found.f.shape)
    for first in (0, 7):
        found.f[first] *= 10  # the worst of all
        lower, upper = found.pair.dual.bounds(first)
        f = found.f[first]
        pair = {
            int(np.argmax(np.where(upper > 0, f, -np.inf))),
            int(np.argmin(np.where(lower < 0, f, np.inf))),
        }
        assert set(found.worst(2)) == pair
