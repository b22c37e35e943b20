"""The search by halving: what is tried on samples, what goes on, and what is said of it."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.errors import InputError, InputWarning
from dhsk.results.columns import ONE_VS_REST, GridPoint, Row
from dhsk.results.paired import FoldSizes
from dhsk.samples import open_samples
from dhsk.samples.taken import taken
from dhsk.validation.cells import Cells
from dhsk.validation.engine import TriedKernel
from dhsk.validation.folds import divide
from dhsk.validation.grid import Grid, make_grid
from dhsk.validation.grid_progress import GridProgress
from dhsk.validation.halving import Survivors, members_of_sample, sizes_of_rounds
from dhsk.validation.stages import Finalist, Stages, Wanted
from dhsk.validation.start import few_of

N = 300
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, N)
X = RNG.poisson(1.0 + 2.0 * (Y[:, None] == np.arange(9) % 3)) + 1.0
NO_METHODS = dhsk.Output(baselines=False)
NAMES = ("", "tf-idf ", "clr ")
SIZES = FoldSizes(5, 1, 80.0, 20.0, 100, repeatable=True)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 60 samples, and of 120 if those are asked for."""
    monkeypatch.setattr("dhsk.validation.halving.FEW", 100)
    monkeypatch.setattr("dhsk.validation.halving.FIRST", (60, 60))
    monkeypatch.setattr("dhsk.validation.halving.GROWTH", 2)
    monkeypatch.setattr("dhsk.validation.halving.LEAST", 2.5)
    monkeypatch.setattr("dhsk.validation.halving.MOST_SHARE", 10.0)


def grid_of(n: int, y: Any = None, cv: Any = 5, **options: Any) -> Grid:
    """A grid of samples of two classes."""
    return make_grid(divide(n, np.arange(n) % 2 if y is None else y, cv), **options)


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (4999, []),
        (5000, [1000]),
        (11_314, [2262]),
        (39_774, [3000]),
        (60_000, [3000, 12_000]),
    ],
)
def test_rounds_by_the_number_of_samples(n: int, sizes: list[int]) -> None:
    """A fifth of all within limits, then four times as many if that is a fifth at most."""
    square = open_samples(np.ones((n, 3)))
    assert sizes_of_rounds("halving", square, grid_of(n), default=True) == sizes
    assert sizes_of_rounds("full", square, grid_of(n), default=True) == []
    assert sizes_of_rounds("halving", square, grid_of(n), default=False) == []
    assert sizes_of_rounds("halving", np.eye(n, 2), grid_of(n), default=True) == []


def test_many_classes_have_no_rounds_unless_these_pay() -> None:
    """With 20 and 60 classes from some more samples on."""
    for n, k, sizes in ((5000, 20, []), (6000, 20, [1200]), (6000, 60, []), (40_000, 60, [3000])):
        grid = grid_of(n, np.arange(n) % k)
        square = open_samples(np.ones((n, 3)))
        assert sizes_of_rounds("halving", square, grid, default=True) == sizes


def test_samples_of_a_round_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of dense samples by their features, of sparse ones by their entries."""
    monkeypatch.setattr("dhsk.validation.halving.MOST_BYTES", 8 * 3 * 1500)
    dense, sparse = open_samples(np.ones((60_000, 3))), open_samples(csr_array(np.eye(60_000, 3)))
    grid = grid_of(60_000)
    assert sizes_of_rounds("halving", dense, grid, default=True) == [1500]
    assert sizes_of_rounds("halving", sparse, grid, default=True) == [3000, 12_000]


def test_a_sample_has_all_classes() -> None:
    """In proportion, but enough of each for every fold; those left out stay out."""
    y = np.repeat(["many", "some", "few", "out"], [9000, 900, 15, 2])
    grid = grid_of(len(y), y, dhsk.StratifiedFolds(5, min_class=3))
    chosen = members_of_sample(grid, 1000)
    counts = dict(zip(*np.unique(y[chosen], return_counts=True), strict=True))
    assert counts == {"few": 10, "some": 91, "many": 908}
    assert (np.diff(chosen) > 0).all()
    assert (chosen == members_of_sample(grid, 1000)).all()
    own = grid.among(chosen)
    for number, (train, test) in enumerate(own.folds):
        assert set(own.y[test].tolist()) == {0, 1, 2}
        assert np.array_equal(np.sort(chosen[test]), np.intersect1d(grid.folds[number][1], chosen))
        assert np.array_equal(np.sort(chosen[train]), np.intersect1d(grid.folds[number][0], chosen))
    assert np.array_equal(own.weights, grid.weights[:, chosen])


def test_folds_without_samples_are_left_out() -> None:
    """A user's own fold may lie beside the sample."""
    y = np.arange(100) % 2
    folds = [(np.arange(50), np.arange(50, 100)), (np.arange(10, 100), np.arange(10))]
    own = grid_of(100, y, folds).among(np.arange(20, 80))
    assert len(own.folds) == len(own.weights) == 1
    assert own.folds[0][1].tolist() == list(range(30, 60))


