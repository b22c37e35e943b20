"""Stages of a grid: the kernels that were asked for, then other times and other values of C."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dhsk.errors import InputError
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import (
    CosineKernel,
    GaussianKernel,
    HeatKernel,
    Kernel,
    LinearKernel,
    PolynomialKernel,
)
from dhsk.kernels.base import Indefinite, check_semidefinite, parse_indefinite
from dhsk.results.columns import (
    ONE_VS_REST,
    SCALED,
    Cell,
    Row,
    grouped,
    is_rest,
    rows_by_point,
    summarise,
)
from dhsk.results.decision import highest
from dhsk.results.paired import FoldSizes
from dhsk.results.parts import SearchStage
from dhsk.samples import Samples, SphereMap, ZeroRule
from dhsk.samples.looks import differ_in_depth, first_rows, have_one_norm, warn_of_spread
from dhsk.samples.weighted import WeightedSamples
from dhsk.solvers.problems import MultiClass
from dhsk.validation.cells import names_of
from dhsk.validation.engine import Engine, TriedKernel
from dhsk.validation.grid import Grid, Kernels, candidates
from dhsk.validation.grid_progress import GridProgress
from dhsk.validation.input import Square
from dhsk.validation.search import (
    SEARCHED,
    WIDTHS,
    is_linear,
    next_penalties,
    next_scales,
    next_width,
    usual_widths,
)
from dhsk.validation.start import first_scales, least_scale


@dataclass(frozen=True)
class Wanted:
    """Kernels of a grid, and what else may be tried."""

    kernels: list[Kernel]
    """Kernels to try first; none for a matrix of the user's own."""
    look: bool
    """Whether other times are tried while that may pay."""
    later: int = 0
    """Kernels that are tried after these."""
    later_columns: float | None = None
    """Their work, that of a kernel with one C in all ways being 1; None for all C in all ways."""

    @property
    def searched(self) -> int:
        """Kernels at other times that are tried after them, about."""
        look = self.look and any(isinstance(kernel, HeatKernel) for kernel in self.kernels)
        return SEARCHED if look else 0


def is_default(square: Square, time_scale: Any, kernels: Any) -> bool:
    """Whether no kernel was asked for, and the heat kernel can be compared with simple ones."""
    if time_scale is not None or kernels is not None:
        return False
    own = isinstance(square, GramMatrix) and not isinstance(square.kernel, CosineKernel)
    return not own and not isinstance(square, np.ndarray)


def kernels_of(
    square: Square,
    sphere_map: SphereMap | None,
    *,
    time_scale: Any,
    kernels: Any,
    zero_rows: ZeroRule,
    indefinite: Indefinite = "error",
) -> list[Kernel]:
    """Kernels to try first; none for a matrix of the user's own.

    For `time_scale` "auto", or where neither times nor kernels are given, heat kernels are made
    at the times that suit the samples. In the second case the cosine and linear ones are added, the
    latter on the samples as they are, unless they are counts whose totals differ; stored cosines do
    not determine it. Kernels that are known
    not to be positive semi-definite are an InputError unless `indefinite` allows them.
    """
    parse_indefinite(indefinite)
    precomputed = isinstance(kernels, str) and kernels == "precomputed"
    if isinstance(square, np.ndarray):
        if not precomputed or time_scale is not None:
            raise InputError(f"a matrix needs kernels='precomputed' alone, got {kernels!r}")
        return []
    if precomputed:
        raise InputError("a GramMatrix has its kernels: give others, or none, not 'precomputed'")
    if is_default(square, time_scale, kernels):
        time_scale, kernels = "auto", _baselines(square, sphere_map)
        if isinstance(square, WeightedSamples) and sphere_map == "identity":
            widths = usual_widths(square.shape[1])
            time_scale, kernels = None, [*map(GaussianKernel, widths), LinearKernel()]
    if isinstance(time_scale, str):
        time_scale = first_scales(square, sphere_map, zero_rows)
    chosen = candidates(square, time_scale, kernels, sphere_map)
    for kernel in chosen:
        check_semidefinite(kernel, indefinite)
    unmapped = sphere_map in (None, "identity")
    if isinstance(square, Samples) and unmapped and all(isinstance(k, OF_COLUMNS) for k in chosen):
        warn_of_spread(square)
    return chosen


