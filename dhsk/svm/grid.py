"""The grid of a cross-validation, checked, and the memory that its fits need."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from dhsk.arrays import Indices
from dhsk.errors import BudgetError, InputError
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.plan import TASKS_PER_THREAD, Resources, make_plan
from dhsk.gram.sizes import human_bytes
from dhsk.kernels import TIME_SCALES, CosineKernel, HeatKernel, Kernel
from dhsk.samples import Samples, check_labels
from dhsk.svm.exact import CACHE_MB

DEFAULT_C = (0.1, 1.0, 10.0)

FIT_BASE_BYTES = 120_000_000
"""What a fit holds beside kernel values and cache: scikit-learn itself (measured: 75 MB), a tile as
it is read and mapped (3 x 8 MB)."""


@dataclass(frozen=True)
class Grid:
    """What is to be fitted, checked."""

    classes: NDArray[Any]
    y: Indices  # labels as numbers of classes, (N,)
    folds: list[tuple[Indices, Indices]]  # training and test samples
    splitter: str
    kernels: list[Kernel]
    C: list[float]


def make_grid(
    source: GramMatrix | Samples, y: Any, cv: Any, seed: int, C: Any, kernels: list[Kernel]
) -> Grid:
    """Check labels, folds and values of C before any sample is read.

    Parameters
    ----------
    source
        What is to be cross-validated.
    y
        Labels, (N,).
    cv
        Number of stratified, shuffled folds; or a scikit-learn splitter, or pairs of index arrays.
    seed
        Of the shuffled folds.
    C
        Bounds of the dual coefficients.
    kernels
        From `candidates`.

    Returns
    -------
    Grid
        The grid.

    Raises
    ------
    InputError
        Something cannot be used.
    """
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
    return Grid(classes, codes, folds, str(splitter), kernels, _positive("C", C))


def _positive(name: str, values: float | Iterable[float]) -> list[float]:
    numbers = list(dict.fromkeys(np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist()))
    bad = [v for v in numbers if not 0 < v < np.inf]
    if bad or not numbers:
        raise InputError(f"{name} must be positive and finite, got {bad[0] if bad else 'none'}")
    return numbers


def candidates(
    source: GramMatrix | Samples, time_scale: Any, kernels: Sequence[Kernel] | None
) -> list[Kernel]:
    """Kernels to try: each once, in the order given.

    Parameters
    ----------
    source
        Samples or a Gram matrix.
    time_scale
        Heat kernels to try; with neither these nor `kernels` the ones around the sweet spot, or
        the own kernel of a matrix that holds no cosines.
    kernels
        More kernels.

    Returns
    -------
    list of Kernel
        At least one.
    """
    chosen = list(dict.fromkeys(kernels or []))
    if time_scale is None and not chosen:
        if isinstance(source, GramMatrix) and not isinstance(source.kernel, CosineKernel):
            return [source.kernel]
        time_scale = TIME_SCALES
    if time_scale is None:
        return chosen
    dim = source.shape[1] if isinstance(source, Samples) else source.dim
    scales = _positive("time_scale", time_scale)
    return list(dict.fromkeys([*(HeatKernel.at_scale(dim, s) for s in scales), *chosen]))


@dataclass(frozen=True)
class FitPlan:
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
            ["memory of a fit", human_bytes(self.task_bytes)],
            [
                "memory of the fits",
                f"{human_bytes(r.idle_bytes + at_once * self.task_bytes)} predicted for all "
                f"processes together, {human_bytes(r.memory)} allowed",
            ],
        ]


def plan_fits(grid: Grid, resources: Resources) -> FitPlan:
    """Bound the tasks in flight by the memory: each holds its kernel values and LIBSVM's cache.

    Parameters
    ----------
    grid
        What is to be fitted.
    resources
        Workers and memory.

    Returns
    -------
    FitPlan
        A plan that fits.

    Raises
    ------
    BudgetError
        Not even one fit at a time does.
    """
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
    return FitPlan(len(grid.kernels) * len(grid.folds), len(grid.C), task_bytes, window, resources)


def gram_plan(gram: GramMatrix, resources: Resources) -> list[list[str]]:
    """Rows (what, value) of the plan of a matrix that is there.

    Parameters
    ----------
    gram
        The matrix.
    resources
        Workers and memory.

    Returns
    -------
    list of [str, str]
        For people.
    """
    h = gram.header
    plan = make_plan(
        h.n_rows, h.dim, resources, nnz=h.nnz[0], dtype=h.dtype, tile=h.tile, layout=h.layout
    )
    return [list(row) for row in plan.table()]