def test_taken_rows_are_those_of_the_samples() -> None:
    """Dense and sparse, with their names; every row of all is checked."""
    members, seen = np.array([0, 5, 6, 250]), list[int]()

    def check(block: Any, first: int) -> None:
        seen.extend(range(first, first + block.shape[0]))

    for given in (X, csr_array(X)):
        samples = open_samples(given)
        (found,) = taken(samples, members, check).blocks(10)
        found = found.toarray() if samples.is_sparse else found
        assert np.array_equal(found, X[members])
    assert seen == 2 * list(range(N))


def rows_of(label: str, C: float, scores: Sequence[float], **own: Any) -> list[Row]:
    """Rows of a cell."""
    time = own.pop("time", None)
    point = GridPoint(kernel=label.split()[0], label=label, time=time, C=C)
    proof = {"seconds": 0.0, "converged": True, "n_iter": 1, "gap": 0.0} | own
    return [
        Row(**vars(point), **proof, fold=fold, score=score) for fold, score in enumerate(scores)
    ]


BEST = (0.90, 0.92, 0.91, 0.89, 0.93)


def lowered(by: float, noise: float = 0.0) -> list[float]:
    """The best scores less a difference that varies from fold to fold."""
    return [s - by + noise * k for s, k in zip(BEST, (1, -1, 0, 1, -1), strict=True)]


ROUND = [
    *rows_of("heat s=1", 1.0, lowered(0.01)),
    *rows_of("heat s=1", 2.0, BEST),
    *rows_of("heat s=1", 4.0, lowered(0.01)),
    *rows_of("heat s=1", 8.0, lowered(0.02)),
    *rows_of("heat s=2", 2.0, lowered(0.004, 0.01)),
    *rows_of("heat s=3", 2.0, lowered(0.05, 0.01)),
    *rows_of("heat s=4", 2.0, [s + 1 for s in BEST], converged=False),
    *rows_of("cosine", 1.0, lowered(0.01, 0.01)),
    *rows_of("cosine", 2.0, lowered(0.02, 0.01)),
    *rows_of("linear", 1.0, lowered(0.2, 0.01)),
    *rows_of("linear", 2.0, lowered(0.3, 0.01)),
]


def test_the_best_of_each_family_goes_on() -> None:
    """At the neighbours of its best C where it may win, to another sample with those near it."""
    last = Survivors.of(ROUND, SIZES, last=True)
    assert last.C == {"heat s=1": (1.0, 2.0, 4.0), "cosine": (1.0, 2.0), "linear": (1.0,)}
    more = Survivors.of(ROUND, SIZES, last=False)
    assert more.C == last.C | {"heat s=2": (2.0,)}
    assert {(p.label, p.C) for p in last.points(ROUND)} == {
        (label, C) for label, own in last.C.items() for C in own
    }


