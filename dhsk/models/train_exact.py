"""Training of an exact SVM, in memory or on a Gram matrix."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, Indices, Rows
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.limits import core_count
from dhsk.execution.memory import Share
from dhsk.execution.run import Run
from dhsk.execution.tasks import Executor
from dhsk.execution.threads import Threads
from dhsk.execution.workers import Workers
from dhsk.gram.compute import gram_of
from dhsk.gram.prepare import check_kernels
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel, PrecomputedKernel, unit_vectors
from dhsk.models.base import training_notes
from dhsk.models.classes_source import ClassesSource
from dhsk.models.exact import Certificates, Expansion, SvcModel
from dhsk.models.exact_checkpoint import PREFIX, kept_share, name_of_training, progress_of
from dhsk.models.fit_plan import (
    FitCounts,
    keeps_whole,
    plan_exact,
    plan_fits,
    share_of_fits,
)
from dhsk.models.given import given_matrix
from dhsk.models.gram_source import GramSource
from dhsk.models.limited import LimitedSolver
from dhsk.models.pair_fits import PairSolver
from dhsk.models.pair_tasks import MatrixProblem, PairFits
from dhsk.models.problem import Problem
from dhsk.models.rescaling import fit_of_kernel, kernel_in, lacks_digits, matrix_in_units, unit_for
from dhsk.models.sources import RowsShape, RowsSource
from dhsk.samples import Samples
from dhsk.solvers.decomposition import RoundWatch
from dhsk.solvers.pairs import Way
from dhsk.solvers.platt import fit_sigmoid
from dhsk.solvers.problems import REST, WORDS, classes_of_problems, problems_of_classes
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import ArraySource, Source

TINY_SAMPLES: Final = 128
"""Most samples of problems that are solved on one thread: the interpreter takes longer for them
than the solver. Measured on two cores, in seconds, on one thread and on two: 4,950 pairs of 10
samples 0.25 and 0.38, 45 of 100 0.012 and 0.018, but 1,225 of 160 0.41 and 0.31."""


@dataclass(frozen=True, eq=False)
class _Training:
    """A matrix, where its problems are solved, and access to mapped rows of the samples."""

    matrix: MatrixProblem
    executor: Executor
    share: Share
    rows_of: Callable[[Indices], Rows]
    planned: int | None = None
    """Planned peak memory of this process in bytes; None if the matrix is not in it."""


def train_svc(problem: Problem, samples: Samples, row_map: RowMap, run: Run) -> SvcModel:
    """Train an exact SVM; its certificates say which pairs did not converge.

    Kernel values are computed when the solver needs them, without a client from mapped samples in
    memory. With `run.store` the Gram matrix is computed first. With a checkpoint folder in
    `run.journal`, the same call resumes after an interruption and gives the same model; the
    caller removes the folder.

    Raises InputError if samples, kernel and map do not match, or a row cannot be used, and
    BudgetError if memory or disk do not suffice.
    """
    check_kernels([row_map.kernel], [samples], row_map.sphere_map, row_map.dtype)
    with run.told(**_parts_of(problem)) as (run, told):
        prepare = _way_of(row_map.kernel, run)
        which = problem.multi_class
        counts = FitCounts.of(problem.codes, len(problem.fold_weights), 1, which)
        entries = Checkpoint(run.journal, PREFIX)
        with told.part("matrix", 1.0):
            training = prepare(problem, samples, row_map, run, counts)
        told.expect("fits", counts.pairs)
        kind: Any = PairSolver
        if problem.most_steps is not None:
            kind = partial(LimitedSolver, most=problem.most_steps)
        solver = kind(
            problem.codes,
            problem.fold_weights,
            problem.tol,
            [training.matrix],
            training.executor,
            training.share,
            entries,
            fine=True,
            multi_class=which,
            on_fits=lambda fits, found: told.advance(
                "fits", fits / counts.columns, WORDS[which], found=found
            ),
            watch=RoundWatch(lambda one: run.report(progress_of(one, len(problem.codes))), entries),
            told=run.report,
        )
        with told.part("fits", span=counts.pairs):  # rounds tell of all pairs
            model, solved = fit_model(problem, row_map, solver, training.rows_of)
        sigmoids = _sigmoids(problem, solver, solved)
    notes = training_notes(samples.shape[0], samples.source)
    return replace(
        model,
        feature_names=samples.feature_names,
        vectorizer=samples.vectorizer,
        sigmoids=sigmoids,
        notes={**notes, "planned_bytes": training.planned},
    )


def _way_of(kernel: Kernel, run: Run) -> Callable[..., _Training]:
    """What prepares the matrix of a kernel."""
    if isinstance(kernel, PrecomputedKernel):
        return _on_given
    return _in_memory if run.client is None and run.store is None else _on_gram


def _parts_of(problem: Problem) -> dict[str, float]:
    """Parts of a training, and what they are guessed to take in proportion."""
    parts = {"matrix": 2.0, "fits": 8.0}
    return parts if problem.fold_of is None else parts | {"held_out decisions": 1.0}


def fit_model(
    problem: Problem, row_map: RowMap, solver: PairSolver, rows_of: Callable[[Indices], Rows]
) -> tuple[SvcModel, PairFits]:
    """Solve the problems of one matrix with one C, and make a model of the first row of weights.

    rows_of gives the mapped rows of some samples. The fits of all rows of weights are returned too.
    """
    ((_, solved),) = solver.solved()
    fits = [fit_of_kernel(own[0], solved.unit) for own in solved.fits]
    expansion = Expansion.of(fits, problem.codes, solver.multi_class)
    model = SvcModel(
        kernel=row_map.kernel,
        sphere_map=row_map.sphere_map,
        classes=problem.classes,
        rows=rows_of(expansion.support),
        expansion=expansion,
        certificates=Certificates.of(fits, problem.tol, problem.C),
        unit=solved.unit,
        zero_rows=row_map.zero_rows.rule,
        n_zero_rows=row_map.zero_rows.count,
    )
    return model, solved


def _in_memory(
    problem: Problem, samples: Samples, row_map: RowMap, run: Run, counts: FitCounts
) -> _Training:
    allowed = run.allowance
    store_it = "have the Gram matrix stored (store=FOLDER)"
    rows = row_map.all_of(samples, run, store_it, allowed.room, allowed.cores)
    sizes = np.bincount(problem.codes[problem.codes >= 0]).tolist()
    whole = problem.most_steps is not None
    plan = plan_exact(RowsShape.of(rows), counts, sizes, allowed, whole=whole)
    unit = unit_for(row_map.kernel, samples.shape[0], lambda chosen: rows[chosen])
    kernel = kernel_in(row_map.kernel, unit)
    name = ""
    if run.journal is not None:
        name = name_of_training(problem, row_map, list(rows.shape), rows)
    share = _kept_share(run, name, plan)
    source: Source
    if problem.multi_class == "ovr":  # one matrix for all tasks, which wait for it
        source = RowsSource(rows, kernel, allowed.cores, share.rows)
    elif share.held and keeps_whole(sizes):
        n = rows.shape[0]
        K = RowsSource(rows, kernel, allowed.cores, share.rows).block(np.arange(n))
        source = ArraySource(K[:, :n])
    elif share.held:
        source = ClassesSource(rows, kernel, problem.codes, share.threads, share.rows)
    else:
        source = RowsSource(rows, kernel, share.threads, share.rows)
    return _Training(
        MatrixProblem(source, (problem.C,), unit, name),
        _threads_for(counts, share),
        share,
        lambda chosen: rows[chosen],
        plan.need.total,
    )


def _kept_share(run: Run, name: str, own: Share) -> Share:
    return kept_share(Checkpoint(run.journal, PREFIX), name, own)


def _threads_for(counts: FitCounts, share: Share) -> Executor:
    """Threads for the fits of a model: of tiny problems one, as they would wait for each other."""
    return Threads(1 if counts.most <= TINY_SAMPLES else share.at_once)


def _on_given(
    problem: Problem, samples: Samples, row_map: RowMap, run: Run, counts: FitCounts
) -> _Training:
    K = given_matrix(samples, row_map, run)
    source = ArraySource(K)
    name = name_of_training(problem, row_map, K) if run.journal is not None else ""
    share = share_of_fits(run.room, matrix_bytes(counts.most, K.dtype), 0, core_count())
    return _Training(
        MatrixProblem(source, (problem.C,), name=name),
        _threads_for(counts, share),
        _kept_share(run, name, share),
        lambda chosen: unit_vectors(chosen, len(K)),
    )


def _on_gram(
    problem: Problem, samples: Samples, row_map: RowMap, run: Run, counts: FitCounts
) -> _Training:
    if run.store is None:
        G, unit = matrix_in_units(gram_of(samples, row_map, run, row_map.dtype))
    else:
        unit = unit_for(
            row_map.kernel, samples.shape[0], lambda chosen: row_map.some_of(samples, chosen)
        )
        if not lacks_digits(unit, np.dtype(row_map.dtype)):
            unit = 1.0  # other readers of a store expect the kernel's own values
        scaled = replace(row_map, kernel=kernel_in(row_map.kernel, unit))
        G = gram_of(samples, scaled, run, row_map.dtype)
    source = GramSource(G)
    if run.client is None:
        share = share_of_fits(run.room, matrix_bytes(counts.most, G.dtype), 0, core_count())
        executor: Executor = Threads(share.at_once)
    else:
        way: Way | None = "working sets" if G.computed else None
        share = plan_fits(counts, G.dtype, 1, run.resources, way)
        executor = Workers(run.client, share.window)
        share = replace(
            share, split_folds=False, shared=0
        )  # folds of sigmoids stay with their pair
    name = name_of_training(problem, row_map, [list(G.header.fingerprints), unit])
    share = _kept_share(run, name, share)
    matrix = MatrixProblem(source, (problem.C,), unit, name)
    return _Training(matrix, executor, share, source.rows)


# Probabilities


def _sigmoids(problem: Problem, solver: PairSolver, solved: PairFits) -> Floats | None:
    """Sigmoids of the problems, fitted to what the fits of the folds decide of other samples."""
    if problem.fold_of is None or problem.sample_weights is None:
        return None
    folds = [np.flatnonzero(problem.fold_of == fold) for fold in range(-1, len(solver.weights) - 1)]
    folds[0] = folds[0][:0]  # the fit on all samples holds out none
    codes, problems = problem.codes, problems_of_classes(len(problem.classes), solver.multi_class)
    held_out = np.zeros((len(codes), problems.shape[1]))
    for own, (decided,) in zip(folds, solver.held_out(0, solved, folds), strict=True):
        held_out[own] = np.take_along_axis(decided, problems[codes[own]], axis=1)
    sigmoids = []
    for number, (a, b) in enumerate(classes_of_problems(len(problems), solver.multi_class)):
        positive = codes == a
        used = positive | ((codes == b) if b != REST else codes >= 0)
        places = (problems == number).argmax(axis=1)
        decision = held_out[used, places[codes[used]]]
        sigmoids.append(fit_sigmoid(decision, positive[used], problem.sample_weights[used]))
    return np.array(sigmoids)
