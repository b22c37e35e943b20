"""Training of a low-rank classifier: features first, then all columns together."""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dhsk.arrays import Floats, blocks
from dhsk.errors import BudgetError, InputError
from dhsk.execution.checkpoint import digest_of
from dhsk.execution.limits import own_room
from dhsk.execution.run import Run
from dhsk.gram.prepare import check_kernels
from dhsk.gram.row_map import RowMap
from dhsk.linear.checkpoint import NewtonCheckpoint
from dhsk.linear.losses import LOSSES, check_factors
from dhsk.linear.newton import Newton, Solution, Targets, curvature_bytes
from dhsk.linear.passes import Columns
from dhsk.linear.preconditioner import Factors
from dhsk.linear.warm_start import solve_columns
from dhsk.models.base import training_notes
from dhsk.models.low_rank import LowRankCertificates, LowRankModel
from dhsk.models.low_rank_plan import LowRankPlan, plan_low_rank, solver_bytes
from dhsk.models.problem import Problem
from dhsk.models.sources import RowsShape
from dhsk.nystrom.approximation import Approximation, LandmarkOptions, approximate
from dhsk.run_progress import RunProgress
from dhsk.samples import Samples
from dhsk.units import format_bytes

LossName: TypeAlias = Literal["squared_hinge", "logistic"]


@dataclass(frozen=True, eq=False)
class LowRankOptions(LandmarkOptions):
    """Options of the approximation, and the loss."""

    loss: LossName = "squared_hinge"


def train_low_rank(
    problem: Problem,
    samples: Samples,
    row_map: RowMap,
    how: LowRankOptions,
    run: Run,
) -> LowRankModel:
    """Train a one-vs-rest linear classifier on Nyström features.

    Its certificates say which columns did not converge. With a checkpoint folder in
    `run.journal`, the same call resumes after an interruption and gives the same model; the
    caller removes the folder.

    Raises InputError if samples, kernel, map and loss do not match, or a row cannot be used, and
    BudgetError if memory or disk do not suffice.
    """
    check_loss(how.loss)
    check_factors([problem.C], problem.weights)
    check_kernels([row_map.kernel], [samples], row_map.sphere_map, row_map.dtype)
    with run.told(approximation=3, training=3) as (run, told):
        plan, room = _plan(problem, samples, row_map, run, how)
        features = None if plan is None else plan.features
        with told.part("approximation", 1.0):
            found = approximate(samples, row_map, how, run, features)
        steps = _steps(problem, samples, row_map, run, how, found)
        solver = _Solver(problem, how, found, steps, told)
        solution = solver.solve(solver.room_of(room))
        model = _model(problem, row_map, how, found, solution)
    notes = training_notes(samples.shape[0], samples.source)
    notes["planned_bytes"] = None if plan is None else plan.need.total
    return replace(
        model, feature_names=samples.feature_names, vectorizer=samples.vectorizer, notes=notes
    )