def test_a_larger_C_of_the_same_scores_does_not_go_on() -> None:
    """Nothing is beyond the margin there, so that it changes nothing."""
    rows = [
        *rows_of("heat s=1", 0.5, lowered(0.02)),
        *rows_of("heat s=1", 1.0, BEST),
        *rows_of("heat s=1", 2.0, BEST),
        *rows_of("heat s=1", 4.0, lowered(0.001)),
    ]
    assert Survivors.of(rows[:15], SIZES, last=True).C == {"heat s=1": (0.5, 1.0)}
    assert Survivors.of(rows, SIZES, last=True).C == {"heat s=1": (0.5, 1.0, 4.0)}


class Scored:
    """An engine that has the scores of fits."""

    def __init__(self, scores: dict[float, Sequence[float]]) -> None:
        self.scores = scores

    def relative_work(self, kernel: Any) -> float:
        """All kernels take the same time."""
        del kernel
        return 1.0

    def run(self, kernels: Any, grid: Any) -> list[Any]:
        """Cells of a kernel at the values of C of the grid."""
        rows = [row for C in grid.C for row in rows_of("cosine", C, self.scores[C])]
        rows = [replace(row, C_scaled=row.C) for row in rows]
        return [TriedKernel(kernels[0], list(grid.C), Cells(rows, []))]


TOP = tuple(score + 0.02 for score in BEST)


@pytest.mark.parametrize(
    ("sample", "top", "tried"),
    [
        ({}, BEST, [0.5, 0.15]),
        ({0.5: lowered(0.01, 0.02)}, BEST, [0.5, 0.15]),
        ({0.5: lowered(0.1, 0.02)}, BEST, []),
        ({}, TOP, []),
    ],
    ids=["no sample", "not surely worse there", "surely worse there", "cannot win"],
)
def test_a_smaller_C_is_tried_where_it_may_win(
    sample: dict[float, Sequence[float]], top: Sequence[float], tried: list[float]
) -> None:
    """The best C of those on all samples is the smallest, by 0.01."""
    scores = {0.15: lowered(0.05), 0.5: lowered(0.02), 1.5: BEST, 5.0: lowered(0.01)}
    grid = replace(grid_of(100), C=[1.5, 5.0], in_spreads=True)
    told = GridProgress(lambda _: None)
    told.begin(grid, None)
    stages = Stages(Scored(scores), open_samples(np.ones((100, 3))), grid, told)  # type: ignore[arg-type]
    wanted = Wanted([dhsk.CosineKernel()], look=False)
    stages.finish([Finalist(dhsk.CosineKernel(), (1.5, 5.0))], wanted, "")
    earlier = [
        replace(row, sample=60, C_scaled=row.C)
        for C, own in ({1.5: BEST} | sample).items()
        for row in rows_of("cosine", C, own)
    ]
    stages.extend(wanted, rows_of("heat", 1.0, top), earlier)
    assert [C for one in stages.tried[1:] for C in one.C] == sorted(tried)


@pytest.mark.parametrize(
    ("at_5", "tried"),
    [
        (lowered(0.01), [50.0, 150.0]),
        (lowered(0.002, 0.01), []),
        (BEST, []),
        (None, [50.0, 150.0]),
    ],
    ids=["surely better", "better by chance", "level", "all equal"],
)
def test_without_halving_a_larger_C_is_tried_where_it_may_win(
    at_5: Sequence[float] | None, tried: list[float]
) -> None:
    """The best C is the largest, or all that were tried are equal, as where they are too small."""
    first = lowered(0.05) if at_5 else BEST
    scores = {0.5: first, 1.5: first, 5.0: at_5 or BEST, 15.0: BEST}
    scores |= {50.0: lowered(0.01), 150.0: lowered(0.02)}
    grid = replace(grid_of(100), C=[0.5, 1.5, 5.0, 15.0], in_spreads=True)
    told = GridProgress(lambda _: None)
    told.begin(grid, None)
    stages = Stages(Scored(scores), open_samples(np.ones((100, 3))), grid, told)  # type: ignore[arg-type]
    stages.run(Wanted([dhsk.CosineKernel()], look=True))
    assert [C for one in stages.tried[1:] for C in one.C] == tried


