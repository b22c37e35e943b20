"""Engine that fits exact classifiers on the kernels of a grid."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.errors import BudgetError, InputError
from dhsk.execution.checkpoint import NOWHERE, Checkpoint, digest_of
from dhsk.execution.memory import Share
from dhsk.execution.tasks import Executor
from dhsk.execution.threads import Threads
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.plan import make_plan
from dhsk.gram.row_map import RowMap
from dhsk.gram.sides import GramSides
from dhsk.kernels import Kernel
from dhsk.models.base import training_notes
from dhsk.models.class_blocks import ClassBlocks
from dhsk.models.exact_checkpoint import drop_share, kept_share, progress_of
from dhsk.models.fit_plan import FitCounts, plan_fits
from dhsk.models.gram_source import GramSource
from dhsk.models.pair_fits import DECISIONS, PairSolver
from dhsk.models.pair_tasks import MatrixProblem, PairFits
from dhsk.models.train_exact import fit_model
from dhsk.objects.places import Place
from dhsk.results.columns import Certificate, Row
from dhsk.results.parts import RunFacts
from dhsk.samples import Samples, parse_sphere_map
from dhsk.solvers.ball import balls_about_few
from dhsk.solvers.decomposition import RoundWatch
from dhsk.solvers.eigenvalues import SMALL, leading_eigenvalues
from dhsk.solvers.pairs import Way
from dhsk.solvers.problems import REST, MultiClass, members_of_classes
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.together import PREFIX
from dhsk.validation.cells import Cells, certificate, rows_of_kernel
from dhsk.validation.engine import NO_MODEL, CvOptions, Needs, TriedKernel
from dhsk.validation.grid import Grid
from dhsk.validation.grid_progress import EIGENVALUES, FITS, PRODUCTS
from dhsk.validation.input import describe, gram_plan
from dhsk.validation.kernel_fits import (
    ROWS_WORK,
    KernelFits,
    groups_of,
    in_units,
    name_of,
    steepness,
)
from dhsk.validation.matrices import KernelMatrices, KernelMatrix
from dhsk.validation.result import remove_rows, write_rows
from dhsk.validation.search import SPREAD_COLUMNS, scaled, spread_of

LEFT_OUT: Final = (
    "eigenvalues",
    "left out: they need the whole matrix, of which only columns of support vectors were computed. "
    "The balls of the VC bounds are about means of few samples, so these are larger upper bounds",
)
"""Row of the plan of a grid on working sets."""

NOT_ASKED: Final = (
    "eigenvalues",
    f"not asked for: of more than {SMALL:,} samples they take passes over the matrix; "
    "--eigenvalues computes them (in Python Output(eigenvalues=True))",
)
"""Row of the plan of a grid of many samples."""


class ExactEngine:
    """Fits exact classifiers on Gram matrices; see `Engine`.

    `run` tries `n_kernels` kernels first; they share the memory.
    """

    def __init__(
        self, matrices: KernelMatrices, n_kernels: int, grid: Grid, options: CvOptions
    ) -> None:
        self.prepared = 0.0
        self._matrices = matrices
        self._grid = grid
        self._options = options
        self._resources = options.resources
        self._kept = Checkpoint(options.journal)
        self._rows: list[Row] = []
        self._blocks: dict[tuple[Place, Kernel], ClassBlocks] = {}
        self._stale = options.table  # of an earlier grid; it stays if the samples are refused
        tests = [test.tolist() for _, test in grid.folds]
        self._name = name_of(grid, grid.weights, tests)
        square = matrices.square
        dtype = np.dtype(np.float64) if isinstance(square, Samples) else square.dtype
        # The last way has the largest matrices.
        counts = FitCounts.of(grid.y, len(grid.weights), len(grid.C), grid.ways[-1])
        self._way: Way | None = None
        self._layout = ""
        self._plan = self._plan_of(counts, dtype, max(1, n_kernels))
        self._plan_on_rows = self._plan

    def _plan_of(self, counts: FitCounts, dtype: "np.dtype[Any]", n_kernels: int) -> Share:
        """Plan of the fits of the grid; it decides whether they are solved on working sets."""
        square = self._matrices.square
        given = isinstance(square, GramMatrix) and square.computed
        may_compute = self._options.on_demand and isinstance(square, Samples)
        whole, refused = None, None
        try:
            plan = plan_fits(counts, dtype, n_kernels, self._resources)
            if not (given or may_compute):
                return plan
            if plan.whole and (given or self._options.stores_fit):
                whole = plan
        except BudgetError as error:
            if not (given or may_compute):
                raise
            refused = error
        # Fewer whole matrices than cores leave some of these idle, while working sets use all.
        tasks = min(self._resources.threads, counts.pairs * counts.folds)
        if whole is not None and (given or whole.at_once >= tasks):
            return whole
        try:
            plan = plan_fits(counts, dtype, n_kernels, self._resources, "working sets")
        except BudgetError as error:  # few samples need less as whole matrices
            if whole is not None:
                return whole
            raise min(filter(None, (refused, error)), key=lambda one: one.needed) from None
        self._way = "working sets"
        if may_compute:
            self._matrices.compute_on_demand()
            self._options.report.expect_no_products()
        return plan

    def needs(self, kernels: Sequence[Kernel]) -> Needs:
        """Memory of products or of fits, which come one after the other."""
        memory, square = self._plan.need.total, self._matrices.square
        given = not isinstance(square, Samples)
        if isinstance(square, Samples):
            plan = make_plan(GramSides.of([square]), self._resources)
            memory = max(memory, plan.peak_bytes)
        stored = not given and any(map(self._matrices.stores, kernels))
        return Needs(memory, stored=stored)

    def relative_work(self, kernel: Kernel) -> float:
        """Less than 1 for linear kernels whose rows are in memory."""
        return ROWS_WORK if self._matrices.has_rows(kernel) else 1.0

    def run(self, kernels: Sequence[Kernel], grid: Grid) -> Sequence[TriedKernel]:
        """Try some kernels, or the precomputed matrix if there is one."""
        begin = perf_counter()
        for kernel in self._matrices.lacking(kernels):
            self._options.report.preparing()
            with self._options.report.part(PRODUCTS, 1.0):
                self._matrices.gram(kernel)
        matrices = self._matrices.of(kernels)
        self.prepared += perf_counter() - begin
        remove_rows(self._stale)
        self._stale = None
        problems = [self._problem(one, grid) for one in matrices]
        found: dict[int, Cells] = {}
        before = self._rows
        C_scaled = grid.C if grid.in_spreads else None
        for way, some in product(grid.ways, groups_of(problems)):
            own = [matrices[k] for k in some], [problems[k] for k in some]
            for number, cells in self._cells(KernelFits(way, *own, C_scaled, len(grid.ways))):
                k = some[number]
                found[k] = found[k].with_more(cells) if k in found else cells
                self._options.report.scored(cells.rows)
                self._rows = [*before, *(row for k in sorted(found) for row in found[k].rows)]
                if self._options.table is not None:
                    write_rows([*self._rows, *self._options.earlier], self._options.table)
        tried: list[Kernel | None] = [*kernels] or [None]
        return [TriedKernel(tried[k], list(one.C), found[k]) for k, one in enumerate(problems)]

    def _problem(self, matrix: KernelMatrix, grid: Grid) -> MatrixProblem:
        """Dual problem of a kernel: its matrix in units, and its values of C."""
        problem = in_units(matrix, grid.C)
        if grid.in_spreads:
            columns = SPREAD_COLUMNS if self._way or matrix.on_rows else None
            with self._options.report.reading_values():
                spread = problem.unit * spread_of(problem.source, columns)
            grid = grid.divided(scaled(grid.C, spread))
            problem = replace(problem, C=tuple(grid.C))
        name = self._problem_name(self._name, problem, matrix, grid.C_scaled)
        return replace(problem, name=name)

    def _problem_name(
        self,
        grid: str,
        problem: MatrixProblem,
        matrix: KernelMatrix,
        C_scaled: Sequence[float] | None,
    ) -> str:
        """Name of a problem in checkpoints."""
        how = ["on working sets"] if self._way or matrix.on_rows else []
        return digest_of(grid, list(problem.C), C_scaled, problem.unit, matrix.key, *how)

    def _cells(self, fits: KernelFits) -> Iterator[tuple[int, Cells]]:
        """Results of each kernel, by its number: from a checkpoint, or fitted and scored."""
        matrices, problems = fits.matrices, fits.named_problems
        solver, missing = self._solver(self._grid.weights, fits), []
        columns, told = self._grid.at(problems[0].C).columns, self._options.report
        for k, problem in enumerate(problems):
            kept = self._kept.get(problem.name, Cells.of_entry)
            if kept is None:
                missing.append(k)
            else:
                told.trying(fits.names(k).label)
                yield k, kept
        found = (len(problems) - len(missing)) * columns
        told.advance(DECISIONS, found / fits.ways, found=True)
        work = self._grid.work_of(fits.way) * (ROWS_WORK if fits.on_rows else 1.0)
        told.advance(FITS, found * work, found=True)
        missing.sort(key=lambda k: steepness(matrices[k]))
        # Not of the solver: in a cycle it would keep what workers hold until garbage is collected.
        each = columns * solver.n_pairs
        solver.on_fits = self._counted(
            [fits.names(k).label for k in missing], each, columns * work / each
        )
        with told.part(FITS, span=columns * work):
            for k, solved in solver.solved(missing):
                with told.part(DECISIONS, columns / fits.ways):
                    cells = self._scored(solver, k, solved, fits)
                self._kept.put(problems[k].name, *cells.entry())
                solver.forget(k)  # the rows take the place of the fits
                yield k, cells
        self._forget_layout()

    def _forget_layout(self) -> None:
        """Delete the memory that the first call had for its working sets from the checkpoint."""
        drop_share(Checkpoint(self._options.journal, PREFIX), self._layout)

    def _counted(
        self, labels: Sequence[str], each: int, work: float
    ) -> Callable[[int, bool], None]:
        """Function that is told of finished fits: it says which kernel, of `each` fits, is next.

        `work` is that of a fit.
        """
        told, done, order = self._options.report, 0, list(labels)
        if order:
            told.trying(order[0])

        def advance(count: int, found: bool) -> None:
            nonlocal done
            done += count
            told.advance(FITS, count * work, found=found)
            told.trying(order[min(done // each, len(order) - 1)])

        return advance

    def _scored(self, solver: PairSolver, k: int, solved: PairFits, fits: KernelFits) -> Cells:
        """Score the fits of a kernel on the samples that each fold holds out."""
        grid = replace(self._grid, C=list(solver.problems[k].C), C_scaled=fits.C_scaled)
        decisions = solver.held_out(k, solved, [test for _, test in grid.folds])
        solved = self._with_balls(solver, k, solved)
        return rows_of_kernel(decisions, grid, solver.pairs(k), solved, fits.names(k))

    def _solver(self, weights: Floats, fits: KernelFits) -> PairSolver:
        """Solver of all problems on some matrices."""
        problems = fits.named_problems
        source, y = problems[0].source, self._grid.y
        counts = FitCounts.of(y, len(weights), len(problems[0].C), fits.way)
        way = "coordinates" if fits.on_rows else self._way
        plan = plan_fits(counts, source.dtype, len(problems), self._resources, way)
        balls = way is None
        if fits.on_rows:
            self._plan_on_rows = plan
        local = isinstance(source, ArraySource)  # workers would be sent the matrix
        executor: Executor = Threads(plan.at_once, plan.at_once if plan.shared else None)
        if not local:
            executor = self._options.executor(plan.window)
        entries = Checkpoint(self._options.journal, PREFIX)
        if not balls:  # the largest sets decide last bits: they are those of the first call
            self._layout = digest_of([one.name for one in problems], self._options.memory)
            plan = kept_share(entries, self._layout, plan)
        if plan.held:
            problems = [self._held(problem) for problem in problems]
        return PairSolver(
            y,
            weights,
            self._grid.tol,
            problems,
            executor,
            plan,
            self._kept if self._options.keeps_fits else NOWHERE,
            balls=balls,
            multi_class=fits.way,
            told=self._options.report,
            watch=RoundWatch(
                lambda one: self._options.report(progress_of(one, source.n)),
                entries,
            ),
        )

    def _with_balls(self, solver: PairSolver, k: int, fits: PairFits) -> PairFits:
        """The same fits, with balls from few columns if the whole matrix is not computed."""
        if solver.balls:
            return fits
        classes, pairs = members_of_classes(self._grid.y), solver.pairs(k)
        every = range(len(classes))
        groups = [every if pair.second == REST else (pair.first, pair.second) for pair in pairs]
        return replace(fits, radii2=balls_about_few(solver.problems[k].source, classes, groups))

    def _held(self, problem: MatrixProblem) -> MatrixProblem:
        """The same problem, with the stored values of its matrix in memory, if there are any."""
        source = problem.source
        if not isinstance(source, GramSource):
            return problem
        stored = source.G.stored()
        if stored is None:
            return problem
        key = stored.path, stored.kernel
        if key not in self._blocks:
            self._blocks[key] = ClassBlocks(stored, self._grid.y)
            if self._options.client is None:
                with self._options.report.reading_values():
                    self._blocks[key].load()
        return replace(problem, source=GramSource(source.G, self._blocks[key]))

    def _matrix_of(self, tried: TriedKernel) -> KernelMatrix:
        (matrix,) = self._matrices.of([] if tried.kernel is None else [tried.kernel])
        return matrix

    def refit(
        self, winner: TriedKernel, C: float, multi_class: MultiClass
    ) -> tuple[Any, Certificate]:
        """Fit one cell on all samples; a precomputed matrix, without samples, raises InputError."""
        matrix = self._matrix_of(winner)
        if not isinstance(matrix.source, GramSource):
            raise InputError(NO_MODEL)
        G, problem = matrix.source.G, self._grid.problem(C, multi_class)
        weights, one = problem.fold_weights, in_units(matrix, [C])
        name = self._problem_name(name_of(self._grid, weights, [[]]), one, matrix, None)
        fits = KernelFits(multi_class, [matrix], [replace(one, name=name)], None, 1)
        solver = self._solver(weights, fits)
        row_map = RowMap(G.kernel, parse_sphere_map(G.sphere_map))
        model, solved = fit_model(problem, row_map, solver, G.staged_rows)
        counted = G.header.zero_rows
        model = replace(
            model,
            feature_names=G.feature_names,
            vectorizer=G.vectorizer,
            notes=training_notes(G.shape[0]),
            zero_rows=self._matrices.zero_rows,
            n_zero_rows=counted[0] if counted else 0,
        )
        solver.forget_rounds()
        self._forget_layout()
        return model, certificate(solver.pairs(), self._with_balls(solver, 0, solved), 0)

    def among(self, winner: TriedKernel, members: Indices) -> NDArray[Any]:
        """Values of the winner's kernel among some samples."""
        return self._matrix_of(winner).source.block(members)[:, : len(members)]

    def facts(self, winner: TriedKernel) -> RunFacts:
        """Samples, plan, leading eigenvalues and trace of the winner's matrix."""
        matrix, made = self._matrix_of(winner), self._matrices.made
        source, plan = matrix.source, self._plan_on_rows if matrix.on_rows else self._plan
        values, exact = np.empty(0), False
        gram = gram_plan(made or self._matrices.square, self._resources)
        if self._way is not None:
            gram = [(what, value) for what, value in gram if what in ("matrix", "on disk")]
            gram.append(LEFT_OUT)
        elif self._options.eigenvalues is None and source.n > SMALL:
            gram = [*gram, NOT_ASKED]
        elif self._options.eigenvalues is not False:
            self._options.report.what = EIGENVALUES
            with self._options.report.part(EIGENVALUES, 1.0):
                values, exact = leading_eigenvalues(source)
        return RunFacts(
            samples=describe(self._matrices.square, made),
            plan=tuple((what, value) for what, value in (*gram, *plan.table)),
            eigenvalues=tuple(values.tolist()),
            eigenvalues_exact=exact,
            trace=float(source.diagonal().sum()),
        )
