"""Working sets: the solutions of whole matrices from few of their entries."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhsk.arrays import Floats, Indices
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.threads import Threads
from dhsk.kernels import GaussianKernel
from dhsk.models.sources import RowsSource
from dhsk.solvers.decomposition import Decomposition, Round, RoundWatch
from dhsk.solvers.dual import Fit, violation_and_intercept
from dhsk.solvers.pairs import solve_pairs
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.sources import ArraySource, Combination, Panel
from dhsk.solvers.together import Together
from dhsk.solvers.whole import PairTask
from dhsk.solvers.working_set import SUPPORT_SHARE, WorkingSet
from tests.optimum import assert_optimal

TOL = 1e-5

PLENTY = 10**9

ROUNDING = 1e-12
"""Sums of some thousand changes in float64, relative to the sum of the coefficients."""


class Computed(ArraySource):
    """Stands for a matrix whose entries are computed when they are read; counts them."""

    computes = True

    def __init__(self, K: Any) -> None:
        super().__init__(K)
        self.entries = self.looked = 0
        self.blocks: list[int] = []

    def block(self, members: Indices) -> Any:
        """Entries between some samples."""
        self.blocks.append(len(members))
        self.entries += len(members) ** 2
        return super().block(members)

    def panels(self, rows: Indices, groups: Sequence[Indices]) -> Iterator[Panel]:
        """Entries between some samples and groups of samples."""
        self.looked += len(rows) * sum(len(group) for group in groups)
        return super().panels(rows, groups)

    def combine(self, parts: Sequence[Combination]) -> list[Floats]:
        """Combinations of columns."""
        self.entries += sum(part.entries for part in parts)
        return super().combine(parts)


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets begin with few samples, and small problems use them too."""
    for name, count in (("FIRST", 64), ("LEAST", 64), ("SPARE", 16), ("JOINING", 32)):
        monkeypatch.setattr(f"dhsk.solvers.working_set.{name}", count)
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 64)


def separated(seed: int, n: int, classes: int = 2, noise: float = 0.0) -> tuple[Any, Any]:
    """Gaussian kernel of classes side by side, of which few samples are near a border."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, classes, n))  # as files often have them
    X = rng.normal(size=(n, 2)) * 0.5
    X[:, 0] += 3.0 * y
    y = np.where(rng.random(n) < noise, rng.integers(0, classes, n), y)
    return np.exp(-((X[:, None] - X) ** 2).sum(-1) / 4), y


def solve(source: ArraySource, pairs: list[Pair], largest: int = 10**6, threads: int = 1) -> Any:
    """Fits of all pairs but those left to others."""
    return solved(Decomposition(TOL, largest), source, dict(enumerate(pairs)), Threads(threads))


def solved(how: Decomposition, *given: Any) -> Any:
    """Fits of all pairs but those left to others."""
    return how.solve(*given)[0]


def whole(K: Any, pairs: list[Pair]) -> dict[int, list[Fit]]:
    """Fits on the whole matrix."""
    tasks = (PairTask(k, ArraySource(K), pair) for k, pair in enumerate(pairs))
    return {k: fits for k, fits, _ in solve_pairs(tasks, TOL, PLENTY, Threads(1))}


def assert_solved(K: Any, pairs: list[Pair], found: Any) -> None:
    """Optimal, as on the whole matrix."""
    expected = whole(K, pairs)
    for k, pair in enumerate(pairs):
        assert_optimal(K, pair, found[k], expected[k], TOL, ROUNDING)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_solutions_are_those_of_the_whole_matrix(classes: int, noise: float) -> None:
    """Of all pairs, folds and C, with labels in order and some of them wrong."""
    K, y = separated(0, 400, classes, noise)
    fold = np.random.default_rng(1).integers(0, 3, len(y))
    weights = np.array([(fold != k) * 1.0 for k in range(3)])
    pairs = make_pairs(y, weights, [0.1, 10.0, 200.0])
    assert_solved(K, pairs, solve(ArraySource(K), pairs))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 60), log_C=st.floats(-2, 4))
def test_any_problem(seed: int, n: int, log_C: float) -> None:
    """Weights that leave out samples, or all of a class, equal samples, few or many of a class."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)).astype(float)
    y = (rng.random(n) < rng.random()).astype(int)
    y[:2] = 0, 1
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 4)
    pairs = make_pairs(y, rng.choice([0.0, 1.0, 2.0], (2, n)), [10.0**log_C, 20.0**log_C + 10])
    with pytest.MonkeyPatch.context() as patch:
        for name, count in (
            ("FIRST", 4),
            ("LEAST", 4),
            ("SPARE", 1),
            ("JOINING", 1),
            ("GROWTH", 2.0),
        ):
            patch.setattr(f"dhsk.solvers.working_set.{name}", count)
        assert_solved(K, pairs, solve(ArraySource(K), pairs))