def test_of_kernels_that_are_nearly_equal_the_steepest_goes_on() -> None:
    """More samples tell nearer ones apart; one that is worse by more is no candidate."""
    rows = [
        *rows_of("heat s=1", 1.0, BEST, time=1.0),
        *rows_of("heat s=0.9", 1.0, lowered(0.002, 0.01), time=0.9),
        *rows_of("heat s=0.8", 1.0, lowered(0.004, 0.02), time=0.8),
        *rows_of("heat s=0.7", 1.0, lowered(0.009, 0.02), time=0.7),
        *rows_of("heat s=2", 1.0, lowered(0.001, 0.01), time=2.0),
    ]
    assert list(Survivors.of(rows, SIZES, last=True).C) == ["heat s=0.8"]
    more = Survivors.of(rows, SIZES, last=False)
    assert list(more.C) == ["heat s=0.8", "heat s=1", "heat s=2"]


def test_few_kernels_of_a_family_go_on() -> None:
    """However many are near the best one."""
    near = [(k, lowered(k / 300, 0.03 if k else 0.0)) for k in range(9)]
    rows = [row for k, scores in near for row in rows_of(f"heat s={k}", 1.0, scores)]
    assert list(Survivors.of(rows, SIZES, last=False).C) == ["heat s=0", "heat s=1", "heat s=2"]


@pytest.mark.slow(seconds=10)
@pytest.mark.usefixtures("few")
def test_scores_on_all_are_those_of_the_whole_search(tmp_path: Path) -> None:
    """Of the same cells; the rest is found in the rounds, and told apart by their samples."""
    # To 1e-3 a sample may be on either side, as fits begin from those of the C that came before.
    fit = dhsk.Fitting(tol=1e-6)
    found = dhsk.cross_validate(X, Y, out=dhsk.Output(tmp_path, baselines=False), fit=fit)
    whole = dhsk.cross_validate(X, Y, search="full", out=NO_METHODS, fit=fit)
    scores = {(r["label"], r["fold"], f"{r['C']:.5g}"): r["score"] for r in whole.results_}
    both = [
        (row["score"], scores[key])
        for row in found.results_
        if (key := (row["label"], row["fold"], f"{row['C']:.5g}")) in scores
    ]
    assert len(both) >= 5
    assert all(one == other for one, other in both)
    assert len(found.results_) < len(whole.results_) / 2
    families = {cell.kernel.removesuffix(ONE_VS_REST) for cell in whole.summary}
    assert {cell.kernel.removesuffix(ONE_VS_REST) for cell in found.summary} == families
    assert found.best_score_ >= whole.best_score_ - 0.02
    assert [one.samples for one in found.rounds] == [60, 120]
    assert whole.rounds == ()
    table = list(csv.DictReader((tmp_path / "results.csv").read_text().splitlines()))
    assert {row["sample"] for row in table} == {"", "60", "120"}
    assert len(table) == len(found.results_) + sum(len(one.rows) for one in found.rounds)
    found.to_csv(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "results.csv").read_text()
    assert [stage.samples for stage in found.search] == sorted(
        [stage.samples for stage in found.search], key=lambda n: n or N
    )
    assert not list(tmp_path.glob("**/sample-*"))


@pytest.mark.usefixtures("few")
def test_rounds_are_in_files_and_on_the_page(tmp_path: Path) -> None:
    """The page says what went on, and from how many samples."""
    found = dhsk.cross_validate(X, Y, out=NO_METHODS)
    found.to_json(tmp_path / "results.json")
    again = dhsk.CvResult.from_json(tmp_path / "results.json")
    assert again.rounds == found.rounds
    assert again.search == found.search
    again.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "a sample (60 and 120 of 300 samples)" in text
    assert "went on" in text


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("value", [np.nan, -5.0])
def test_a_wrong_row_is_refused_before_the_first_round(value: float) -> None:
    """Although it is in no sample, and not among the rows whose cosines tell the times."""
    wrong, y = np.tile(X, (5, 1)), np.tile(Y, 5)
    seen = np.union1d(few_of(len(y)), members_of_sample(grid_of(len(y), y), 60))
    row = int(np.setdiff1d(np.arange(1000, len(y)), seen)[0])
    wrong[row, 2] = value
    events: list[Any] = []
    with pytest.raises(InputError, match=f"row {row}"):
        dhsk.cross_validate(wrong, y, C=1.0, progress=events.append, out=NO_METHODS)
    assert not any(event.stage == "fits" for event in events)