def _baselines(square: GramMatrix | Samples, sphere_map: SphereMap | None) -> Kernels:
    """Simple kernels beside the heat kernel; the linear one is the cosine of rows of one length.

    Where totals of counts differ, as depths of sequencing and lengths of texts do, a linear kernel
    of the counts follows the totals, and no C means anything to a reader: it is left out.
    """
    if isinstance(square, GramMatrix) or sphere_map == "identity":
        return [CosineKernel()]
    counts = square.samples if isinstance(square, WeightedSamples) else square
    rows = first_rows(counts)
    if differ_in_depth(rows) or (sphere_map == "projective" and have_one_norm(rows)):
        return [CosineKernel()]
    return [CosineKernel(), LinearKernel()]


OF_COLUMNS: Final = (GaussianKernel, LinearKernel, PolynomialKernel)
"""Kernels of samples as they are, whose columns should have one unit."""


@dataclass(frozen=True)
class Finalist:
    """A kernel that goes on in a search by halving, and the values of C that it is tried at."""

    kernel: Kernel
    C: tuple[float, ...]
    """Ascending, in the units of the grid."""
    way: MultiClass = "ovo"
    """Its fits of several classes, if they are exact."""


@dataclass(eq=False)
class Stages:
    """Runs a grid stage by stage."""

    engine: Engine
    square: Square
    """Samples or matrix, whose number of features counts."""
    grid: Grid
    told: GridProgress
    """Hears how far all is."""
    prefix: str = ""
    """What families and labels begin with under the map of the engine."""

    def __post_init__(self) -> None:
        self.tried: list[TriedKernel] = []
        """Results so far."""
        self.stages: list[SearchStage] = []
        """What each stage of a search tried."""
        self.ended = ""
        """Why the search ended; empty without one."""
        self._kernels: dict[str, Kernel] = {}

    def run(self, wanted: Wanted) -> None:
        """Try the kernels, and go on at other times and values of C while that may pay."""
        first = self._run(wanted.kernels, wanted)
        if not wanted.look:
            return
        if any(isinstance(kernel, HeatKernel) for kernel in wanted.kernels):
            self._note(first, "where the variance of the samples under the kernel is 0.9 to 0.1")
        elif any(isinstance(kernel, GaussianKernel) for kernel in wanted.kernels):
            self._note(first, f"widths of {WIDTHS[0]:g} to {WIDTHS[-1]:g} times the usual one")
        self._other_times(wanted)
        if self.prefix == SCALED:
            self._other_widths(wanted)
        if self.grid.in_spreads:
            self.extend(wanted, rows_by_point(self.rows)[highest(summarise(self.rows)).point])

    def finish(self, finalists: Sequence[Finalist], wanted: Wanted, why: str) -> None:
        """Try kernels at values of C of their own."""
        left = list(finalists)
        for (C, way), some in grouped(finalists, lambda one: (one.C, one.way)).items():
            left = [one for one in left if one not in some]
            own = replace(
                wanted,
                later=wanted.later + len(left),
                later_columns=(wanted.later_columns or 0.0) + self.columns_of(left),
            )
            self._note(self._run([one.kernel for one in some], own, self._at(C, way)), why)

    def columns_of(self, finalists: Sequence[Finalist]) -> float:
        """Work of some kernels, that of a kernel with one C in all ways being 1."""
        grids = (self._at(one.C, one.way) for one in finalists)
        return sum(
            self._share(grid, [one.kernel]) * len(grid.C)
            for one, grid in zip(finalists, grids, strict=True)
        )

    def _share(self, grid: Grid, kernels: Sequence[Kernel]) -> float:
        """Mean work of kernels in the ways of a grid with one C, that of most in all being 1."""
        quick = sum(map(self.engine.relative_work, kernels)) / max(1, len(kernels))
        return quick * sum(map(self.grid.work_of, grid.ways)) / self.grid.work

    def extend(self, wanted: Wanted, best: Sequence[Row], earlier: Sequence[Row] = ()) -> None:
        """Try larger or smaller C at the best kernel of each family, if its best C is an end.

        While that pays: where that C is better than the next one by more than a standard error, and
        could get within one of the best cell, given by its rows, by as much again; scores have one
        hill over C, and flatten towards its top. Or where all are equal, as C may be too small to
        tell any samples apart. And where what is tried was not surely worse on a sample, whose rows
        are the earlier ones.
        """
        sizes = self.grid.splitting.sizes(self.grid.repeats, len(self.grid.y))
        while True:
            asked: dict[tuple[tuple[float, ...], MultiClass, bool], list[Cell]] = {}
            for cell, tried in self._families():
                values = next_penalties(tried)
                if not values or _was_worse(cell, values, sizes, earlier):
                    continue
                equal = len(set(tried.values())) == 1
                if equal or self._may_win(cell, tried, sizes, best):
                    way: MultiClass = "ovr" if is_rest(cell.label) else "ovo"
                    asked.setdefault((tuple(values), way, equal), []).append(cell)
            for (further, way, equal), cells in asked.items():
                kernels = [self._kernels[cell.label.removesuffix(ONE_VS_REST)] for cell in cells]
                end = "largest" if further[0] > cells[0].penalty else "smallest"
                names = ", ".join(cell.label for cell in cells)
                found = "each C was as good for" if equal else f"the {end} C was the best of"
                why = f"{found} {names}: now {end[:-3]}er ones"
                self._note(self._run(kernels, wanted, self._at(further, way)), why)
            if not asked:
                return

    def kernel_of(self, label: str) -> Kernel | None:
        """A kernel by its label with the prefix; None if it was not tried here."""
        return self._kernels.get(label.removesuffix(ONE_VS_REST))

    def _at(self, C: Sequence[float], way: MultiClass) -> Grid:
        """The grid with other values of C, and one way of fits; of low rank there is no other."""
        grid = self.grid.at(C)
        return replace(grid, ways=(way,)) if way in grid.ways else grid

    @property
    def rows(self) -> list[Row]:
        """Rows of all cells so far."""
        return rows_of(self.tried)

    def _run(
        self, kernels: Sequence[Kernel], wanted: Wanted, grid: Grid | None = None
    ) -> Sequence[TriedKernel]:
        """Try some kernels, on another grid than the whole one if it is given."""
        labels = [names_of(kernel, self._dim).label for kernel in kernels]
        self._kernels |= {self.prefix + label: k for label, k in zip(labels, kernels, strict=True)}
        grid = grid or self.grid
        searched = len(self.tried) - len(wanted.kernels) + len(kernels) if self.tried else 0
        ahead = max(0, wanted.searched - searched)
        with self.told.within(prefix=self.prefix):
            later = wanted.later_columns
            if later is None:
                later = len(self.grid.C) * wanted.later
            self.told.expect_stage(
                labels,
                self._share(grid, kernels) * len(grid.C),
                ahead + wanted.later,
                len(self.grid.C) * ahead + later,
            )
            tried = self.engine.run(kernels, grid)
        found = [replace(one, cells=one.cells.named(self.prefix)) for one in tried]
        self.tried += found
        return found

    @property
    def _dim(self) -> int:
        return self.square.dim if isinstance(self.square, GramMatrix) else self.square.shape[1]

    def _note(self, found: Sequence[TriedKernel], why: str) -> None:
        """Describe a stage: what it tried, and its best cell."""
        cells = summarise(rows_of(found))
        stage = SearchStage(
            time_scales=tuple(sorted({cell.time_scale for cell in cells if cell.time_scale})),
            C=tuple(sorted({C for one in found for C in one.C})),
            C_scaled=tuple(sorted({cell.C_scaled for cell in cells if cell.C_scaled})),
            best=highest(cells),
            why=f"{self.prefix.rstrip()}{self.prefix and ': '}{why}",
        )
        self.stages.append(stage)

    def _other_times(self, wanted: Wanted) -> None:
        """Try other times of the heat kernel."""
        assert not isinstance(self.square, np.ndarray)  # `kernels_of` has refused it
        while True:
            best: dict[float, float] = {}
            for cell in summarise(self.rows):
                own = cell.kernel.removesuffix(ONE_VS_REST) == self.prefix + HeatKernel.name
                if own and cell.time_scale is not None:
                    best[cell.time_scale] = max(_mean(cell), best.get(cell.time_scale, -np.inf))
            if not best:
                return
            linear, least = is_linear(self._dim), least_scale(self._dim)
            scales, why = next_scales(best, len(self.stages), linear, least)
            if not scales:
                self.ended = f"{self.prefix}{why}"
                return
            self._note(self._run(candidates(self.square, scales, None), wanted), why)

    def _other_widths(self, wanted: Wanted) -> None:
        """Try Gaussian kernels of other widths while the best is the last of those tried."""
        while True:
            best: dict[float, float] = {}
            for cell in summarise(self.rows):
                kernel = self._kernels[cell.label.removesuffix(ONE_VS_REST)]
                if isinstance(kernel, GaussianKernel):
                    best[kernel.sigma] = max(_mean(cell), best.get(kernel.sigma, -np.inf))
            width, why = next_width(best)
            if width is None:
                return
            self._note(self._run([GaussianKernel(width)], wanted), why)

    def _may_win(
        self, cell: Cell, tried: Mapping[float, float], sizes: FoldSizes, best: Sequence[Row]
    ) -> bool:
        """Whether values of C beyond that of a cell, at an end, may change what is chosen."""
        values = sorted(tried)
        other = values[1] if cell.penalty == values[0] else values[-2]
        rows = rows_by_point(self.rows)
        near = next(p for p in rows if p.label == cell.label and p.penalty == other)
        own, next_, top = (
            [row.score for row in some] for some in (rows[cell.point], rows[near], best)
        )
        gain, behind = sizes.paired(own, next_), sizes.paired(top, own)
        return not gain.within and behind.difference - gain.difference <= behind.standard_error

    def _families(self) -> Iterator[tuple[Cell, dict[float, float]]]:
        """Best cell of each family of kernels; and means by C at its kernel and rank."""
        cells = summarise(self.rows)
        for family in dict.fromkeys(cell.kernel for cell in cells):
            best = max((c for c in cells if c.kernel == family), key=_mean)
            own = [c for c in cells if (c.label, c.rank) == (best.label, best.rank)]
            yield best, {cell.penalty: _mean(cell) for cell in own}


def _was_worse(
    cell: Cell, values: Sequence[float], sizes: FoldSizes, earlier: Sequence[Row]
) -> bool:
    """Whether the first of some values of C was surely worse than a cell's on the last sample.

    What is surely worse on some thousand samples is rarely the best on all.
    """
    last = max((row.sample or 0 for row in earlier), default=0)
    scores = {
        penalty: [row.score for row in rows]
        for point, rows in rows_by_point(r for r in earlier if r.sample == last).items()
        if point.label == cell.label
        for penalty in [point.penalty]
    }
    nearest = min(values, key=lambda value: abs(math.log(value / cell.penalty)))
    if not {nearest, cell.penalty} <= scores.keys():
        return False
    return sizes.paired(scores[cell.penalty], scores[nearest]).is_sure


def rows_of(tried: Sequence[TriedKernel]) -> list[Row]:
    """Rows of all kernels."""
    return [row for one in tried for row in one.cells.rows]


def _mean(cell: Cell) -> float:
    """Mean score of a cell whose fits converged; else less than any."""
    return cell.mean if cell.converged else -np.inf