def test_entries_follow_the_support_vectors() -> None:
    """About three columns for each support vector, where all are hundreds of times as many."""
    K, y = separated(2, 3000)
    pairs = make_pairs(y, np.ones((1, len(y))), [10.0])
    source = Computed(K)
    ((fit,),) = solve(source, pairs).values()
    columns = source.entries / len(y)
    assert columns < 4 * len(fit.support) + max(source.blocks)
    assert columns < len(y) / 20


def test_pairs_share_columns() -> None:
    """Together pairs read less than each alone."""
    K, y = separated(3, 2000, 5)
    pairs = make_pairs(y, np.ones((1, len(y))), [10.0])
    together, alone = Computed(K), Computed(K)
    solve(together, pairs)
    for pair in pairs:
        solve(alone, [pair])
    assert together.entries < 0.9 * alone.entries


def test_pairs_that_share_little_read_no_more_than_alone() -> None:
    """Each class against the rest has its own samples near the margin."""
    y = np.repeat(np.arange(8), 250)
    X = np.random.default_rng(4).normal(size=(2000, 2)) * 0.5 + 3.0 * np.c_[y % 4, y // 4]
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 4)
    pairs = make_pairs(y, np.ones((1, len(y))), [10.0], "ovr")
    together, alone = Computed(K), Computed(K)
    found = solve(together, pairs)
    for pair in pairs:
        solve(alone, [pair])
    assert together.entries <= alone.entries
    assert_solved(K, pairs, found)


def test_bits_do_not_depend_on_threads() -> None:
    """Two threads give the bits of one."""
    K, y = separated(4, 900, 4, 0.05)
    pairs = make_pairs(y, np.ones((1, len(y))), [1.0, 10.0])
    one, two = (solve(ArraySource(K), pairs, threads=threads) for threads in (1, 2))
    for k in one:
        for a, b in zip(one[k], two[k], strict=True):
            np.testing.assert_array_equal(a.support, b.support)
            np.testing.assert_array_equal(a.coef, b.coef)
            assert replace(a, support=0, coef=0, seconds=0) == replace(
                b, support=0, coef=0, seconds=0
            )


def test_too_many_support_vectors_are_left_to_others() -> None:
    """A pair whose support vectors do not fit is left; the others are solved."""
    K, y = separated(5, 900, 3)
    rng = np.random.default_rng(0)
    y[y > 0] = rng.integers(1, 3, (y > 0).sum())  # the last two classes are one
    pairs = make_pairs(y, np.ones((1, len(y))), [1.0])
    source = Computed(K)
    found = solve(source, pairs, largest=150)
    assert found.keys() == {0, 1}
    assert max(source.blocks) <= 150
    assert_solved(K, pairs[:2], found)
    tasks = (PairTask(k, source, pair) for k, pair in enumerate(pairs))
    joined = {k: fits for k, fits, _ in solve_pairs(tasks, TOL, 150**2 * 8, Threads(1))}
    assert_solved(K, pairs, joined)


def test_a_wrong_start_is_left_early() -> None:
    """Where most samples become support vectors the whole matrix is read, and little before."""
    K, y = separated(6, 3000, noise=0.9)
    pairs = make_pairs(y, np.ones((1, len(y))), [1.0])
    source = Computed(K)
    tasks = [PairTask(0, source, pairs[0])]
    ((_, (fit,), _),) = solve_pairs(tasks, TOL, PLENTY, Threads(1))
    assert len(fit.support) > 0.6 * len(y)
    assert max(source.blocks) == len(y)
    assert source.entries - len(y) ** 2 < 0.1 * len(y) ** 2


