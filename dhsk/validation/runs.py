"""A grid under one map or two: which kernels run under which, and their engines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dhsk.costs import FEW
from dhsk.errors import InputError
from dhsk.gram.derive import product_kernel
from dhsk.kernels import CosineKernel, Kernel
from dhsk.objects.places import Place
from dhsk.results.columns import CLR, MAP_OF, Row, prefix_under, rows_by_point, summarise
from dhsk.results.decision import highest
from dhsk.results.low_rank import LowRank
from dhsk.samples import Samples, SphereMap, Vectorizer, ZeroRule
from dhsk.samples.looks import (
    are_compositions,
    differ_in_depth,
    first_rows,
    has_few_zeros,
    map_by_looks,
    may_be_measured,
)
from dhsk.samples.weighted import LEARNT, SCALED, TFIDF, MapName, fixed_map, parse_map_name
from dhsk.validation.disk import DiskNeed, disk_need
from dhsk.validation.engine import CvOptions, Engine, TriedKernel
from dhsk.validation.exact import ExactEngine
from dhsk.validation.grid import Grid
from dhsk.validation.input import Square
from dhsk.validation.low_rank import LowRankEngine
from dhsk.validation.matrices import KernelMatrices, keeps_rows
from dhsk.validation.result import write_rows
from dhsk.validation.stages import Finalist, Stages, Wanted, rows_of
from dhsk.validation.weighted import WeightedEngine

KernelsOn = Callable[[Square, SphereMap | None], list[Kernel]]
"""Kernels to try first on samples under a map."""

Run = tuple[Stages, list[Kernel]]
"""Stages of a grid under one map, and the kernels to try first."""


@dataclass(frozen=True)
class Maps:
    """Maps of a grid."""

    fixed: SphereMap | None
    """Map without weights for the spherical kernels; None for their own."""
    plain: bool
    """Whether spherical kernels run under it."""
    learnt: MapName | None
    """Map whose weights each fold learns, under which kernels run too: spherical ones under tf-idf,
    others on scaled columns."""
    unasked: bool = False
    """Whether tf-idf or log-ratios were not asked for, but are what is usually done: only the
    cosine kernel is tried under them then, whose products are those of the habit's linear SVM."""
    ratios: bool = False
    """Whether spherical kernels run on centred log-ratios beside."""

    @classmethod
    def of(cls, sphere_map: object, square: Square, *, default: bool) -> "Maps":
        """Check the name of the map; InputError if it cannot be used with the input.

        A `default` search tries tf-idf of texts too, and of sparse counts whose totals differ as
        those of texts do, log-ratios of few dense compositions, and scaled columns of tables that
        may be measurements. Columns that surely have other units are scaled alone, and of
        embeddings directions are taken.
        """
        if sphere_map is None and default:
            sphere_map = map_by_looks(square) if isinstance(square, Samples) else None
        if sphere_map is None and default:
            texts = isinstance(square, Samples) and _of_words(square)
            ratios = isinstance(square, Samples) and _few_compositions(square)
            table = isinstance(square, Samples) and _is_table(square)
            learnt = TFIDF if texts else SCALED if table else None
            return cls(None, plain=True, learnt=learnt, unasked=texts or ratios, ratios=ratios)
        both = isinstance(sphere_map, str) and sphere_map == "auto"
        name = None if sphere_map is None or both else parse_map_name(sphere_map)
        learnt = TFIDF if both else name if name in LEARNT else None
        if learnt and not isinstance(square, Samples):
            raise InputError(
                f"sphere_map={sphere_map!r} weighs features anew in every fold: give samples, not "
                "a matrix"
            )
        ratios = both and isinstance(square, Samples) and has_few_zeros(square)
        plain = name not in LEARNT
        return cls(fixed_map(name) if plain else None, plain, learnt, ratios=ratios)


def _is_table(samples: Samples) -> bool:
    """Whether samples may be measurements, such as ages and grades, that are whole numbers."""
    return samples.vectorizer is None and may_be_measured(first_rows(samples))


