"""Cross-validation of exact SVMs over kernels, times, C and folds, on one stored product."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from distributed import Client

from dhsk.errors import InputError
from dhsk.gram.compute import compute_gram
from dhsk.gram.derive import product_kernel
from dhsk.gram.folder import TemporaryFolder
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.sizes import parse_bytes
from dhsk.gram.workers import borrow_client, resources_of
from dhsk.kernels import Kernel
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import Samples, SphereMap
from dhsk.svm.cells import names_of
from dhsk.svm.fit_plan import plan_fits
from dhsk.svm.grid import DEFAULT_C, Grid, candidates, make_grid
from dhsk.svm.job import Candidate, Cells, Job
from dhsk.svm.journal import Journal, digest_of
from dhsk.svm.problems import make_pairs
from dhsk.svm.result import SCHEMA, CvResult, summarise
from dhsk.svm.runners import in_threads, on_workers
from dhsk.svm.sources import ArraySource, GramSource
from dhsk.svm.spectrum import leading_eigenvalues
from dhsk.svm.square import Square, describe, gram_plan, open_square


def cross_validate(
    G_or_X: Any,
    y: Any,
    *,
    time_scale: float | Sequence[float] | None = None,
    kernels: Sequence[Kernel] | Literal["precomputed"] | None = None,
    C: float | Sequence[float] = DEFAULT_C,
    cv: Any = 5,
    groups: Any = None,
    class_weight: Any = None,
    sample_weight: Any = None,
    scoring: str = "accuracy",
    tol: float = 1e-3,
    sphere_map: SphereMap | None = None,
    memory: int | str | None = None,
    client: Client | None = None,
    store: str | Path | None = None,
    journal: str | Path | None = None,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> CvResult:
    """Cross-validate an exact SVM over kernels, diffusion times and C.

    The inner products of the samples are computed once, as a Gram store of cosines (and one of
    plain inner products if a kernel asks for it); every kernel is derived from them. A task fits a
    pair of classes of one kernel: all folds, and all C, each from the solution before. Where its
    part of the matrix does not fit the memory, it is solved in rounds of passes over the matrix.

    Parameters
    ----------
    G_or_X
        A symmetric `GramMatrix`, or samples as for `compute_gram`; with ``kernels="precomputed"`` a
        matrix of one's own, (N, N).
    y
        Labels, (N,), integers or strings.
    time_scale
        Heat kernels to try: time = time_scale * log(dim) / dim. With neither this nor `kernels`:
        0.7, 1 and 1.4 for samples or stored cosines, the kernel of any other matrix itself.
    kernels
        More kernels to try, or "precomputed".
    C
        Bounds of the dual coefficients to try.
    cv
        Number of stratified, shuffled folds; or a scikit-learn splitter, or pairs of index arrays.
    groups
        Group of each sample, (N,), none of which is divided between training and test.
    class_weight
        Factors of C by class: a dict, or "balanced".
    sample_weight
        Factors of C by sample, (N,).
    scoring
        Name of a scikit-learn scorer of labels or decisions: "accuracy", "balanced_accuracy",
        "f1_macro", "roc_auc".
    tol
        KKT violation at which a fit has converged.
    sphere_map
        Map for the spherical kernels; None for "hyperspherical". Only for samples.
    memory
        Most bytes that all processes together may hold, as a number or like "2GB".
    client
        Where to compute; None takes dask's current client, or threads of this process.
    store
        Folder for the stores of inner products, `cosine` and, if a kernel needs it, `linear`, and
        one for each kernel that no products determine; None for temporary ones. Only for samples.
    journal
        Folder where finished fits are kept: the same call again goes on where it was.
    seed
        Of the shuffled folds.
    progress
        Called with a `Progress` after every tile and every task.

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
    source = open_square(G_or_X, precomputed=isinstance(kernels, str))
    begin = perf_counter()
    grid = make_grid(
        source.shape[0], y, cv=cv, groups=groups, seed=seed, C=C, class_weight=class_weight,
        sample_weight=sample_weight, scoring=scoring, tol=tol,
    )  # fmt: skip
    chosen = _kernels(source, time_scale, kernels)
    pairs = make_pairs(grid.y, grid.weights, grid.C)
    dtype = np.dtype(np.float64) if isinstance(source, Samples) else source.dtype
    with borrow_client(client) as workers:
        resources = resources_of(workers, limit)
        plan = plan_fits(pairs, len(grid.y), dtype, max(1, len(chosen)), resources)
        folder = TemporaryFolder()
        place = folder.path if store is None else Path(store)
        grams = _derive(source, chosen, sphere_map, place, limit, workers, report)
        middle = perf_counter()
        run = on_workers(workers, plan.window) if grams else in_threads(plan.at_once)
        found = _of_grams(grams) if grams else [_of_array(source)]
        kept = Journal(None if journal is None else Path(journal))
        cells = Job(grid, pairs, found, plan, kept, run, report).results()
        ended = perf_counter()
        tables, winner = _tables(grid, cells)
        data = tables | _spectrum(found[winner], report)
    data |= {
        "schema": SCHEMA,
        "version": version("dhsk"),
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "samples": describe(source, grams[0] if grams else None),
        "folds": {"n": len(grid.folds), "splitter": grid.splitter},
        "scoring": scoring,
        "tol": grid.tol,
        "plan": [*gram_plan(grams[0] if grams else source, resources), *plan.table()],
        "seconds": {
            "gram": middle - begin, "fits": ended - middle, "total": perf_counter() - begin
        },
    }  # fmt: skip
    return CvResult(data)


