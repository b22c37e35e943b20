"""Cross-validation of exact SVMs over kernels, times, C and folds, on one stored product."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from dhsk.arrays import Indices
from dhsk.errors import BudgetError, InputError
from dhsk.gram.compute import compute_gram
from dhsk.gram.matrix import GramMatrix, product_kernel
from dhsk.gram.ops import leading_eigenvalues
from dhsk.gram.plan import TASKS_PER_THREAD, Resources, human_bytes, parse_bytes
from dhsk.gram.workers import borrow_client, resources_of, run_tasks
from dhsk.kernels import CosineKernel, HeatKernel, Kernel
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import Samples, SphereMap, check_labels, open_samples
from dhsk.svm.exact import CACHE_MB, fit_svc, kkt_violation
from dhsk.svm.result import SCHEMA, CvResult, summarise

DEFAULT_TIME_SCALES = (0.7, 1.0, 1.4)
"""Around the sweet spot t = log(n)/n of Zhao & Song (2017), section 2.2."""

DEFAULT_C = (0.1, 1.0, 10.0)

FIT_BASE_BYTES = 120_000_000
"""What a fit holds beside kernel values and cache: scikit-learn itself (measured: 75 MB), a tile as
it is read and mapped (3 x 8 MB)."""


def cross_validate(
    G_or_X: Any,
    y: Any,
    *,
    time_scale: float | Sequence[float] | None = None,
    kernels: Sequence[Kernel] | None = None,
    C: float | Sequence[float] = DEFAULT_C,
    cv: Any = 5,
    sphere_map: SphereMap | None = None,
    memory: int | str | None = None,
    client: Client | None = None,
    store: str | Path | None = None,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> CvResult:
    """Cross-validate an exact SVM over kernels, diffusion times and C.

    The inner products of the samples are computed once, as a Gram store of cosines (and one of
    plain inner products if a kernel asks for it); every kernel is derived from them. Each task fits
    all C of one kernel on one fold.

    Parameters
    ----------
    G_or_X
        A symmetric `GramMatrix`, or samples as for `compute_gram`.
    y
        Labels, (N,), integers or strings.
    time_scale
        Heat kernels to try: time = time_scale * log(dim) / dim. With neither this nor `kernels`:
        0.7, 1 and 1.4 for samples or stored cosines, the kernel of any other matrix itself.
    kernels
        More kernels to try.
    C
        Bounds of the dual coefficients to try.
    cv
        Number of stratified, shuffled folds; or a scikit-learn splitter, or pairs of index arrays.
    sphere_map
        Map for the spherical kernels; None for "hyperspherical". Only for samples.
    memory
        Most bytes that all processes together may hold, as a number or like "2GB".
    client
        Where to compute; None takes dask's current client, or threads of this process.
    store
        Folder for the stores of inner products, `cosine` and, if a kernel needs it, `linear`; None
        for temporary ones. Only for samples.
    seed
        Of the shuffled folds.
    progress
        Called with a `Progress` after every tile and every fit.

    Returns
    -------
    CvResult
        Scores, winner, confusion matrix, eigenvalues.

    Raises
    ------
    InputError
        Samples, labels or parameters cannot be used.
    BudgetError
        The fits do not fit the memory.
    """
    report = progress or ignore
    limit = None if memory is None else parse_bytes(memory)
    source = G_or_X if isinstance(G_or_X, GramMatrix) else open_samples(G_or_X)
    grid = _make_grid(source, y, cv, seed, C, _candidates(source, time_scale, kernels))
    begin = perf_counter()
    with borrow_client(client) as workers:
        plan = _plan_fits(grid, resources_of(workers, limit))
        grams = _derive(source, grid.kernels, sphere_map, store, limit, workers, report)
        middle = perf_counter()
        cells = _fit_all(grid, grams, plan, workers, report)
    seconds = {"gram": middle - begin, "fits": perf_counter() - middle}
    tables, winner = _tables(grid, cells)
    data = tables | _spectrum(grams[winner], report)
    data |= {
        "schema": SCHEMA,
        "version": version("dhsk"),
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "samples": _describe(source, grams[0]),
        "folds": {"n": len(grid.folds), "splitter": grid.splitter},
        "plan": plan.table(),
        "seconds": seconds | {"total": perf_counter() - begin},
    }
    return CvResult(data)


@dataclass(frozen=True)
class _Grid:
    """What is to be fitted, checked."""

    classes: NDArray[Any]
    y: Indices  # labels as numbers of classes, (N,)
    folds: list[tuple[Indices, Indices]]  # training and test samples
    splitter: str
    kernels: list[Kernel]
    C: list[float]


@dataclass(frozen=True)
class _Cells:
    """What one task found: one kernel, one fold, every C."""

    kernel: int
    fold: int
    rows: list[dict[str, Any]]  # per C
    predicted: list[NDArray[Any]]  # per C, of the fold's test samples


def _make_grid(
    source: GramMatrix | Samples, y: Any, cv: Any, seed: int, C: Any, kernels: list[Kernel]
) -> _Grid:
    n = source.shape[0]
    if isinstance(source, GramMatrix) and not source.symmetric:
        raise InputError(f"cross-validation needs a square Gram matrix, got {source.shape}")
    counted = isinstance(cv, int)
    if counted and cv < 2:
        raise InputError(f"cv must be at least 2 folds, got {cv}")
    labels = check_labels(y, n, cv if counted else None)
    classes, codes = np.unique(labels, return_inverse=True)
    stratified = StratifiedKFold(cv, shuffle=True, random_state=seed) if counted else cv
    splitter = check_cv(stratified, labels, classifier=True)
    folds = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.zeros(n), labels)]
    for number, (train, _) in enumerate(folds):
        if len(np.unique(codes[train])) < 2:
            raise InputError(f"the training part of fold {number} has one class only")
    return _Grid(classes, codes, folds, str(splitter), kernels, _positive("C", C))


def _positive(name: str, values: float | Iterable[float]) -> list[float]:
    numbers = list(dict.fromkeys(np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist()))
    bad = [v for v in numbers if not 0 < v < np.inf]
    if bad or not numbers:
        raise InputError(f"{name} must be positive and finite, got {bad[0] if bad else 'none'}")
    return numbers


def _candidates(
    source: GramMatrix | Samples, time_scale: Any, kernels: Sequence[Kernel] | None
) -> list[Kernel]:
    chosen = list(dict.fromkeys(kernels or []))
    if time_scale is None and not chosen:
        if isinstance(source, GramMatrix) and not isinstance(source.kernel, CosineKernel):
            return [source.kernel]
        time_scale = DEFAULT_TIME_SCALES
    if time_scale is None:
        return chosen
    dim = source.shape[1] if isinstance(source, Samples) else source.dim
    scales = _positive("time_scale", time_scale)
    # Each kernel once, in the order given.
    return list(dict.fromkeys([*(HeatKernel.at_scale(dim, s) for s in scales), *chosen]))


@dataclass(frozen=True)
class _FitPlan:
    """Memory of the fits, checked."""

    n_fits: int
    c_values: int
    task_bytes: int
    window: int
    resources: Resources

    def table(self) -> list[list[str]]:
        """Rows (what, value) for people."""
        r = self.resources
        at_once = min(self.window, r.threads)
        return [
            [
                "fits",
                f"{self.n_fits * self.c_values} SVMs in {self.n_fits} tasks, {at_once} at a time",
            ],
            ["memory of a task", human_bytes(self.task_bytes)],
            [
                "memory",
                f"{human_bytes(r.idle_bytes + at_once * self.task_bytes)} predicted for all "
                f"processes together, {human_bytes(r.memory)} allowed",
            ],
        ]


def _plan_fits(grid: _Grid, resources: Resources) -> _FitPlan:
    """Bound the tasks in flight by the memory: each holds its kernel values and LIBSVM's cache."""
    n = len(grid.y)
    values = max(8 * len(train) * (len(train) + len(test)) for train, test in grid.folds)
    task_bytes = values + min(CACHE_MB * 1_000_000, 4 * n * n) + FIT_BASE_BYTES
    room = (resources.memory - resources.idle_bytes) // task_bytes
    needed = max(task_bytes, 8 * n * n)  # one fit, or the eigenvalues afterwards
    if needed > resources.memory - resources.idle_bytes:
        raise BudgetError(
            f"an exact fit on {n} samples needs {human_bytes(needed + resources.idle_bytes)} "
            f"but {human_bytes(resources.memory)} are allowed: give more memory or fewer samples"
        )
    enough = room >= resources.threads
    window = TASKS_PER_THREAD * resources.threads if enough else int(room)
    return _FitPlan(len(grid.kernels) * len(grid.folds), len(grid.C), task_bytes, window, resources)


