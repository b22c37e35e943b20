"""A search by halving: everything on a sample, what may win on more, the best of each kind on all.

The kernel that is best on some thousand samples is nearly the best on all, while a grid costs some
hundred times as much on ten times the samples. Each family of kernels has a finalist, so that the
decision compares like with like; one that cannot win any more goes on with its best C alone.

Rejected: folds that are added one by one, as in racing (all folds share what is read of a matrix).
"""

import warnings
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from dhsk.arrays import Indices, Rows
from dhsk.costs import FEW
from dhsk.errors import InputWarning
from dhsk.gram.prepare import check_kernels
from dhsk.kernels import HeatKernel, Kernel
from dhsk.objects.places import remove_below
from dhsk.planning.fits import exact_seconds
from dhsk.results.asked import Search
from dhsk.results.columns import (
    CLR,
    MAP_OF,
    ONE_VS_REST,
    SCALED,
    Cell,
    GridPoint,
    Row,
    grouped,
    is_rest,
    rows_by_point,
    summarise,
)
from dhsk.results.decision import Comparison, comparisons, highest, rivals_in
from dhsk.results.paired import FoldSizes
from dhsk.results.parts import SearchRound, SearchStage
from dhsk.samples import Samples, SphereMap, ZeroRows
from dhsk.samples.maps import check_rows
from dhsk.samples.refusals import refuse_infinite
from dhsk.samples.taken import taken
from dhsk.samples.weighted import WeightedSamples
from dhsk.validation.costs import FINAL_C
from dhsk.validation.grid import Grid
from dhsk.validation.grid_progress import FITS, SAMPLES, GridProgress
from dhsk.validation.input import Square
from dhsk.validation.runs import EngineMaker, KernelsOn, Maps, Runs, make_runs
from dhsk.validation.search import SPREAD_C
from dhsk.validation.stages import Finalist, rows_of

Check: TypeAlias = Callable[[Rows, int], object]
"""Takes a block of samples and the number of its first; InputError if one cannot be used."""

FIRST: Final = (1000, 3000)
"""Fewest and most samples of the first round: a fifth of all, within these."""

GROWTH: Final = 4
"""Ratio of the numbers of samples of consecutive rounds."""

LEAST: Final = 5.0
"""Least ratio of all samples to those of a round: one of more saves little, and costs a fifth."""

OF_CLASS: Final = 2
"""Fewest samples of a class in a round, for each fold, if it has them."""

NEAREST: Final = 0.5
"""Standard errors below the best of its family up to which a kernel may be taken for it."""

KERNELS: Final = 3
"""Most kernels of a family that go on to a round that is not the last."""

SEARCH_KERNELS: Final = 10
"""Kernels of a search, about."""

FAMILIES: Final = 3
"""Kernels that are left for all samples, about."""

MOST_SHARE: Final = 0.8
"""Largest share of the expected time of a whole search at which there are rounds."""

MOST_BYTES: Final = 1 << 28
"""Most bytes of the samples of a round, which are in memory."""