def _kernels(
    source: Square, time_scale: Any, kernels: Sequence[Kernel] | str | None
) -> list[Kernel]:
    """Kernels to try; none for a matrix of the user's own."""
    if isinstance(source, np.ndarray):
        if kernels != "precomputed" or time_scale is not None:
            raise InputError(f"a matrix needs kernels='precomputed' alone, got {kernels!r}")
        return []
    if isinstance(kernels, str):
        raise InputError("a GramMatrix has its kernels: give others, or none, not 'precomputed'")
    return candidates(source, time_scale, kernels)


def _derive(
    source: Square,
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


def _of_grams(grams: Sequence[GramMatrix]) -> list[Candidate]:
    return [
        Candidate(
            GramSource(G),
            names_of(G.kernel, G.dim),
            [
                G.kernel.to_spec(),
                list(G.header.fingerprints),
                G.sphere_map,
                str(G.dtype),
                str(G.header.product_dtype),
            ],
        )
        for G in grams
    ]


def _of_array(K: Any) -> Candidate:
    names = dict.fromkeys(("kernel", "label"), "precomputed")
    nothing = dict.fromkeys(("time_scale", "time", "sigma"))
    return Candidate(ArraySource(K), names | nothing, digest_of(K))


def _tables(grid: Grid, cells: Sequence[Cells]) -> tuple[dict[str, Any], int]:
    """Rows, their summary, how the winner confuses classes; and the number of its kernel."""
    rows = [row for cell in cells for row in cell.rows]
    summary = summarise(rows)
    best = max(range(len(summary)), key=lambda k: summary[k]["mean"])  # of equals the first
    kernel, C = divmod(best, len(grid.C))
    confusion = np.zeros((len(grid.classes), len(grid.classes)), dtype=np.int64)
    for fold, (_, test) in enumerate(grid.folds):
        guess = np.asarray(cells[kernel].predicted[fold * len(grid.C) + C])
        np.add.at(confusion, (grid.y[test], guess), 1)
    tables = {
        "classes": grid.classes.tolist(),
        "class_counts": np.bincount(grid.y).tolist(),
        "rows": rows,
        "summary": summary,
        "best": summary[best],
        "confusion": confusion.tolist(),
    }
    return tables, kernel


def _spectrum(candidate: Candidate, report: OnProgress) -> dict[str, Any]:
    """Leading eigenvalues and trace."""
    report(Progress("eigenvalues", 0, 1))
    values, exact = leading_eigenvalues(candidate.source)
    report(Progress("eigenvalues", 1, 1))
    return {
        "eigenvalues": values.tolist(),
        "eigenvalues_exact": exact,
        "trace": float(candidate.source.diagonal().sum()),
    }