def _derive(
    source: GramMatrix | Samples,
    kernels: list[Kernel],
    sphere_map: SphereMap | None,
    store: str | Path | None,
    memory: int | None,
    client: Client,
    report: OnProgress,
) -> list[GramMatrix]:
    """Gram matrix of every kernel, all read from one store of products, or two."""
    if isinstance(source, GramMatrix):
        return [source if k == source.kernel else source.with_kernel(k) for k in kernels]
    products: dict[Kernel, GramMatrix] = {}
    for kernel in kernels:
        product = product_kernel(kernel)
        if product not in products:
            products[product] = compute_gram(
                source,
                product,
                sphere_map=sphere_map if kernel.spherical else "identity",
                store=None if store is None else Path(store) / product.name,
                memory=memory,
                client=client,
                progress=report,
            )
    return [products[product_kernel(kernel)].with_kernel(kernel) for kernel in kernels]


def _fit_all(
    grid: _Grid, grams: list[GramMatrix], plan: _FitPlan, client: Client, report: OnProgress
) -> list[_Cells]:
    """Run all fits; results in order of kernel and fold."""
    tasks = (
        (gram, kernel, grid.y, train, test, fold, grid.C)
        for kernel, gram in enumerate(grams)
        for fold, (train, test) in enumerate(grid.folds)
    )
    total = plan.n_fits * plan.c_values
    report(Progress("fits", 0, total))
    cells: list[_Cells] = []
    for found in run_tasks(client, fit_cells, tasks, plan.window):
        cells.append(found)
        report(Progress("fits", len(cells) * plan.c_values, total))
    return sorted(cells, key=lambda c: (c.kernel, c.fold))