class Rough(Computed):
    """Entries that a task may have in float32, with errors."""

    def __init__(self, K: Any, error: float) -> None:
        super().__init__(K)
        self.rough = 0
        self._error = error

    def in_single(self, samples: Indices) -> ArraySource:
        """Some samples, with errors that are the same whenever they are asked for."""
        self.rough += 1
        errors = self._error * np.cos(np.outer(samples, samples))
        return ArraySource((self._K[np.ix_(samples, samples)] + errors).astype(np.float32))


@pytest.mark.parametrize("error", [1e-8, 1e-3])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_sets_in_single(error: float, C: float) -> None:
    """Whatever errors entries in float32 have, the matrix itself is solved; gradients are its own.

    With small ones nothing else is read of it, but for looks.
    """
    tol, n = 1e-3, 600
    K, y = separated(3, n, 2, 0.05)
    fold = np.arange(n) % 3
    pairs = make_pairs(y, np.array([(fold != k) * 1.0 for k in range(3)]), [C])
    source = Rough(K, error)
    found = solved(Decomposition(tol, 10**6), source, dict(enumerate(pairs)), Threads(1))
    assert source.rough > 0
    assert (error < 1e-6 and C < 10.0) == (not source.blocks)
    (pair,) = pairs
    for column, fit in enumerate(found[0]):
        b = np.zeros(n)
        b[fit.support] = fit.coef
        own = pair.dual.sign - K[np.ix_(pair.members, pair.members)] @ b
        violation, intercept = violation_and_intercept(pair.dual, column, b, own)
        assert violation <= tol
        assert fit.violation == pytest.approx(violation, abs=ROUNDING * np.abs(b).sum())
        assert fit.intercept == pytest.approx(intercept, abs=ROUNDING * np.abs(b).sum())


@pytest.mark.parametrize("classes", [2, 3])
def test_decisions_for_other_samples_come_along(classes: int) -> None:
    """Of problems with all samples those that a column does not train on, from the last look."""
    K, y = separated(5, 500, classes, 0.1)
    fold = np.arange(len(y)) % 3
    weights = np.array([(fold != k) * 1.0 for k in range(3)])
    pairs = make_pairs(y, weights, [1.0, 10.0], "ovr" if classes > 2 else "ovo")
    found = solve(Computed(K), pairs)
    for k, pair in enumerate(pairs):
        for column, fit in enumerate(found[k]):
            others = pair.members[pair.dual.boxes[column] == 0]
            expected = K[np.ix_(others, pair.members[fit.support])] @ fit.coef + fit.intercept
            np.testing.assert_allclose(fit.outside, expected, rtol=0, atol=1e-10)
            assert np.array_equal(np.sort(others), np.flatnonzero(fold == column // 2))


def test_samples_that_nothing_uses_have_no_decisions() -> None:
    """No look has their gradients; and pairs of three classes lack the samples of one."""
    K, y = separated(5, 500)
    weights = np.ones((2, len(y)))
    weights[:, ::7] = weights[0, ::3] = weights[1, 1::3] = 0.0
    pairs = make_pairs(y, weights, [1.0])
    assert [fit.outside for fit in solve(Computed(K), pairs)[0]] == [None, None]
    K, y = separated(5, 500, 3)
    pairs = make_pairs(y, (np.arange(len(y)) % 2)[None] * 1.0, [1.0])
    assert all(fit.outside is None for (fit,) in solve(Computed(K), pairs).values())


def overlapping(n: int, shift: float, share: float, noise: float) -> tuple[Any, Any]:
    """Gaussian kernel in float32 of two classes of five features, the second of some share."""
    rng = np.random.default_rng(n)
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 5))
    X[:, 0] += shift * y
    y = np.where(rng.random(n) < noise, rng.integers(0, 2, n), y)
    norms = (X**2).sum(1)
    return np.exp((2 * X @ X.T - norms[:, None] - norms) / 10).astype(np.float32), y