@pytest.mark.slow(seconds=10)
@pytest.mark.usefixtures("few")
def test_a_warning_comes_once() -> None:
    """Not for each round: one column has most of the sum."""
    with pytest.warns(InputWarning, match="in column 0") as told:
        dhsk.cross_validate(
            RNG.random((N, 9)) * ([40.0] + 8 * [1.0]),
            Y,
            C=1.0,
            sphere_map="hyperspherical",
            out=NO_METHODS,
        )
    assert len({str(one.message) for one in told}) == 1


@pytest.mark.usefixtures("few")
def test_progress_is_of_all_rounds() -> None:
    """It grows from 0 to 1, and says what is on samples."""
    events: list[Any] = []
    dhsk.cross_validate(X, Y, progress=events.append, out=NO_METHODS)
    shares = [event.share for event in events]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    whats = [event.what for event in events]
    assert any(what.endswith("on 60 samples") for what in whats)
    assert any(what.endswith("on 120 samples") for what in whats)
    assert "samples" not in whats[-1]


@pytest.mark.slow(seconds=5)
@pytest.mark.usefixtures("few")
def test_maps_are_compared_in_rounds_too() -> None:
    """Where all are asked for; log-ratios only of dense samples."""
    found = dhsk.cross_validate(X - 1.0, Y, sphere_map="auto", out=NO_METHODS)
    families = {cell.kernel.removesuffix(ONE_VS_REST) for cell in found.summary}
    assert families == {f"{name}{kernel}" for name in NAMES for kernel in ("heat", "cosine")}
    both = families | {name + ONE_VS_REST for name in families}
    assert {row.kernel for row in found.rounds[0].rows} == both


@pytest.mark.usefixtures("few")
def test_kernels_without_weights_stay_where_the_map_is_weighted() -> None:
    """They are those of a table whose totals do not differ."""
    table = X / X.sum(axis=1, keepdims=True)
    found = dhsk.cross_validate(table, Y, sphere_map="tfidf", out=NO_METHODS)
    families = {cell.kernel.removesuffix(ONE_VS_REST) for cell in found.summary}
    assert families == {"tf-idf heat", "tf-idf cosine", "linear"}


@pytest.mark.usefixtures("few")
def test_low_rank_tries_the_kernels_of_exact_rounds() -> None:
    """At every rank and C, as C means something else there."""
    found = dhsk.cross_validate(X, Y, low_rank=dhsk.LowRank([5, 20]), C=[0.1, 1.0], out=NO_METHODS)
    assert {row.rank for one in found.rounds for row in one.rows} == {None}
    for label in {cell.label for cell in found.summary}:
        cells = {(c.rank, c.C) for c in found.summary if c.label == label}
        assert cells == {(rank, C) for rank in (5, 20) for C in (0.1, 1.0)}


def test_a_wrong_name_is_refused() -> None:
    """With what there is."""
    with pytest.raises(InputError, match="'halving' or 'full', but it is 'quick'"):
        dhsk.cross_validate(X, Y, search="quick")  # type: ignore[arg-type]


def test_rounds_take_gaps(few: None) -> None:
    """Rows of a round are drawn while all are looked at, where infinity alone is refused."""
    table = X.copy()
    table[RNG.random(X.shape) < 0.1] = np.nan
    with pytest.warns(InputWarning) as told:
        result = dhsk.cross_validate(table, Y, out=NO_METHODS)
    assert ["means of columns stand" in str(one.message) for one in told] == [False, True]
    assert result.rounds
    assert result.best.kernel.startswith("scaled ")
    table[290, 2] = np.inf
    with (
        pytest.warns(InputWarning, match="have gaps"),
        pytest.raises(InputError, match=r"row 290, column 2 .* holds inf, but samples must be"),
    ):
        dhsk.cross_validate(table, Y, out=NO_METHODS)