def fit_cells(
    G: GramMatrix,
    kernel: int,
    y: Indices,
    train: Indices,
    test: Indices,
    fold: int,
    values_of_C: list[float],
) -> _Cells:
    """Fit and score every C on one fold of one kernel: the task that workers run.

    Parameters
    ----------
    G
        Gram matrix of the kernel, (N, N).
    kernel
        Its number in the grid.
    y
        Labels of all samples, (N,).
    train, test
        Samples of the fold.
    fold
        Its number.
    values_of_C
        Bounds of the dual coefficients.

    Returns
    -------
    _Cells
        A row and the predictions per C.
    """
    K_train, K_test = G.submatrices([(train, train), (test, train)], np.float64)
    rows, predicted = [], []
    for C in values_of_C:
        begin = perf_counter()
        model = fit_svc(K_train, y[train], C)
        predicted.append(model.predict(K_test))
        rows.append(
            _name(G.kernel, G.dim, C)
            | {
                "fold": fold,
                "score": float(np.mean(predicted[-1] == y[test])),
                "seconds": perf_counter() - begin,
                "n_support": len(model.support_),
                "kkt": kkt_violation(model, K_train, y[train]),
            }
        )
    return _Cells(kernel, fold, rows, predicted)


def _name(kernel: Kernel, dim: int, C: float) -> dict[str, Any]:
    """Columns that name a cell of the grid."""
    time = getattr(kernel, "time", None)
    # Twelve digits, so that a scale reads as it was typed.
    scale = None if time is None else float(f"{time * dim / math.log(dim):.12g}")
    return {
        "kernel": kernel.name,
        "label": kernel.label if scale is None else f"{kernel.name} s={scale:g}",
        "time_scale": scale,
        "time": time,
        "sigma": getattr(kernel, "sigma", None),
        "C": C,
    }


def _tables(grid: _Grid, cells: list[_Cells]) -> tuple[dict[str, Any], int]:
    """Rows, their summary, how the winner confuses classes; and the number of its kernel."""
    rows = [row for cell in cells for row in cell.rows]
    summary = summarise(rows)
    best = max(range(len(summary)), key=lambda k: summary[k]["mean"])  # of equals the first
    kernel, C = divmod(best, len(grid.C))
    confusion = np.zeros((len(grid.classes), len(grid.classes)), dtype=np.int64)
    for cell in (c for c in cells if c.kernel == kernel):
        true = grid.y[grid.folds[cell.fold][1]]
        np.add.at(confusion, (true, cell.predicted[C]), 1)
    tables = {
        "classes": grid.classes.tolist(),
        "class_counts": np.bincount(grid.y).tolist(),
        "rows": rows,
        "summary": summary,
        "best": summary[best],
        "confusion": confusion.tolist(),
    }
    return tables, kernel


def _spectrum(gram: GramMatrix, report: OnProgress) -> dict[str, Any]:
    """Leading eigenvalues and trace."""
    report(Progress("eigenvalues", 0, 1))
    found = {
        "eigenvalues": leading_eigenvalues(gram).tolist(),
        "trace": float(gram.diagonal().sum(dtype=np.float64)),
    }
    report(Progress("eigenvalues", 1, 1))
    return found


def _describe(source: GramMatrix | Samples, gram: GramMatrix) -> dict[str, Any]:
    header = gram.header
    return {
        "source": str(source.path) if isinstance(source, GramMatrix) else source.source,
        "n_samples": header.n_rows,
        "dim": header.dim,
        "nnz": header.nnz[0],
        "sphere_map": header.sphere_map,
        "fingerprint": header.fingerprints[0],
    }