@pytest.mark.parametrize("C", [1e-6, 0.1, 10.0])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
@pytest.mark.parametrize(("shift", "share"), [(3.0, 0.5), (1.0, 0.5), (3.0, 0.1)])
def test_what_costs_less_goes_on(
    C: float, noise: float, shift: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Working sets are left within a tenth of the whole matrix, or compute less than that."""
    monkeypatch.undo()  # the sizes of sets are those of the package
    n = 3000
    K, y = overlapping(n, shift, share, noise)
    (pair,) = make_pairs(y, np.ones((1, n)), [C])
    source = Computed(K)
    _, left = Decomposition(1e-3, n, SUPPORT_SHARE).solve(source, {0: pair}, Threads(1))
    # Blocks are symmetric: half of the entries are computed.
    squares = sum(size**2 for size in source.blocks)
    computed = source.entries + source.looked - squares / 2
    assert computed < (0.1 if left else 1.0) * n**2 / 2
    if (C < 1e-3 and share == 0.5) or noise == 0.4:
        assert left


def test_rounds_are_reported() -> None:
    """What is known grows with the rounds, and the last one has the solution."""
    K, y = separated(7, 2000, 3)
    pairs = make_pairs(y, np.ones((1, len(y))), [10.0])
    source = Computed(K)
    seen: list[Round] = []
    found = solved(
        Decomposition(TOL, 10**6),
        source,
        dict(enumerate(pairs)),
        Threads(1),
        RoundWatch(seen.append),
    )
    assert [one.pairs for one in seen] == [3] * len(seen)
    assert seen[-1].ended == 3
    assert seen[-1].violation <= TOL
    assert seen[-1].support == sum(len(fit.support) for (fit,) in found.values())
    blocks = sum(size**2 for size in source.blocks)
    assert seen[-1].entries == source.entries - blocks
    assert sorted(one.entries for one in seen) == [one.entries for one in seen]


def test_rounding_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no steps reach is given up, as close as rounding lets it, and says so."""
    K, y = separated(8, 400, noise=0.2)
    pairs = make_pairs(y, np.ones((1, len(y))), [1000.0])
    numbered = dict(enumerate(pairs))
    fit = solved(Decomposition(1e-300, 10**6), ArraySource(K), numbered, Threads(1))[0][0]
    assert not fit.converged
    assert fit.violation <= 1e-15 * (4 + 4 * np.abs(fit.coef).sum())
    monkeypatch.setattr("dhsk.solvers.working_set.MAX_ROUNDS", 1)
    assert not solve(ArraySource(K), pairs)


class _KilledError(Exception):
    """Stands for the end of a process."""


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_a_killed_call_goes_on(rounds: int, tmp_path: Path) -> None:
    """To the same bits, from the round that it was in, with all pairs and columns."""
    K, y = separated(9, 1500, 4, 0.02)
    fold = np.random.default_rng(1).integers(0, 2, len(y))
    pairs = make_pairs(y, np.array([fold != 0, fold != 1]) * 1.0, [1.0, 100.0])
    numbered = dict(enumerate(pairs))
    seen: list[Round] = []
    how = Decomposition(TOL, 10**6)
    expected = solved(how, ArraySource(K), numbered, Threads(1), RoundWatch(seen.append))
    assert len(seen) > rounds

    def kill(one: Round) -> None:
        if one == seen[rounds - 1]:
            raise _KilledError

    def watch(on_round: Any) -> RoundWatch:
        return RoundWatch(on_round, Checkpoint(tmp_path), "one")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
        with pytest.raises(_KilledError):
            how.solve(ArraySource(K), numbered, Threads(1), watch(kill))
    resumed: list[Round] = []
    found = solved(how, ArraySource(K), numbered, Threads(1), watch(resumed.append))
    assert resumed == seen[rounds:]
    for k, fits in expected.items():
        for a, b in zip(fits, found[k], strict=True):
            np.testing.assert_array_equal(a.support, b.support)
            np.testing.assert_array_equal(a.coef, b.coef)
            assert replace(a, support=0, coef=0, seconds=0) == replace(  # type: ignore[arg-type]
                b,
                support=0,
                coef=0,
                seconds=0,  # type: ignore[arg-type]
            )


def test_a_checkpoint_of_other_pairs_or_a_damaged_one_is_not_used(tmp_path: Path) -> None:
    """The call begins anew, and ends with the same solution."""
    K, y = separated(10, 900, 3)
    pairs = make_pairs(y, np.ones((1, len(y))), [1.0])
    watch = RoundWatch(checkpoint=Checkpoint(tmp_path), name="one")
    how, numbered = Decomposition(TOL, 10**6), dict(enumerate(pairs))
    how.solve(ArraySource(K), {0: pairs[0]}, Threads(1), watch)
    found = solved(how, ArraySource(K), numbered, Threads(1), watch)
    assert_solved(K, pairs, found)
    (file,) = tmp_path.glob("*.npz")
    file.write_bytes(file.read_bytes()[:-50])
    found = solved(how, ArraySource(K), numbered, Threads(1), watch)
    assert_solved(K, pairs, found)


def test_each_column_begins_with_both_classes() -> None:
    """A column of very few samples is not lost among those of others."""
    K, y = separated(11, 1200)
    rng = np.random.default_rng(0)
    weights = np.ones((3, len(y)))
    weights[1] = np.isin(np.arange(len(y)), rng.choice(len(y), 6, replace=False))
    weights[2] = np.isin(np.arange(len(y)), [np.flatnonzero(y == 0)[-1], np.flatnonzero(y)[3]])
    pairs = make_pairs(y, weights, [1.0])
    (first,) = (WorkingSet(pair, TOL, 1.0, 10**6) for pair in pairs)
    assert first.pair.dual.part(first.members).counts.all()
    assert_solved(K, pairs, solve(ArraySource(K), pairs))


def test_equal_samples_do_not_fill_the_set() -> None:
    """With thousands of a few kinds and some wrong labels, few rounds are enough."""
    rng = np.random.default_rng(12)
    kinds = rng.normal(size=(40, 2)) * 3.0
    kind = np.minimum(rng.geometric(0.1, 4000) - 1, 39)
    y = (kinds[kind, 0] > 0) ^ (rng.random(len(kind)) < 0.02)
    K = np.exp(-((kinds[kind][:, None] - kinds[kind]) ** 2).sum(-1))
    pairs = make_pairs(y.astype(int), np.ones((1, len(y))), [10.0])
    seen: list[Round] = []
    watch = RoundWatch(seen.append)
    numbered = dict(enumerate(pairs))
    found = solved(Decomposition(TOL, 10**6), Computed(K), numbered, Threads(1), watch)
    assert_solved(K, pairs, found)
    assert len(seen) <= 12


def test_a_checkpoint_that_lacks_something_leaves_no_trace(tmp_path: Path) -> None:
    """Of two pairs the second cannot be restored: the first begins anew too."""
    K, y = separated(13, 900, 3)
    pairs = make_pairs(y, np.ones((1, len(y))), [1.0])
    checkpoint = Checkpoint(tmp_path)
    watch = RoundWatch(checkpoint=checkpoint, name="one")
    Decomposition(TOL, 10**6).solve(ArraySource(K), dict(enumerate(pairs)), Threads(1), watch)
    kept = checkpoint.get("one", dict)
    assert kept is not None
    arrays = {key: value for key, value in kept.items() if key not in {"states", "shared"}}
    values = {key: kept[key] for key in ("states", "shared")}
    for lost in ("2-members", "_rounds"):
        some = {key: value for key, value in arrays.items() if key != lost}
        own = [{k: v for k, v in state.items() if k != lost} for state in values["states"]]
        checkpoint.put("one", some, {"states": own, "shared": values["shared"]})
        states = [WorkingSet(pair, TOL, 1.0, 10**6) for pair in pairs]
        assert not checkpoint.state(Together(states, {"entries": 0, "share": 0.0}), "one").resumed
        assert not any(state.ended or state.b.any() for state in states)


def test_solved_columns_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One column is solved before the other, and gets no more steps."""
    K, y = separated(14, 2000)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [1.0, 1e4])
    left: list[list[int]] = []
    steps: list[list[float]] = []
    judge = WorkingSet.judge

    def judged(state: WorkingSet) -> None:
        judge(state)
        left.append(list(state.left))
        steps.append(state.work[0].tolist())

    monkeypatch.setattr(WorkingSet, "judge", judged)
    Decomposition(TOL, 10**6).solve(ArraySource(K), {0: pair}, Threads(1))
    first = left.index([1])
    assert first < len(left) - 1
    assert all(own[0] == steps[first][0] for own in steps[first:])
    assert steps[-1][1] > steps[first][1]
    assert left[-1] == []


def go_on(other: WorkingSet, state: WorkingSet) -> None:
    """Have one state take up what an entry has of another."""
    arrays, values = Together([state], {}).entry()
    Together([other], {}).restore(arrays | json.loads(json.dumps(values)))


@pytest.mark.parametrize(
    ("n", "noise", "tol"), [(2000, 0.0, TOL), (2000, 0.02, TOL), (400, 0.2, 1e-300)]
)
def test_every_state_is_restored_whole(n: int, noise: float, tol: float) -> None:
    """After any round, a state from its checkpoint has all that the running one has."""
    K, y = separated(15, n, noise=noise)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [0.1, 100.0])
    seen = 0
    judge = WorkingSet.judge

    def judged(state: WorkingSet) -> None:
        nonlocal seen
        judge(state)
        other = WorkingSet(pair, tol, 1.0, 10**6, SUPPORT_SHARE)
        go_on(other, state)
        # What is left out must be set again before it is read.
        for name, value in vars(state).items():
            if name == "_moved" and not state.solved:
                continue
            expected = list(value) if name == "_seen" and value is not None else value
            np.testing.assert_equal(getattr(other, name), expected, err_msg=name)
        seen += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkingSet, "judge", judged)
        Decomposition(tol, 10**6, SUPPORT_SHARE).solve(ArraySource(K), {0: pair}, Threads(1))
    assert seen


def test_a_new_look_is_not_known_to_be_in_vain() -> None:
    """What the last solution changed is not in a checkpoint, so a look must not depend on it."""
    _, y = separated(16, 400)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [1.0])
    state = WorkingSet(pair, TOL, 1.0, 10**6)
    state._moved = False
    state._look_further()
    other = WorkingSet(pair, TOL, 1.0, 10**6)
    go_on(other, state)
    assert state._moved == other._moved


@pytest.mark.parametrize("way", ["ovo", "ovr"])
def test_columns_that_pairs_share_are_needed_once(way: Any) -> None:
    """Against the rest, columns of one matrix serve all classes: never more than it has."""
    K, y = separated(11, 600, 3, 0.1)
    pairs, seen = dict(enumerate(make_pairs(y, np.ones((1, 600)), [1.0], way))), list[Round]()
    watch = RoundWatch(seen.append)
    Decomposition(TOL, 10**6).solve(Computed(K), pairs, Threads(1), watch)
    union = np.zeros((600, 600), bool)
    found, _ = Decomposition(TOL, 10**6).solve(Computed(K), pairs, Threads(1))
    for k, pair in pairs.items():
        union[np.ix_(pair.members, pair.members[found[k][0].support])] = True
    if way == "ovr":
        assert seen[-1].needed == union.sum()
        assert seen[-1].support * 600 > 1.2 * seen[-1].needed
    else:
        assert seen[-1].needed == sum(
            union[np.ix_(y == a, y == b)].sum() for a in range(3) for b in range(3)
        )
    assert seen[-1].entries >= seen[-1].needed


def test_each_pair_is_multiplied_with_its_own_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where others have most columns, with the same gradients but for rounding."""
    X = np.random.default_rng(12).normal(size=(900, 2))
    y = np.argmax(X @ np.random.default_rng(13).normal(size=(2, 8)), axis=1)
    kernel = GaussianKernel(1.0)
    pairs = dict(enumerate(make_pairs(y, np.ones((1, 900)), [1.0, 10.0], "ovr")))
    seen = list[int]()

    class Watched(RowsSource):
        def combine(self, parts: Sequence[Combination]) -> list[Floats]:
            seen.extend(len(part.ends) for part in parts)
            for part in parts:
                (own,), (whole,) = (
                    super().combine([part]),
                    super().combine([replace(part, ends=())]),
                )
                size = np.abs(part.coef).sum(axis=0)
                assert (np.abs(own - whole) <= ROUNDING * size).all()
            return super().combine(parts)

    found, _ = Decomposition(TOL, 10**6).solve(Watched(X, kernel), pairs, Threads(1))
    assert max(seen) > 2
    K = kernel(X)
    for k, pair in pairs.items():
        tasks = [PairTask(0, ArraySource(K), pair)]
        ((_, expected, _),) = solve_pairs(tasks, TOL, PLENTY, Threads(1))
        assert_optimal(K, pair, found[k], expected, TOL, ROUNDING)
