"""Training of a low-rank classifier: features, then all its columns together."""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dhsk.arrays import Floats, blocks
from dhsk.errors import BudgetError, InputError
from dhsk.execution.checkpoint import digest_of
from dhsk.execution.limits import own_room
from dhsk.execution.memory import Allowance
from dhsk.execution.options import RunOptions
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.workers import computing
from dhsk.gram.prepare import check_kernels, scan_side
from dhsk.gram.row_map import RowMap
from dhsk.linear.checkpoint import NewtonCheckpoint
from dhsk.linear.losses import LOSSES, check_factors
from dhsk.linear.newton import Newton, Solution, Targets, curvature_bytes
from dhsk.linear.passes import Columns
from dhsk.linear.preconditioner import Factors
from dhsk.linear.warm_start import solve_columns
from dhsk.models.low_rank import LowRankCertificates, LowRankModel
from dhsk.models.low_rank_plan import LowRankPlan, plan_low_rank, solver_bytes
from dhsk.models.problem import Problem
from dhsk.models.sources import RowsShape
from dhsk.nystrom.approximation import Approximation, LandmarkOptions, approximate
from dhsk.progress import OnProgress
from dhsk.samples import Samples
from dhsk.units import human_bytes

LossName: TypeAlias = Literal["squared_hinge", "logistic"]


@dataclass(frozen=True, eq=False)
class LowRankOptions(LandmarkOptions):
    """How a kernel is approximated, and what is minimised.

    Attributes
    ----------
    loss
        Name of the loss.
    """

    loss: LossName = "squared_hinge"


def train_low_rank(
    problem: Problem,
    samples: Samples,
    row_map: RowMap,
    how: LowRankOptions,
    options: RunOptions,
) -> LowRankModel:
    """Train a linear classifier on Nyström features, each class against the rest.

    Parameters
    ----------
    problem
        What is to be trained; `C` is the factor of the losses, as in `LinearSVC`, and `tol` the
        part of the gradient at 0 that may be left, times LIBLINEAR's scale.
    samples
        The training samples.
    row_map
        Kernel, map, and type of the products.
    how
        Landmarks and loss.
    options
        Memory and workers. With a journal, the same call goes on where it was killed, and gives
        the same model. The caller removes it.

    Returns
    -------
    LowRankModel
        The model; columns that did not converge say so in its certificates.

    Raises
    ------
    InputError
        Samples, kernel and map do not go together, or the loss cannot be used; a row is named.
    BudgetError
        It does not fit the memory or the disk.
    """
    check_loss(how.loss)
    check_factors([problem.C], problem.weights)
    check_kernels([row_map.kernel], [samples], row_map.sphere_map, row_map.dtype)
    with one_blas_thread() if options.client is None else computing(options.client):
        plan, room = _plan(problem, samples, row_map, options, how)
        features = None if plan is None else plan.features
        found = approximate(samples, row_map, how, options, features)
        steps = _steps(problem, samples, row_map, options, how, found)
        solver = _Solver(problem, how, found, steps, options.report)
        solution = solver.solve(solver.room_of(room))
        model = _model(problem, row_map, how, found, solution)
    notes = {"planned_bytes": None if plan is None else plan.need.total}
    return replace(model, feature_names=samples.feature_names, notes=notes)


def _plan(
    problem: Problem,
    samples: Samples,
    row_map: RowMap,
    options: RunOptions,
    how: LowRankOptions,
) -> tuple[LowRankPlan | None, int]:
    """Memory of this process, None where samples are on workers; and the solver's part."""
    n, rows = samples.shape[0], RowsShape.of_samples(samples, row_map.dtype)
    m, keys = how.count(n), len(columns_of(problem))
    if options.client is None:
        plan = plan_low_rank(rows, m, keys, Allowance.now(options.memory))
        return plan, plan.solver
    return None, min(solver_bytes(n, min(m, n), rows.itemsize, keys), own_room(None) // 4)


def check_loss(loss: object) -> None:
    """Refuse a loss that there is not."""
    if not isinstance(loss, str) or loss not in get_args(LossName):
        raise InputError(
            f"loss must be {' or '.join(map(repr, get_args(LossName)))}, but it is {loss!r}; the "
            "hinge loss is that of the exact HeatSVC"
        )


def columns_of(problem: Problem) -> Columns:
    """One column for two classes, else one a class."""
    k = len(problem.classes)
    positive = np.array([1]) if k == 2 else np.arange(k)
    return Columns(positive, np.zeros_like(positive), np.full(len(positive), problem.C))


def _steps(
    problem: Problem,
    samples: Samples,
    row_map: RowMap,
    options: RunOptions,
    how: LowRankOptions,
    found: Approximation,
) -> NewtonCheckpoint:
    """File of the solver's steps, named by all that they depend on."""
    if options.journal is None:
        return NewtonCheckpoint(None, "")
    kernel, sphere_map = row_map.kernel, row_map.sphere_map
    scan = scan_side(samples, [kernel], sphere_map, options.report, row_map.zero_rows)
    made_from = [scan.fingerprint, kernel.to_spec(), sphere_map, row_map.dtype]
    key: list[Any] = [*made_from, problem.C, problem.tol, how.loss, how.seed]
    return NewtonCheckpoint(
        options.journal, digest_of(key, problem.codes, problem.weights, found.root)
    )


@dataclass(frozen=True)
class _Solver:
    """Solves all columns, side by side as far as their factors fit the memory."""

    problem: Problem
    how: LowRankOptions
    found: Approximation
    steps: NewtonCheckpoint
    report: OnProgress

    def room_of(self, left: int) -> int:
        """Bytes for second derivatives: those left for them, but no more than there is use for.

        A run that goes on takes what it had begun with, as rounding depends on it.

        Raises
        ------
        BudgetError
            Not even one column's fit.
        """
        kept = self.steps.get(0)
        if kept is not None:
            return kept[0]
        columns, width = columns_of(self.problem), self.found.features.inner
        least = self._bytes_of(columns.only([0]))
        if left < least:
            raise BudgetError(
                f"second derivatives of {width} features take {human_bytes(least)} but "
                f"{human_bytes(left)} of memory are left: allow more, or take fewer landmarks"
            )
        return min(left, len(columns) * least)

    def solve(self, room: int) -> Solution:
        """Solve with these bytes for second derivatives."""
        columns = columns_of(self.problem)
        size = len(columns)
        while size > 1 and self._bytes_of(columns.only(slice(size))) > room:
            size -= 1
        parts = [
            self._solve(batch, columns.only(part), room)
            for batch, part in enumerate(blocks(len(columns), size))
        ]
        return _joined(parts)

    def _solve(self, batch: int, columns: Columns, room: int) -> Solution:
        """Solve one batch of columns, or go on with it."""
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
            self.report,
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
    """Solutions of consecutive columns as one."""
    return Solution(
        coef=np.hstack([part.coef for part in parts]),
        objective=np.concatenate([part.objective for part in parts]),
        gradient_norm=np.concatenate([part.gradient_norm for part in parts]),
        relative=np.concatenate([part.relative for part in parts]),
        gap=np.concatenate([part.gap for part in parts]),
        converged=np.concatenate([part.converged for part in parts]),
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
