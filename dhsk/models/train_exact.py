"""Training of one exact support vector machine: in memory, or on a Gram matrix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
from distributed import Client
from numpy.typing import NDArray

from dhsk.arrays import ROWS, Floats, Indices, Rows
from dhsk.errors import BudgetError
from dhsk.execution.limits import core_count
from dhsk.execution.runners import in_threads, on_workers, own_room, share_memory
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.tasks import Run
from dhsk.execution.workers import computing, resources_of
from dhsk.gram.compute import compute_gram
from dhsk.gram.prepare import check_kernels
from dhsk.gram.row_map import RowMap
from dhsk.models.exact import Certificates, Expansion, SvcModel, pairs_of_classes
from dhsk.models.fit_plan import PROCESS_BYTES, SMALLEST_PART, FitCounts, plan_fits
from dhsk.models.rescaling import fit_of_kernel, kernel_in, lacks_digits, pairs_in_units, unit_for
from dhsk.models.sources import ClassesSource, GramSource, RowsSource, edge_for, evaluation_bytes
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import Samples
from dhsk.solvers.dual import Fit
from dhsk.solvers.pairs import solve_pairs
from dhsk.solvers.platt import fit_sigmoid
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import Source
from dhsk.units import human_bytes

_BLOCKS_SHARE: Final = 8
"""Part of the memory left, as a divisor, for blocks that are computed at a time besides the first
where matrices could fill all of it."""


@dataclass(frozen=True)
class Problem:
    """What is to be trained.

    Attributes
    ----------
    samples
        The training samples.
    classes
        Labels, ascending, (k,), at least two.
    codes
        Class of each sample, (N,), from 0.
    weights
        Factors of C, (N,); in each class one at least is above 0.
    C
        Bound of the dual coefficients, or of a low-rank model factor of the losses.
    tol
        Greatest KKT violation, or of a low-rank model part of the first gradient.
    fold_of
        Fold of each sample for the decisions that sigmoids are fitted to, (N,), from 0, and -1
        where its weight is 0; None for a model without probabilities.
    sample_weights
        What each sample counts in the sigmoids, (N,): without the weights of the classes.
    """

    samples: Samples
    classes: NDArray[Any]
    codes: Indices
    weights: Floats
    C: float
    tol: float
    fold_of: Indices | None
    sample_weights: Floats

    @property
    def fold_weights(self) -> Floats:
        """Weights of the whole fit, and of those that leave out a fold each, (1 + folds, N)."""
        if self.fold_of is None:
            return self.weights[None]
        folds = range(int(self.fold_of.max()) + 1)
        return np.stack([self.weights, *(self.weights * (self.fold_of != f) for f in folds)])


@dataclass(frozen=True)
class Means:
    """With what it is trained.

    Attributes
    ----------
    memory
        Most bytes for all processes together; None for half of what is free, or for what the
        workers have.
    client
        Where to compute; None for threads of this process.
    store
        Folder for the Gram matrix; None to store nothing.
    """

    memory: int | None = None
    client: Client | None = None
    store: str | Path | None = None


@dataclass(frozen=True)
class _Engine:
    """A matrix, where its problems are solved, and how to get mapped rows of the samples."""

    source: Source
    room: int
    run: Run
    some: Callable[[Indices], Rows]
    unit: float = 1.0
    """Of the matrix, see `dhsk.models.rescaling`."""
    planned: int | None = None
    """Bytes that this process will hold at its peak; None if others hold the matrix."""


def train_svc(
    problem: Problem, row_map: RowMap, means: Means, report: OnProgress = ignore
) -> SvcModel:
    """Train one exact support vector machine.

    Parameters
    ----------
    problem
        What is to be trained.
    row_map
        Kernel, map, and type of the products.
    means
        Memory and workers. With neither client nor store, mapped samples are held in memory, and
        kernel values computed from them as they are needed.
    report
        Receives progress: rows read, tiles, pairs solved.

    Returns
    -------
    SvcModel
        The model; pairs that did not converge say so in its certificates.

    Raises
    ------
    InputError
        Samples, kernel and map do not go together; a row is named.
    BudgetError
        It does not fit the memory or the disk.
    """
    check_kernels([row_map.kernel], [problem.samples], row_map.sphere_map, row_map.dtype)
    with one_blas_thread() if means.client is None else computing(means.client):
        return _trained(problem, row_map, means, report)


def _trained(problem: Problem, row_map: RowMap, means: Means, report: OnProgress) -> SvcModel:
    """The model, trained where the call computes."""
    pairs = make_pairs(problem.codes, problem.fold_weights, [problem.C])
    in_memory = means.client is None and means.store is None
    prepare = _in_memory if in_memory else _on_gram
    engine = prepare(problem, row_map, means, pairs, report)
    pairs = pairs_in_units(pairs, engine.unit)
    fits = _solve(engine, pairs, problem.tol, report)
    models = [
        _model(problem, row_map, engine, pairs, [columns[c] for columns in fits])
        for c in range(len(problem.fold_weights))
    ]
    found = _with_sigmoids(models, problem, row_map, report)
    return replace(found, notes={"planned_bytes": engine.planned})


def _in_memory(
    problem: Problem, row_map: RowMap, means: Means, pairs: Sequence[Pair], report: OnProgress
) -> _Engine:
    samples = problem.samples
    store_it = "have the Gram matrix stored (store=FOLDER)"
    rows = row_map.all_of(samples, own_room(means.memory), report, store_it)
    most = _most_members(pairs)
    edge = edge_for(rows, means.memory)
    evaluated = evaluation_bytes(rows, edge)
    # The rows of a pair, a block of its matrix on the way, and its vectors.
    beside = most * row_map.bytes_of(samples) // samples.shape[0]
    beside += evaluated + FitCounts.of(pairs, len(problem.codes)).vector_bytes
    matrix = matrix_bytes(most, rows.dtype)
    unit = unit_for(row_map.kernel, samples.shape[0], lambda chosen: rows[chosen])
    kernel = kernel_in(row_map.kernel, unit)
    all_at_once = core_count() * (matrix + beside)
    kept = ClassesSource.bytes_of(problem.codes, rows.dtype.itemsize)
    left = max(0, own_room(means.memory) - PROCESS_BYTES)
    keep = len(pairs) > 1 and kept + all_at_once <= left
    if not keep:
        kept = 0
    room, at_once = _share(left - kept, matrix, beside)
    at_once = min(at_once, len(pairs))
    # Blocks that each task computes at a time, of which one is counted already: of what is left
    # beside whole matrices, or of a small part of what there is.
    spare = max(left - kept - at_once * (min(room, matrix) + beside), left // _BLOCKS_SHARE)
    more = at_once * evaluated
    threads = max(1, min(core_count() // at_once, 1 + spare // more))
    room = min(room, (left - kept - (threads - 1) * more) // at_once - beside)
    source: Source = RowsSource(rows, kernel, threads, edge)
    if keep:
        source = ClassesSource(rows, kernel, problem.codes, threads, edge)
    planned = psutil.Process().memory_info().rss + PROCESS_BYTES + kept
    planned += at_once * (min(room, matrix) + beside) + (threads - 1) * more
    return _Engine(source, room, in_threads(at_once), lambda chosen: rows[chosen], unit, planned)


def _on_gram(
    problem: Problem, row_map: RowMap, means: Means, pairs: Sequence[Pair], report: OnProgress
) -> _Engine:
    samples = problem.samples
    unit = unit_for(
        row_map.kernel, samples.shape[0], lambda chosen: row_map.some_of(samples, chosen)
    )
    if means.store is not None and not lacks_digits(unit, np.dtype(row_map.dtype)):
        unit = 1.0  # a store that others read too holds the kernel's own values
    G = compute_gram(
        samples,
        kernel_in(row_map.kernel, unit),
        sphere_map=row_map.sphere_map,
        store=means.store,
        dtype=row_map.dtype,
        product_dtype=row_map.dtype,
        zero_rows=row_map.zero_rows,
        memory=means.memory,
        client=means.client,
        progress=report,
    )
    if means.client is None:
        most = _most_members(pairs)
        left = own_room(means.memory)
        room, at_once = _share(left, matrix_bytes(most, G.dtype), 0)
        run = in_threads(at_once)
    else:
        resources = resources_of(means.client, means.memory)
        plan = plan_fits(pairs, samples.shape[0], G.dtype, 1, resources)
        room, run = plan.room, on_workers(means.client, plan.window)
    return _Engine(GramSource(G), room, run, lambda chosen: row_map.some_of(samples, chosen), unit)


def _share(left: int, matrix: int, beside: int) -> tuple[int, int]:
    """Bytes for the matrix of a task, and tasks at a time in this process.

    Parameters
    ----------
    left
        Bytes that this process may still take.
    matrix, beside
        Bytes of the largest matrix, and of what a task holds besides.

    Raises
    ------
    BudgetError
        Not even a small part of a matrix fits.
    """
    cores = core_count()
    least = min(matrix, SMALLEST_PART**2 * 8) + beside
    if left < least:
        raise BudgetError(
            f"an exact fit needs {human_bytes(least)} beside its samples but "
            f"{human_bytes(left)} of memory are left: allow more"
        )
    at_once, each = share_memory(left, matrix + beside, cores)
    return each - beside, at_once


def _most_members(pairs: Sequence[Pair]) -> int:
    return max(len(pair.members) for pair in pairs)


def _solve(engine: _Engine, pairs: list[Pair], tol: float, report: OnProgress) -> list[list[Fit]]:
    """Fits of every pair, one a column."""
    fits: list[list[Fit]] = [[] for _ in pairs]
    report(Progress("pairs of classes", 0, len(pairs)))
    solved = solve_pairs(engine.source, pairs, tol, engine.room, engine.run, fine=True)
    for done, (number, columns) in enumerate(solved, 1):
        fits[number] = columns
        report(Progress("pairs of classes", done, len(pairs)))
    return fits


def _model(
    problem: Problem, row_map: RowMap, engine: _Engine, pairs: list[Pair], fits: list[Fit]
) -> SvcModel:
    fits = [fit_of_kernel(fit, engine.unit) for fit in fits]
    expansion = Expansion.of(pairs, fits, problem.codes)
    return SvcModel(
        kernel=row_map.kernel,
        sphere_map=row_map.sphere_map,
        classes=problem.classes,
        rows=engine.some(expansion.support),
        expansion=expansion,
        certificates=Certificates.of(fits, problem.tol, problem.C),
        feature_names=problem.samples.feature_names,
        unit=engine.unit,
        zero_rows=row_map.zero_rows.rule,
        n_zero_rows=row_map.zero_rows.count,
    )


# Probabilities


def _with_sigmoids(
    models: Sequence[SvcModel], problem: Problem, row_map: RowMap, report: OnProgress
) -> SvcModel:
    """The model of all samples, its sigmoids fitted to decisions of those that left samples out."""
    if problem.fold_of is None:
        return models[0]
    held_out = _held_out_decisions(models[1:], problem, problem.fold_of, row_map, report)
    n_classes, sigmoids = len(problem.classes), []
    for a in range(n_classes):
        for b in range(a + 1, n_classes):
            of_a, of_b = problem.codes == a, problem.codes == b
            decision = np.where(of_a, held_out[:, b - 1], held_out[:, a])
            used = of_a | of_b
            sigmoids.append(fit_sigmoid(decision[used], of_a[used], problem.sample_weights[used]))
    return replace(models[0], sigmoids=np.array(sigmoids))


def _held_out_decisions(
    models: Sequence[SvcModel],
    problem: Problem,
    fold_of: Indices,
    row_map: RowMap,
    report: OnProgress,
) -> Floats:
    """Decisions of the pairs that a sample's class is in, by the other class, (N, k - 1)."""
    own_pairs = pairs_of_classes(len(problem.classes))
    found = np.zeros((len(problem.codes), own_pairs.shape[1]))
    for first, rows in row_map.blocks(problem.samples, ROWS):
        report(Progress("held-out decisions", first, len(found)))
        for fold, model in enumerate(models):
            inside = np.flatnonzero(fold_of[first : first + rows.shape[0]] == fold)
            numbers = first + inside
            decisions = model.decisions(rows[inside])
            columns = own_pairs[problem.codes[numbers]]
            found[numbers] = np.take_along_axis(decisions, columns, axis=1)
    report(Progress("held-out decisions", len(found), len(found)))
    return found