def _of_words(samples: Samples) -> bool:
    """Whether samples are texts, or counts like those of their words."""
    if isinstance(samples.vectorizer, Vectorizer):
        return True
    if samples.vectorizer is not None or not samples.is_sparse or has_few_zeros(samples):
        return False
    return differ_in_depth(first_rows(samples))


def _few_compositions(samples: Samples) -> bool:
    """Whether log-ratios of samples are worth a try unasked: tables of microbes are short."""
    few = has_few_zeros(samples) and samples.shape[0] < FEW
    return few and are_compositions(first_rows(samples))


@dataclass(frozen=True)
class EngineMaker:
    """Makes engines, exact or of low rank."""

    zero_rows: ZeroRule
    low_rank: LowRank | None
    options: CvOptions

    def within_disk(self, square: Square, matrices: int) -> tuple["EngineMaker", DiskNeed]:
        """The same with the decision whether products are stored, and the disk of all of them."""
        if self.low_rank is not None or not isinstance(square, Samples):
            return self, DiskNeed(0, 0, fits=True)
        need = disk_need(square, matrices, self.options)
        self.options.report.expect_matrices(matrices, stored=need.fits)
        return replace(self, options=replace(self.options, stores_fit=need.fits)), need

    def make(
        self,
        square: Square,
        sphere_map: SphereMap | None,
        grid: Grid,
        n_kernels: int,
        folder: str | None = None,
    ) -> Engine:
        """Engine of samples under a map; `folder` of products is one in that of the options."""
        options = self.options
        if folder is not None:
            assert options.store is not None  # `cross_validate` makes a temporary one
            options = replace(options, store=options.store / folder, table=None)
        if self.low_rank is not None:
            return LowRankEngine(square, sphere_map, self.zero_rows, self.low_rank, grid, options)
        on_rows = keeps_rows(square, grid, options)
        matrices = KernelMatrices(square, sphere_map, self.zero_rows, options, on_rows=on_rows)
        return ExactEngine(matrices, n_kernels, grid, options)


def make_runs(
    maps: Maps, square: Square, grid: Grid, kernels_on: KernelsOn, maker: EngineMaker
) -> "Runs":
    """Stages under each map, and their kernels; those that are not spherical run once."""
    told, on_rows = maker.options.report, keeps_rows(square, grid, maker.options)
    told.begin(grid, None if maker.low_rank is None else maker.low_rank.ranks)
    plain = kernels_on(square, maps.fixed) if maps.plain else []
    weighed: list[Kernel] = []
    ratios: list[Kernel] = []

    def beside(samples: Square, sphere_map: SphereMap | None) -> list[Kernel]:
        return [CosineKernel()] if maps.unasked else kernels_on(samples, sphere_map)

    def make(samples: Samples, own: Grid, folder: str) -> Engine:
        return sized.make(samples, fixed_map(maps.learnt), own, 1, folder)

    if maps.learnt:
        assert isinstance(square, Samples)  # `Maps.of` has seen to it
        weighted = WeightedEngine(square, grid, make, told, maps.learnt)
        if not maps.plain:  # or they are refused
            weighted.warn()
        kernels = kernels_on if maps.learnt == SCALED else beside
        own = kernels(weighted.samples, fixed_map(maps.learnt))
        weighed, others = _divided(own, maps.learnt)
        prefix = prefix_under(maps.learnt)
        plain = plain if maps.plain else others
    if maps.ratios:
        ratios = [kernel for kernel in beside(square, MAP_OF[CLR]) if kernel.spherical]
    each = len(grid.folds) + 1  # and one of all samples, for the model
    once = sum(_products(some, on_rows=on_rows) for some in (plain, ratios))
    sized, disk = maker.within_disk(square, once + each * _products(weighed, on_rows=on_rows))
    runs: list[Run] = []
    if maps.plain or plain:  # a matrix of the user's own has no kernels
        engine = sized.make(square, maps.fixed, grid, len(plain))
        runs.append((Stages(engine, square, grid, told), plain))
    if weighed:
        runs.append((Stages(weighted, square, grid, told, prefix), weighed))
    if ratios:
        engine = sized.make(square, MAP_OF[CLR], grid, len(ratios), MAP_OF[CLR])
        runs.append((Stages(engine, square, grid, told, CLR), ratios))
    return Runs(runs, disk, maker.options.table, maker.options.earlier)


