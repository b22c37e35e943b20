"""Training of a low-rank classifier: features first, then all columns together."""

from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, as_type, blocks
from dhsk.errors import BudgetError
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import own_room
from dhsk.execution.memory import Share, require_room
from dhsk.execution.run import Run
from dhsk.gram.prepare import check_kernels
from dhsk.gram.row_map import RowMap
from dhsk.linear.losses import LOSSES, check_factors
from dhsk.linear.newton import (
    ColumnProofs,
    Newton,
    Solution,
    curvature_bytes,
    kept_solution,
    solve_columns,
)
from dhsk.linear.passes import Columns, Targets
from dhsk.linear.preconditioner import Factors
from dhsk.linear.state import KeptSolve
from dhsk.models.base import training_notes
from dhsk.models.low_rank import LowRankCertificates, LowRankModel
from dhsk.models.low_rank_plan import plan_low_rank, solver_bytes
from dhsk.models.problem import Problem
from dhsk.models.sources import RowsShape
from dhsk.nystrom.approximation import Approximation, approximate
from dhsk.nystrom.room import computed_on_device
from dhsk.objects.places import bytes_below
from dhsk.progress import Progress
from dhsk.results.low_rank import LowRank, check_loss
from dhsk.run_progress import RunProgress
from dhsk.samples import Samples
from dhsk.solvers.problems import positives

PREFIX: Final = "newton-"
"""Begins the names of the entries of steps."""


def train_low_rank(
    problem: Problem,
    samples: Samples,
    row_map: RowMap,
    how: LowRank,
    run: Run,
    *,
    seed: int = 0,
) -> LowRankModel:
    """Train a one-vs-rest linear classifier on Nyström features.

    Its certificates say which columns did not converge. The seed is that of all random choices.
    With a checkpoint folder in `run.journal`, the same call resumes after an interruption and gives
    the same model; the caller removes the folder. When `run.over`, training ends at its best state
    so far, and the notes of the model say that it was "stopped".

    Raises InputError if samples, kernel, map and loss do not match, or a row cannot be used, and
    BudgetError if memory or disk do not suffice, or the time is over before training.
    """
    check_loss(how.loss)
    check_factors([problem.C], problem.weights)
    check_kernels([row_map.kernel], [samples], row_map.sphere_map, row_map.dtype)
    with run.told(approximation=1, training=3) as (run, told):
        plan, room = _plan(problem, samples, row_map, run, how)
        first = replace(run, report=_InTime(run))
        mark = None if run.journal is None else row_map.scan(samples, first).fingerprint
        with told.part("approximation", 1.0):
            found = approximate(samples, row_map, how, first, plan, seed=seed, fingerprint=mark)
        name = "" if mark is None else _name_of(problem, row_map, mark, [how.loss, seed], found)
        entries = Checkpoint(run.journal, PREFIX)
        solver = _Solver(problem, how.loss, seed, found, entries, name, run, told)
        solution = solver.solve(solver.room_of(room))
        model = _model(problem, row_map, how, found, solution)
    notes = training_notes(samples.shape[0], samples.source)
    notes["planned_bytes"] = None if plan is None else plan.need.total
    if solution.stopped:
        notes["stopped"] = True
    return replace(
        model, feature_names=samples.feature_names, vectorizer=samples.vectorizer, notes=notes
    )


@dataclass(frozen=True)
class _InTime:
    """Reports what comes before training, and ends it when the time is over: it has no model."""

    run: Run

    def __call__(self, event: Progress) -> None:
        """Report an event."""
        self.run.report(event)
        if event.done < event.total and self.run.over():
            at = f"{event.stage}, {event.done:,} of {event.total:,}"
            way = "give a longer one, or none"
            if self.run.journal is not None and bytes_below(self.run.journal):
                way = f"the same with a longer one, or none, goes on from {self.run.journal}"
            raise BudgetError(
                f"the budget of time was over before training began ({at}), so there is no model: "
                f"{way}; fewer features take less"
            )


