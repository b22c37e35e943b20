"""Cross-validation on features of low rank: every kernel at every rank, all folds and C at once."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from math import ceil
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import own_room
from dhsk.execution.memory import Share
from dhsk.execution.run import Run
from dhsk.gram.prepare import Data, check_kernels, takes_float32
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel
from dhsk.linear.features import sum_of
from dhsk.linear.losses import LOSSES, check_factors
from dhsk.linear.passes import sums
from dhsk.models.low_rank import LowRankModel
from dhsk.models.low_rank_plan import plan_low_rank
from dhsk.models.sources import RowsShape
from dhsk.models.train_low_rank import train_low_rank
from dhsk.nystrom.approximation import PREFIX as LANDMARKS
from dhsk.nystrom.approximation import Approximation, approximate
from dhsk.nystrom.room import computed_on_device
from dhsk.progress import OnProgress
from dhsk.results.columns import Certificate, Row
from dhsk.results.low_rank import SELECTIONS, LowRank
from dhsk.results.parts import RunFacts, SamplesSummary
from dhsk.run_progress import RunProgress
from dhsk.samples import Samples, SphereMap, ZeroRows, ZeroRule
from dhsk.samples.scan import Scan
from dhsk.solvers.problems import MultiClass, positives
from dhsk.validation.cells import Cells, names_of
from dhsk.validation.engine import CvOptions, Needs, TriedKernel
from dhsk.validation.fold_fits import FoldFits
from dhsk.validation.grid import Grid
from dhsk.validation.grid_progress import FITS
from dhsk.validation.input import Square
from dhsk.validation.result import remove_rows, write_rows
from dhsk.validation.search import scaled


def checked(low_rank: LowRank | None, square: Square) -> LowRank | None:
    """Check parameters of low rank, and return them with ascending ranks in a tuple.

    None stays None, for exact classifiers. InputError if a parameter cannot be used, or if `square`
    is a matrix.
    """
    if low_rank is None:
        return None
    if not isinstance(low_rank, LowRank):
        raise InputError(f"low_rank must be a dhsk.LowRank, got {low_rank!r}")
    if not isinstance(square, Samples):
        raise InputError("low_rank chooses landmarks among samples: give samples, not a matrix")
    if not low_rank.method:
        raise InputError(f"selection must be one of {', '.join(SELECTIONS)}, not indices")
    return low_rank.checked()


class LowRankEngine:
    """Fits linear classifiers on Nyström features; see `dhsk.validation.engine.Engine`.

    `sphere_map` is for the spherical kernels.
    """

    def __init__(
        self,
        samples: Square,
        sphere_map: SphereMap | None,
        zero_rows: ZeroRule,
        low_rank: LowRank,
        grid: Grid,
        options: CvOptions,
    ) -> None:
        assert isinstance(samples, Samples)  # `checked` has seen to it
        self.prepared = 0.0
        self._samples = samples
        self._map = sphere_map
        self._zero_rows = ZeroRows(zero_rows)
        self._low_rank = low_rank
        self._grid = grid
        self._options = options
        self._kept = Checkpoint(options.journal)
        self._seed = low_rank.random_state
        self._scan: Scan | None = None
        self._checked: set[SphereMap] = set()
        self._rows: list[Row] = []
        self._plan: list[tuple[str, str]] = []
        check_factors(grid.C, grid.weights)
        self._stale = options.table  # of an earlier grid; it stays if the samples are refused

    def needs(self, kernels: Sequence[Kernel]) -> Needs:
        """Memory at the largest rank, on workers about that of this process and theirs."""
        plan = self._plan_of(self._row_map(kernels[0]), self._low_rank.largest)
        features = plan.need.parts["features"] if plan.whole else 0
        return Needs(plan.need.total, stored=False, features=features)

    def relative_work(self, kernel: Kernel) -> float:
        """Every kernel takes about the same time."""
        del kernel
        return 1.0

    def run(self, kernels: Sequence[Kernel], grid: Grid) -> Sequence[TriedKernel]:
        """Try some kernels, each at every rank."""
        begin, told = perf_counter(), self._options.report
        for sphere_map in {self._row_map(kernel).sphere_map for kernel in kernels} - self._checked:
            own = [kernel for kernel in kernels if self._row_map(kernel).sphere_map == sphere_map]
            before = self._zero_rows.count
            data = Data([self._samples], own, sphere_map, self._zero_rows)
            (self._scan,) = data.scan(self._options)
            if not before:
                self._zero_rows.warn(self._samples.source, self._samples.shape[0])
            self._checked.add(sphere_map)
        assert self._scan is not None  # there is a kernel
        self.prepared += perf_counter() - begin
        remove_rows(self._stale)
        self._stale = None
        found = []
        for kernel in kernels:
            for rank in self._low_rank.ranks:
                told.trying(names_of(kernel, self._samples.shape[1]).label, f", rank {rank}")
                with told.part(FITS, grid.columns):
                    found.append(self._try(kernel, rank, self._scan.fingerprint, grid))
                told.scored(found[-1].cells.rows)
                self._rows += found[-1].cells.rows
                if self._options.table is not None:
                    write_rows([*self._rows, *self._options.earlier], self._options.table)
        return found

    def _row_map(self, kernel: Kernel | None) -> RowMap:
        """Map of a kernel's samples: the one of the user if the kernel is spherical."""
        assert kernel is not None  # of samples
        wanted = self._map if kernel.spherical else "identity"
        dtype = "float32" if takes_float32(kernel) else "float64"
        chosen = check_kernels([kernel], [self._samples], wanted, dtype)
        return RowMap(kernel, chosen, dtype, self._zero_rows)

    def _try(self, kernel: Kernel, rank: int, fingerprint: str, grid: Grid) -> TriedKernel:
        """Results of one kernel at one rank, from a checkpoint if there is one."""
        row_map = self._row_map(kernel)
        how = asdict(replace(self._low_rank, rank=rank))
        how |= {"seed": self._seed, "dtype": row_map.dtype}
        key = [kernel.to_spec(), fingerprint, row_map.sphere_map, how]
        folds = [test.tolist() for _, test in grid.folds]
        rest = [folds, grid.tol, grid.scoring.key, grid.C, grid.in_spreads]
        weights = np.vstack([grid.all_weights, grid.weights])
        name = digest_of("low rank 2", key, grid.y, weights, *rest)
        kept = self._kept.get(name, lambda kept: (Cells.of_entry(kept), kept["rest"]))
        if kept is None:
            fits = self._kept.within(f"{name}-")
            cells, entry = self._fit(row_map, rank, grid, fits)
            self._kept.put(name, *cells.entry(entry))
            fits.remove()
            Checkpoint(self._options.journal, LANDMARKS).remove()
        else:
            cells, entry = kept
        return TriedKernel(kernel, entry["C"], cells, rank, entry["trace"])

    def _fit(
        self, row_map: RowMap, rank: int, grid: Grid, kept: Checkpoint
    ) -> tuple[Cells, dict[str, Any]]:
        """Fit all folds and C of a kernel; return what its checkpoint holds beside the cells.

        `kept` is for this kernel, this rank, and these folds and C.
        """
        begin, run = perf_counter(), RunProgress(self._options.report, approximation=1, training=1)
        here, limit = self._options.client is None, self._options.memory
        plan = self._plan_of(row_map, rank) if here else None
        with run.part("approximation", 1.0):
            made = self._approximate(row_map, rank, plan, run)
        if grid.in_spreads:
            grid = grid.divided(scaled(grid.C, _spread(made, len(grid.y))))
        check_factors(grid.C, grid.weights)
        self.prepared += perf_counter() - begin
        names = names_of(row_map.kernel, self._samples.shape[1])
        names = replace(names, rank=rank, trace_error=made.trace_error)
        fits = FoldFits(
            Z=made.features,
            grid=grid,
            loss=LOSSES[self._low_rank.loss],
            room=kept.first("room", lambda: own_room(limit) if plan is None else plan.room),
            seed=self._seed,
            threads=made.plan.at_once,
            run=run,
            entries=kept,
        )
        return fits.cells(names), {"C": grid.C, "trace": made.trace}

    def _plan_of(self, row_map: RowMap, rank: int) -> Share:
        """Memory of this process, and of workers."""
        grid, n = self._grid, self._samples.shape[0]
        m = replace(self._low_rank, rank=rank).count(n)
        return plan_low_rank(
            RowsShape.of_samples(self._samples, row_map.dtype),
            m,
            len(positives(len(grid.classes))) * len(grid.C),
            self._options.allowance,
            len(grid.folds),
            on_device=computed_on_device(self._samples, row_map, m),
        )

    def _approximate(
        self, row_map: RowMap, rank: int, plan: Share | None, report: OnProgress
    ) -> Approximation:
        how = replace(self._low_rank, rank=rank)
        run: Run = self._options
        run = replace(run, report=report)
        mark = None if self._scan is None else self._scan.fingerprint
        made = approximate(
            self._samples, row_map, how, run, plan, seed=self._seed, fingerprint=mark
        )
        self._plan = [("features", made.tier)]
        if plan is not None:
            self._plan.append(("memory", plan.need.words))
        return made

    def refit(
        self, winner: TriedKernel, C: float, multi_class: MultiClass
    ) -> tuple[LowRankModel, Certificate]:
        """Fit one cell on all samples; the same seed chooses the same landmarks."""
        del multi_class  # always of each class against the rest
        begin, grid = perf_counter(), self._grid
        row_map = self._row_map(winner.kernel)
        assert winner.rank is not None  # cells of low rank have one
        how = replace(self._low_rank, rank=winner.rank)
        problem = grid.problem(C)
        model = train_low_rank(problem, self._samples, row_map, how, self._options, seed=self._seed)
        found = model.certificates
        return model, Certificate(
            seconds=perf_counter() - begin,
            converged=bool(found.converged.all()),
            n_iter=found.steps,
            gap=float((found.gap / found.objective).max()),
            n_features=found.width,
            gradient=float(found.relative.max()),
        )

    def among(self, winner: TriedKernel, members: Indices) -> NDArray[Any]:
        """Values of the winner's kernel among some samples, which are read once more."""
        row_map = self._row_map(winner.kernel)
        return row_map.kernel.of_rows(row_map.some_of(self._samples, members))

    def facts(self, winner: TriedKernel) -> RunFacts:
        """Samples, plan and trace; no eigenvalues are computed."""
        assert self._scan is not None  # `run` was called
        sphere_map = self._row_map(winner.kernel).sphere_map
        samples = SamplesSummary(
            source=self._samples.source,
            n_samples=self._scan.n_samples,
            dim=self._scan.dim,
            nnz=self._scan.nnz,
            zero_rows=0 if sphere_map == "identity" else self._zero_rows.count,
            sphere_map=str(sphere_map),
            fingerprint=self._scan.fingerprint,
        )
        n, times = self._scan.n_samples, self._low_rank.oversampling
        landmarks = ", ".join(f"{ceil(min(n, times * k)):,}" for k in self._low_rank.ranks)
        plan = (("landmarks", f"{landmarks}, by {self._low_rank.selection}"), *self._plan)
        return RunFacts(samples=samples, plan=plan, trace=winner.trace)


def _spread(made: Approximation, n: int) -> float:
    """Mean squared distance of the features from their mean, see `search.spread_of`."""
    total = sum_of(made.features.map(sums, ()))
    mean = made.features.back(np.append(total, 0.0)[:, None])[:-1, 0] / n
    diagonal = made.trace / n
    return max(diagonal - float(mean @ mean), 1e-12 * diagonal)