def _divided(kernels: Sequence[Kernel], learnt: MapName) -> tuple[list[Kernel], list[Kernel]]:
    """Kernels that run under a map that is learnt, and those that run on samples as they are.

    Raises InputError for spherical ones on scaled columns.
    """
    spherical = [kernel for kernel in kernels if kernel.spherical]
    others = [kernel for kernel in kernels if not kernel.spherical]
    if learnt == TFIDF:
        return spherical, others
    if spherical:
        raise InputError(
            f"the map {learnt!r} is for kernels of columns, and {spherical[0].label} is none: take "
            "gaussian, linear or polynomial ones, or another map"
        )
    return others, []


def _products(kernels: Sequence[Kernel], *, on_rows: bool) -> int:
    """Number of matrices of products; linear kernels that are solved `on_rows` need none."""
    return len({product_kernel(kernel) for kernel in kernels if not (on_rows and kernel.bilinear)})


@dataclass(frozen=True, eq=False)
class Runs:
    """All runs of a grid, one after the other."""

    runs: Sequence[Run]
    disk: DiskNeed
    """Disk of all products."""
    table: Place | None
    """File for all rows, if there are several runs: the engine writes those of one."""
    earlier: tuple[Row, ...] = ()
    """Rows of earlier rounds of a search, which the table has too."""

    def run(self, *, look: bool) -> None:
        """Try everything; rows of several runs are written to a table together."""
        wanted = [Wanted(kernels, look) for _, kernels in self.runs]
        later = [len(own.kernels) + own.searched for own in wanted]
        for number, (stages, _) in enumerate(self.runs):
            stages.run(replace(wanted[number], later=sum(later[number + 1 :])))
        self._write()

    def finish(self, finalists: Mapping[str, Sequence[Finalist]], why: str) -> None:
        """Try kernels at values of C of their own, by the prefix of their map."""
        own = [(stages, finalists.get(stages.prefix, ())) for stages, _ in self.runs]
        for number, (stages, some) in enumerate(own):
            others = own[number + 1 :]
            wanted = Wanted(
                [one.kernel for one in some],
                look=False,
                later=sum(len(finals) for _, finals in others),
                later_columns=sum(other.columns_of(finals) for other, finals in others),
            )
            stages.finish(some, wanted, why)
        self._write()

    def extend(self) -> None:
        """Try larger or smaller C, in units of the spread, while that pays."""
        for stages, _ in self.runs:
            rows = rows_of(self.tried)
            best = rows_by_point(rows)[highest(summarise(rows)).point]
            stages.extend(Wanted([], look=False), best, self.earlier)
        self._write()

    def _write(self) -> None:
        """Write the rows of several runs together; those of one are written by its engine."""
        if self.table is not None and any(stages.prefix for stages, _ in self.runs):
            write_rows([*rows_of(self.tried), *self.earlier], self.table)

    @property
    def tried(self) -> list[TriedKernel]:
        """Results of all kernels."""
        return [one for stages, _ in self.runs for one in stages.tried]

    @property
    def prepared(self) -> float:
        """Seconds spent on Gram matrices, or on landmarks and features."""
        return sum(stages.engine.prepared for stages, _ in self.runs)

    @property
    def search(self) -> dict[str, Any]:
        """What the results say of the search."""
        return {
            "search": tuple(stage for stages, _ in self.runs for stage in stages.stages),
            "search_ended": "; ".join(stages.ended for stages, _ in self.runs if stages.ended),
        }

    def engine_of(self, winner: TriedKernel) -> Engine:
        """Engine that tried a kernel."""
        return next(
            stages.engine for stages, _ in self.runs if any(one is winner for one in stages.tried)
        )