def _plan(
    problem: Problem,
    samples: Samples,
    row_map: RowMap,
    run: Run,
    how: LowRankOptions,
) -> tuple[LowRankPlan | None, int]:
    """Plan of this process, None if samples are on workers, and the memory of the solver."""
    n, rows = samples.shape[0], RowsShape.of_samples(samples, row_map.dtype)
    m, keys = how.count(n), len(columns_of(problem))
    if run.client is None:
        plan = plan_low_rank(rows, m, keys, run.allowance)
        return plan, plan.solver
    return None, min(solver_bytes(n, min(m, n), rows.itemsize, keys), own_room(None) // 4)


def check_loss(loss: object) -> None:
    """Raise InputError if there is no loss of this name."""
    if not isinstance(loss, str) or loss not in get_args(LossName):
        raise InputError(
            f"loss must be {' or '.join(map(repr, get_args(LossName)))}, but it is {loss!r}; the "
            "hinge loss is that of the exact HeatSVC"
        )


def columns_of(problem: Problem) -> Columns:
    """One column for two classes, else one for each class."""
    k = len(problem.classes)
    positive = np.array([1]) if k == 2 else np.arange(k)
    return Columns(positive, np.zeros_like(positive), np.full(len(positive), problem.C))


def _steps(
    problem: Problem,
    samples: Samples,
    row_map: RowMap,
    run: Run,
    how: LowRankOptions,
    found: Approximation,
) -> NewtonCheckpoint:
    """Checkpoint of the solver, named by everything that its steps depend on."""
    if run.journal is None:
        return NewtonCheckpoint(None, "")
    kernel, sphere_map = row_map.kernel, row_map.sphere_map
    fingerprint = row_map.scan(samples, run).fingerprint
    made_from = [fingerprint, kernel.to_spec(), sphere_map, row_map.dtype]
    key: list[Any] = [*made_from, problem.C, problem.tol, how.loss, how.seed]
    return NewtonCheckpoint(run.journal, digest_of(key, problem.codes, problem.weights, found.root))


@dataclass(frozen=True)
class _Solver:
    """Solves all columns, in batches whose factors fit in memory."""

    problem: Problem
    how: LowRankOptions
    found: Approximation
    steps: NewtonCheckpoint
    told: RunProgress

    def room_of(self, left: int) -> int:
        """Memory for Hessians in bytes: that which is left, up to what all columns need.

        A resumed run takes that of its beginning, as rounding depends on it. Raises BudgetError if
        the Hessian of one column does not fit.
        """
        kept = self.steps.get(0)
        if kept is not None:
            return kept[0]
        columns, width = columns_of(self.problem), self.found.features.inner
        least = self._bytes_of(columns.only([0]))
        if left < least:
            raise BudgetError(
                f"second derivatives of {width} features take {format_bytes(least)} but "
                f"{format_bytes(left)} of memory are left: allow more, or take fewer landmarks"
            )
        return min(left, len(columns) * least)

    def solve(self, room: int) -> Solution:
        """Solve with room bytes for Hessians."""
        columns = columns_of(self.problem)
        size = len(columns)
        while size > 1 and self._bytes_of(columns.only(slice(size))) > room:
            size -= 1
        batches = enumerate(blocks(len(columns), size))
        each = self.told.each("training", batches)
        return _joined([self._solve(batch, columns.only(part), room) for batch, part in each])

    def _solve(self, batch: int, columns: Columns, room: int) -> Solution:
        """Solve or resume one batch of columns."""
        Z = self.found.features
        weights = self.problem.weights[:, None].astype(Z.dtype)
        curvatures = curvature_bytes(Z, len(columns))
        newton = Newton(
            Z,
            Targets(self.problem.codes, weights),
            columns,
            LOSSES[self.how.loss],
            self.problem.tol,
            room - len(columns) * (Z.inner + 1) ** 2 * Z.dtype.itemsize - curvatures,
            self.told,
            lambda state: self.steps.put(batch, room, state),
        )
        kept = self.steps.get(batch)
        return solve_columns(
            newton,
            seed=self.how.seed,
            threads=self.found.plan.threads,
            state=None if kept is None else kept[1],
        )[0]

    def _bytes_of(self, columns: Columns) -> int:
        Z = self.found.features
        factors = Factors.bytes_of(columns, Z.inner, Z.dtype.itemsize)
        return factors + curvature_bytes(Z, len(columns))


def _joined(parts: list[Solution]) -> Solution:
    """Join the solutions of consecutive columns."""
    arrays = ("coef", "objective", "gradient_norm", "relative", "gap", "converged")
    return Solution(
        **{name: np.concatenate([getattr(p, name) for p in parts], axis=-1) for name in arrays},
        newton=max(part.newton for part in parts),
        passes=sum(part.passes for part in parts),
    )


def _model(
    problem: Problem,
    row_map: RowMap,
    how: LowRankOptions,
    found: Approximation,
    solution: Solution,
) -> LowRankModel:
    coef: Floats = found.root @ solution.coef[:-1]
    return LowRankModel(
        kernel=row_map.kernel,
        sphere_map=row_map.sphere_map,
        classes=problem.classes,
        rows=found.landmarks,
        indices=found.indices,
        coef=coef,
        intercepts=solution.coef[-1],
        certificates=LowRankCertificates(
            objective=solution.objective,
            gradient_norm=solution.gradient_norm,
            relative=solution.relative,
            gap=solution.gap,
            converged=solution.converged,
            loss=how.loss,
            C=problem.C,
            tol=problem.tol,
            steps=solution.newton,
            passes=solution.passes,
            width=found.width,
            trace_error=found.trace_error,
        ),
        zero_rows=row_map.zero_rows.rule,
        n_zero_rows=row_map.zero_rows.count,
    )