def _plan(
    problem: Problem,
    samples: Samples,
    row_map: RowMap,
    run: Run,
    how: LowRank,
) -> tuple[Share | None, int]:
    """Plan of this process, None if samples are on workers, and the memory of the solver."""
    n, rows = samples.shape[0], RowsShape.of_samples(samples, row_map.dtype)
    m, keys = how.count(n), len(columns_of(problem))
    if run.client is None:
        on_device = computed_on_device(samples, row_map, m)
        plan = plan_low_rank(rows, m, keys, run.allowance, on_device=on_device)
        return plan, plan.room
    room = min(solver_bytes(n, min(m, n), rows.itemsize, keys), own_room(None) // 4)
    if isinstance(run.client, ArrayJob):
        room = run.client.agreed("room", lambda: room)
    return None, room


def columns_of(problem: Problem) -> Columns:
    """One column for two classes, else one for each class."""
    positive = positives(len(problem.classes))
    return Columns(positive, np.zeros_like(positive), np.full(len(positive), problem.C))


def _name_of(
    problem: Problem, row_map: RowMap, fingerprint: str, how: list[Any], found: Approximation
) -> str:
    """Name of the steps in the checkpoint, by everything that they depend on."""
    kernel, sphere_map = row_map.kernel, row_map.sphere_map
    made_from = [fingerprint, kernel.to_spec(), sphere_map, row_map.dtype]
    key: list[Any] = [*made_from, problem.C, problem.tol, *how]
    return digest_of(key, problem.codes, problem.weights, found.root)


@dataclass(frozen=True)
class _Solver:
    """Solves all columns, in batches whose factors fit in memory."""

    problem: Problem
    loss: str
    seed: int
    found: Approximation
    entries: Checkpoint
    name: str
    run: Run
    told: RunProgress

    def room_of(self, left: int) -> int:
        """Memory for Hessians in bytes: that which is left, up to what all columns need.

        A resumed run takes that of its beginning, as rounding depends on it. Raises BudgetError if
        the Hessian of one column does not fit.
        """
        return self.entries.first(f"{self.name}-room", lambda: self._own_room(left))

    def _own_room(self, left: int) -> int:
        columns, width = columns_of(self.problem), self.found.features.inner
        least = self._bytes_of(1)
        require_room(least, left, f"second derivatives of {width} features", "take fewer landmarks")
        return min(left, len(columns) * least)

    def solve(self, room: int) -> Solution:
        """Solve with room bytes for Hessians."""
        columns = columns_of(self.problem)
        size = len(columns)
        while size > 1 and self._bytes_of(size) > room:
            size -= 1
        batches = enumerate(blocks(len(columns), size))
        each = self.told.each("training", batches)
        return _joined([self._solve(batch, columns.only(part), room) for batch, part in each])

    def _solve(self, batch: int, columns: Columns, room: int) -> Solution:
        """Solve or resume one batch of columns."""
        Z = self.found.features
        weights = as_type(self.problem.weights, Z.dtype)[:, None]
        curvatures = curvature_bytes(Z, len(columns))
        name = f"{self.name}-{batch}"
        steps = KeptSolve(self.entries, f"{name}-steps")
        newton = Newton(
            Z,
            Targets(self.problem.codes, weights),
            columns,
            LOSSES[self.loss],
            self.problem.tol,
            room - len(columns) * (Z.inner + 1) ** 2 * Z.dtype.itemsize - curvatures,
            self.told,
            steps,
            self.run.over,
        )
        threads = self.found.plan.at_once
        found = kept_solution(
            self.entries, name, lambda: solve_columns(newton, seed=self.seed, threads=threads)[0]
        )
        if not found.stopped:
            steps.drop()
        return found

    def _bytes_of(self, n_columns: int) -> int:
        Z = self.found.features
        factors = Factors.bytes_of(n_columns, Z.inner, Z.dtype.itemsize)
        return factors + curvature_bytes(Z, n_columns)


_PROOFS: Final = tuple(field.name for field in fields(ColumnProofs))


def _joined(parts: list[Solution]) -> Solution:
    """Join the solutions of consecutive columns."""
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-1)
        for name in ("coef", *_PROOFS)
    }
    return Solution(
        **arrays,
        newton=max(part.newton for part in parts),
        passes=sum(part.passes for part in parts),
        stopped=any(part.stopped for part in parts),
    )


def _model(
    problem: Problem,
    row_map: RowMap,
    how: LowRank,
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
            **{name: getattr(solution, name) for name in _PROOFS},
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
