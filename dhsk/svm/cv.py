"""Cross-validation of exact SVMs over kernels, times, C and folds, on one stored product."""

import json
import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray

from dhsk.arrays import Indices
from dhsk.gram.compute import compute_gram
from dhsk.gram.derive import product_kernel
from dhsk.gram.folder import TemporaryFolder
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.ops import leading_eigenvalues
from dhsk.gram.sizes import parse_bytes
from dhsk.gram.workers import borrow_client, resources_of, run_tasks
from dhsk.kernels import Kernel
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import Samples, SphereMap, open_samples
from dhsk.svm.exact import fit_svc, kkt_violation
from dhsk.svm.grid import (
    DEFAULT_C,
    FitPlan,
    Grid,
    candidates,
    gram_plan,
    make_grid,
    plan_fits,
)
from dhsk.svm.result import SCHEMA, CvResult, summarise


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
        Folder for the stores of inner products, `cosine` and, if a kernel needs it, `linear`, and
        one for each kernel that no products determine; None for temporary ones. Only for samples.
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
    grid = make_grid(source, y, cv, seed, C, candidates(source, time_scale, kernels))
    begin = perf_counter()
    with borrow_client(client) as workers:
        plan = plan_fits(grid, resources_of(workers, limit))
        folder = TemporaryFolder()
        place = folder.path if store is None else Path(store)
        grams = _derive(source, grid.kernels, sphere_map, place, limit, workers, report)
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
        "plan": [*gram_plan(grams[0], plan.resources), *plan.table()],
        "seconds": seconds | {"total": perf_counter() - begin},
    }
    return CvResult(data)


@dataclass(frozen=True)
class _Cells:
    """What one task found: one kernel, one fold, every C."""

    kernel: int
    fold: int
    rows: list[dict[str, Any]]  # per C
    predicted: list[NDArray[Any]]  # per C, of the fold's test samples


def _derive(
    source: GramMatrix | Samples,
    kernels: list[Kernel],
    sphere_map: SphereMap | None,
    store: Path,
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
                store=store / _folder(product),
                memory=memory,
                client=client,
                progress=report,
            )
    return [products[product_kernel(kernel)].with_kernel(kernel) for kernel in kernels]


def _folder(product: Kernel) -> str:
    """Name of the store of a kernel: of those with parameters, each has its own."""
    spec = product.to_spec()
    if len(spec) == 1:
        return product.name
    digest = blake2b(json.dumps(spec, sort_keys=True).encode(), digest_size=6).hexdigest()
    return f"{product.name}-{digest}"


def _fit_all(
    grid: Grid, grams: list[GramMatrix], plan: FitPlan, client: Client, report: OnProgress
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
    with closing(run_tasks(client, fit_cells, tasks, plan.window)) as results:
        for found in results:
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
    # Only sphere times are told in units of the sweet spot; twelve digits, so that a scale reads as
    # it was typed.
    scale, label = None, kernel.label
    if time is not None and kernel.spherical:
        scale = float(f"{time * dim / math.log(dim):.12g}")
        label = label.replace(f"t={time:.4g}", f"s={scale:g}")
    return {
        "kernel": kernel.name,
        "label": label,
        "time_scale": scale,
        "time": time,
        "sigma": getattr(kernel, "sigma", None),
        "C": C,
    }


def _tables(grid: Grid, cells: list[_Cells]) -> tuple[dict[str, Any], int]:
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