def sizes_of_rounds(search: Search, square: Square, grid: Grid, *, default: bool) -> list[int]:
    """Numbers of samples of the rounds before that on all; none where all is tried on all.

    That is so for a grid that was given, a matrix, few samples, and so many classes that a sample
    takes about as long as all: then fits cost what they do however few their samples are.
    """
    if search == "full" or not default or not isinstance(square, Samples):
        return []
    n = int(grid.counts.sum())
    each = 8 * (square.shape[1] if square.nnz is None else square.nnz / square.shape[0])
    size = min(max(FIRST[0], min(FIRST[1], n // 5)), int(MOST_BYTES / each))
    found: list[int] = []
    while n >= FEW and size * LEAST <= n and (found or _pays(grid, size)):
        found.append(size)
        size = min(GROWTH * size, int(MOST_BYTES / each))
        if size <= found[-1]:
            break
    return found


def _pays(grid: Grid, size: int) -> bool:
    """Whether a search on a sample, and the finalists on all, take less time than a search on all.

    The number of classes decides it: a fit of a pair takes some time however few its samples are.
    """
    all_of, few = grid.counts.tolist(), grid.counts_among(size)
    columns = len(SPREAD_C) * len(grid.folds)
    whole = exact_seconds(all_of, columns, SEARCH_KERNELS, 1, 0.0, grid.ways)
    sample = exact_seconds(few, columns, SEARCH_KERNELS, 1, 0.0, grid.ways)
    finals = exact_seconds(all_of, FINAL_C * len(grid.folds), FAMILIES, 1, 0.0)
    return sample + finals <= MOST_SHARE * whole


def members_of_sample(grid: Grid, size: int) -> Indices:
    """About `size` samples, ascending: a random part of each class, with enough for all folds."""
    rng, chosen = np.random.default_rng(0), []
    least = OF_CLASS * len(grid.folds) // grid.repeats
    share = size / np.count_nonzero(grid.y >= 0)
    for c in range(len(grid.classes)):
        own = np.flatnonzero(grid.y == c)
        count = min(len(own), max(least, round(share * len(own))))
        chosen.append(rng.choice(own, count, replace=False))
    return np.sort(np.concatenate(chosen))


@dataclass(frozen=True)
class Survivors:
    """What goes on to the next round: values of C by the label of a kernel."""

    C: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, rows: Sequence[Row], sizes: FoldSizes, *, last: bool) -> "Survivors":
        """Choose by the rows of a round; the next one is the `last` if it has all samples.

        Of each family the best kernel goes on, and to another sample also those within a standard
        error of it. A family that may win has the neighbours of its best C too, and the best one
        also its best cell of the other way of fits, where the sample cannot tell the two apart.
        """
        summary, rows_of_cell = summarise(rows), rows_by_point(rows)
        apart = {one.cell: one for one in comparisons(summary, rows_of_cell, sizes)}
        found: dict[str, tuple[float, ...]] = {}
        rivals = rivals_in(summary)
        families = grouped(rivals, lambda cell: cell.kernel.removesuffix(ONE_VS_REST))
        for both in families.values():
            own, other = _ways(both, rows_of_cell, sizes)
            top = highest(own)
            if apart[top].is_sure:
                found[top.label] = (top.penalty,)
                continue
            near = [one for one in comparisons(own, rows_of_cell, sizes) if one.within]
            kept: dict[str, Cell] = {}
            for one in [_steepest(near), *sorted(near, key=lambda one: one.difference)]:
                kept.setdefault(one.cell.label, one.cell)
            for cell in list(kept.values())[: 1 if last else KERNELS]:
                tried = _told_apart([c for c in own if c.label == cell.label], rows_of_cell)
                found[cell.label] = _around(cell.penalty, tried)
            if other and highest(rivals) in both:
                best = highest(other)
                found[best.label] = (best.penalty,)
        return cls(found)

    def points(self, rows: Sequence[Row]) -> tuple[GridPoint, ...]:
        """Cells of a round whose kernel and C go on."""
        points = (cell.point for cell in summarise(rows))
        return tuple(p for p in points if p.penalty in self.C.get(p.label, ()))

    def finalists(self, runs: Runs) -> dict[str, list[Finalist]]:
        """Kernels that go on, by the prefix of their map."""
        found: dict[str, list[Finalist]] = {}
        for stages, _ in runs.runs:
            found[stages.prefix] = [
                Finalist(kernel, C, "ovr" if is_rest(label) else "ovo")
                for label, C in self.C.items()
                if (kernel := stages.kernel_of(label)) is not None
            ]
        return found


def _ways(
    cells: list[Cell], rows_of_cell: Mapping[GridPoint, Sequence[Row]], sizes: FoldSizes
) -> tuple[list[Cell], list[Cell]]:
    """Cells of the way of fits that goes on, and of the other one if it may be as good.

    One-vs-rest is the first only if it is better by more than a standard error. On many samples it
    takes longer: each of its problems has all of them.
    """
    ways = grouped(cells, lambda cell: is_rest(cell.kernel))
    if len(ways) == 1:
        return cells, []
    rest, pairs = (
        [row.score for row in rows_of_cell[highest(ways[one]).point]] for one in (True, False)
    )
    if not sizes.paired(rest, pairs).within:
        return ways[True], []
    return ways[False], ways[True] if sizes.paired(pairs, rest).within else []


def _steepest(near: Sequence[Comparison]) -> Comparison:
    """Of the cells nearest to the best the one of the smallest time, and of these the best one.

    More samples tell nearer ones apart: on all samples the best time is rarely a larger one.
    """
    nearest = [one for one in near if one.difference <= NEAREST * one.standard_error]
    return min(nearest, key=lambda one: (one.cell.time or 0.0, one.difference))


def _told_apart(
    cells: Sequence[Cell], rows_of_cell: Mapping[GridPoint, Sequence[Row]]
) -> list[float]:
    """Values of C of a kernel, ascending, but those whose scores are all those of the one before.

    Usually no coefficient is at its bound there, so that a larger C has the same solution.
    """
    found: list[float] = []
    before: list[float] = []
    for cell in sorted(cells, key=lambda cell: cell.penalty):
        scores = [row.score for row in rows_of_cell[cell.point]]
        if scores != before:
            found.append(cell.penalty)
        before = scores
    return found


def _around(value: float, tried: Sequence[float]) -> tuple[float, ...]:
    """The nearest of some ascending values that is not larger, and its neighbours."""
    place = bisect_right(tried, value) - 1
    return tuple(tried[max(0, place - 1) : place + 2])


@dataclass(frozen=True)
class Halved:
    """Outcome of all rounds but the last: what that one tries, and what led to it."""

    finalists: Mapping[str, Sequence[Finalist]]
    rounds: tuple[SearchRound, ...]
    stages: tuple[SearchStage, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rows of all rounds."""
        return tuple(row for one in self.rounds for row in one.rows)

    def with_last(self, search: Mapping[str, Any]) -> dict[str, Any]:
        """What the results say of the search, with its stages on all samples."""
        if not self.rounds:
            return dict(search)
        return {
            "search": (*self.stages, *search["search"]),
            "search_ended": f"ended with {self.why}, on all",
            "rounds": self.rounds,
        }

    @property
    def why(self) -> str:
        """What the last round tries, in words."""
        return f"the best of each kind of kernel on {self.rounds[-1].samples:,} samples"

    def kernels_on(self, square: Square, sphere_map: SphereMap | None) -> list[Kernel]:
        """Kernels of the finalists on samples; those that are not spherical have no weights."""
        plain, weighted, scaled, ratios = (
            [f.kernel for f in self.finalists.get(prefix, ())] for prefix in ("", *MAP_OF)
        )
        if sphere_map == MAP_OF[CLR] and CLR in self.finalists:
            return ratios
        if isinstance(square, WeightedSamples):
            return [*weighted, *scaled, *(kernel for kernel in plain if not kernel.spherical)]
        return plain


NO_ROUNDS: Final = Halved({}, (), ())
"""Of a search on all samples."""


@dataclass(frozen=True)
class Halving:
    """The rounds of a search before that on all samples."""

    sizes: Sequence[int]
    """Numbers of samples."""
    maps: Maps
    square: Square
    grid: Grid
    kernels_on: KernelsOn
    """Kernels of the first round."""
    maker: EngineMaker

    def run(self, runs: Runs, *, look: bool) -> tuple[Runs, Halved]:
        """Search on the samples, and then on all; without rounds, do the runs on all.

        Raises InputError if a row of all samples cannot be used.
        """
        if not self.sizes:
            runs.run(look=look)
            return runs, NO_ROUNDS
        assert isinstance(self.square, Samples)  # others have no rounds
        found, check, told = NO_ROUNDS, self._check(self.square), self.maker.options.report
        told.expect(SAMPLES, len(self.sizes), self._share)
        told.expect(FITS, 1.0, 1.0)  # of the finalists, until these are known
        for number, size in enumerate(self.sizes):
            members = members_of_sample(self.grid, size)
            small = taken(self.square, members, check)
            check = _unchecked
            with told.part(SAMPLES, 1.0):
                last = number == len(self.sizes) - 1
                found = self._round(found, small, self.grid.among(members), last=last)
        return self._on_all(found), found

    def _on_all(self, found: Halved) -> Runs:
        """What is left, tried on all samples."""
        maker, finalists = self.maker, dict(found.finalists)
        maker = replace(maker, options=replace(maker.options, earlier=found.rows))
        used = {one.way for own in finalists.values() for one in own}
        ways = tuple(way for way in self.grid.ways if way in used)
        grid = replace(self.grid, ways=ways or self.grid.ways)  # it decides how matrices are read
        runs = make_runs(self.maps, self.square, grid, found.kernels_on, maker)
        if maker.low_rank is not None:  # another loss, whose C means something else
            every = tuple(self.grid.C)
            finalists = {p: [replace(f, C=every) for f in own] for p, own in finalists.items()}
        runs.finish(finalists, found.why)
        if grid.in_spreads:
            runs.extend()
        return runs

    @property
    def _share(self) -> float:
        """Guess of the time of a round, that of the fits of a kernel on all being 1."""
        grid, columns = self.grid, len(SPREAD_C) * len(self.grid.folds)
        few, every = grid.counts_among(self.sizes[0]), grid.counts.tolist()
        sample = exact_seconds(few, columns, SEARCH_KERNELS, 1, 0.0, grid.ways)
        return sample / exact_seconds(every, columns, 1, 1, 0.0, grid.ways)

    def _round(self, before: Halved, small: Samples, grid: Grid, *, last: bool) -> Halved:
        """Results of a round on a sample."""
        n, options = small.shape[0], self.maker.options
        assert options.store is not None  # `cross_validate` makes a temporary one
        told = GridProgress(options.report)
        told.on = f" on {n:,} samples"
        store = options.store / f"sample-{n}"
        own = replace(options, report=told, store=store, table=None, on_demand=True)
        # Of the fewest samples a kernel takes seconds, and many classes thousands of small files.
        own = replace(own, keeps_fits=bool(before.rounds))
        maker = replace(self.maker, low_rank=None, options=own)
        kernels_on = before.kernels_on if before.rounds else self.kernels_on
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # all samples are warned of
            runs = make_runs(self.maps, small, grid, kernels_on, maker)
            if before.rounds:
                runs.finish(before.finalists, before.why)
            else:
                runs.run(look=True)
        told.end()
        remove_below(store)
        rows = rows_of(runs.tried)
        sizes = grid.splitting.sizes(grid.repeats, n)
        survivors = Survivors.of(rows, sizes, last=last)
        kept = tuple(replace(row, sample=n) for row in rows)
        rounds = (*before.rounds, SearchRound(n, kept, survivors.points(rows)))
        stages = tuple(replace(stage, samples=n) for stage in runs.search["search"])
        return Halved(survivors.finalists(runs), rounds, (*before.stages, *stages))

    def _check(self, samples: Samples) -> Check:
        """Check of all rows, so that none is refused after the rounds."""
        if self.maps.learnt == MAP_OF[SCALED] and not self.maps.plain:
            return refuse_infinite
        kernel = HeatKernel.at_scale(samples.shape[1], 1.0)
        sphere_map = check_kernels([kernel], [samples], self.maps.fixed)
        zero_rows = ZeroRows(self.maker.zero_rows)
        return lambda block, first: check_rows(sphere_map, block, first, zero_rows)


def _unchecked(block: Rows, first: int) -> None:
    """Rows that were checked before."""
