"""Cross-validation of exact SVMs over kernels, times, C and folds, on one stored product."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
from distributed import Client

from dhsk.errors import InputError
from dhsk.gram.folder import TemporaryFolder
from dhsk.gram.sizes import parse_bytes
from dhsk.gram.workers import borrow_client, resources_of
from dhsk.kernels import HeatKernel, Kernel
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import Samples, SphereMap
from dhsk.svm.fitter import NO_MODEL, Fitter, Found
from dhsk.svm.grid import DEFAULT_C, Grid, candidates, make_grid
from dhsk.svm.held_out import open_held_out, score_held_out
from dhsk.svm.journal import Journal
from dhsk.svm.products import Products
from dhsk.svm.result import CELL, SCHEMA, CvResult, summarise
from dhsk.svm.search import FIRST_SCALES, SPREAD_C, next_scales
from dhsk.svm.spectrum import leading_eigenvalues
from dhsk.svm.square import Square, describe, gram_plan, open_square


def cross_validate(
    G_or_X: Any,
    y: Any,
    *,
    time_scale: float | Sequence[float] | Literal["auto"] | None = None,
    kernels: Sequence[Kernel] | Literal["precomputed"] | None = None,
    C: float | Sequence[float] | Literal["auto"] | None = None,
    cv: Any = 5,
    groups: Any = None,
    class_weight: Any = None,
    sample_weight: Any = None,
    scoring: str = "accuracy",
    tol: float = 1e-3,
    refit: bool = False,
    test: tuple[Any, Any] | None = None,
    sphere_map: SphereMap | None = None,
    memory: int | str | None = None,
    client: Client | None = None,
    store: str | Path | None = None,
    journal: str | Path | None = None,
    table: str | Path | None = None,
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
        "auto" looks for the best one around the sweet spot, coarse to fine.
    kernels
        More kernels to try, or "precomputed".
    C
        Bounds of the dual coefficients to try; None for 0.1, 1 and 10, or with
        ``time_scale="auto"`` for "auto": 0.5, 1.5, 5 and 15 over the spread of the samples under
        each kernel (mean diagonal less mean of all entries), so that flat kernels have the C they
        need.
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
        KKT violation at which a fit has converged. If rounding leaves more the fit ends there, and
        its row says that it did not converge.
    refit
        Fit the best cell on all samples too: the `model_` of the result.
    test
        Samples and labels held out from everything, on which that model is scored.
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
    table
        CSV file for the rows of `CvResult.results_` while the grid runs: replaced, in one step,
        after each kernel that is finished. One that is there at the start is removed.
    seed
        Of the shuffled folds.
    progress
        Called with a `Progress` after every tile and every task.

    Returns
    -------
    CvResult
        Scores, winner, confusion matrix, eigenvalues; the model, if asked for.

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
    look = _is_auto("time_scale", time_scale)
    scale_C = _is_auto("C", C) or (C is None and look)
    if isinstance(source, np.ndarray) and (refit or test is not None):
        raise InputError(NO_MODEL)
    grid = make_grid(
        source.shape[0], y, cv=cv, groups=groups, seed=seed,
        C=SPREAD_C if scale_C else DEFAULT_C if C is None else C,
        class_weight=class_weight, sample_weight=sample_weight, scoring=scoring, tol=tol,
    )  # fmt: skip
    chosen = _kernels(source, time_scale, kernels)
    held_out = None if test is None else open_held_out(source, test, grid)
    folder = TemporaryFolder()
    with borrow_client(client) as workers, workers.as_current():
        kept = Journal(None if journal is None else Path(journal))
        rows = None if table is None else Path(table)
        fitter = Fitter(grid, resources_of(workers, limit), workers, kept, rows, report)
        dtype = np.dtype(np.float64) if isinstance(source, Samples) else source.dtype
        plan = fitter.plan(dtype, max(1, len(chosen)))
        if rows is not None:
            rows.unlink(missing_ok=True)
        place = folder.path if store is None else Path(store)
        products = Products(source, sphere_map, place, limit, workers, report)
        first = products.candidates(chosen)
        middle = perf_counter()
        found = fitter.run(first, scale_C=scale_C)
        tried = _look_further(fitter, products, source, found, scale_C=scale_C) if look else []
        data, winner = _tables(grid, found)
        ended = perf_counter()
        data |= _spectrum(winner, report)
        model = None
        if refit or held_out is not None:
            model, data["refit"] = fitter.refit(winner.candidate, data["best"]["C"])
        if held_out is not None and model is not None:
            data["test"] = score_held_out(model, held_out, grid)
    data |= {
        "schema": SCHEMA,
        "version": version("dhsk"),
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "samples": describe(source, products.made),
        "folds": {"n": len(grid.folds), "splitter": grid.splitter},
        "scoring": scoring,
        "tol": grid.tol,
        "plan": [*gram_plan(products.made or source, fitter.resources), *plan.table()],
        "seconds": {
            "gram": middle - begin, "fits": ended - middle, "total": perf_counter() - begin
        },
    } | ({"search": tried} if tried else {})  # fmt: skip
    return CvResult(data, model)


def _is_auto(name: str, value: Any) -> bool:
    """Whether a parameter is the word "auto"; any other word is refused."""
    if isinstance(value, str) and value != "auto":
        raise InputError(f"{name} must be numbers or 'auto', got {value!r}")
    return isinstance(value, str)


def _kernels(
    source: Square, time_scale: Any, kernels: Sequence[Kernel] | str | None
) -> list[Kernel]:
    """Kernels to try first; none for a matrix of the user's own."""
    if isinstance(source, np.ndarray):
        if kernels != "precomputed" or time_scale is not None:
            raise InputError(f"a matrix needs kernels='precomputed' alone, got {kernels!r}")
        return []
    if isinstance(kernels, str):
        raise InputError("a GramMatrix has its kernels: give others, or none, not 'precomputed'")
    return candidates(source, FIRST_SCALES if isinstance(time_scale, str) else time_scale, kernels)


def _look_further(
    fitter: Fitter, products: Products, source: Square, found: list[Found], *, scale_C: bool
) -> list[dict[str, Any]]:
    """Go on at other times while that may pay; what is found is added, each stage described."""
    stages = [_stage(found, "around the sweet spot")]
    while True:
        tried: dict[float, float] = {}
        for row in summarise(row for one in found for row in one.cells.rows):
            if row["kernel"] == HeatKernel.name:
                scale = row["time_scale"]
                tried[scale] = max(row["mean"], tried.get(scale, -np.inf))
        scales, why = next_scales(tried, len(stages))
        if not scales:
            return stages
        kernels = _kernels(source, scales, None)
        more = fitter.run(products.candidates(kernels), scale_C=scale_C)
        found += more
        stages.append(_stage(more, why))


def _stage(found: Sequence[Found], why: str) -> dict[str, Any]:
    """What a stage of the search tried, and its best cell."""
    summary = summarise(row for one in found for row in one.cells.rows)
    best = max(summary, key=lambda row: row["mean"])
    return {
        "time_scales": sorted({row["time_scale"] for row in summary if row["time_scale"]}),
        "C": sorted({C for one in found for C in one.C}),
        "best": {name: best[name] for name in ("label", "C", "mean")},
        "why": why,
    }


def _tables(grid: Grid, found: Sequence[Found]) -> tuple[dict[str, Any], Found]:
    """Rows, their summary, how the winner confuses classes; and the winner."""
    rows = [row for one in found for row in one.cells.rows]
    summary = summarise(rows)
    best = max(summary, key=lambda row: row["mean"])  # of equals the first
    cell = {name: best[name] for name in CELL}
    confusion = np.zeros((len(grid.classes), len(grid.classes)), dtype=np.int64)
    for one in found:
        for row, guess in zip(one.cells.rows, one.cells.predicted, strict=True):
            if {name: row[name] for name in CELL} == cell:
                winner = one
                np.add.at(confusion, (grid.y[grid.folds[row["fold"]][1]], np.asarray(guess)), 1)
    tables = {
        "classes": grid.classes.tolist(),
        "class_counts": np.bincount(grid.y).tolist(),
        "rows": rows,
        "summary": summary,
        "best": best,
        "confusion": confusion.tolist(),
    }
    return tables, winner


def _spectrum(found: Found, report: OnProgress) -> dict[str, Any]:
    """Leading eigenvalues and trace."""
    source = found.candidate.source
    report(Progress("eigenvalues", 0, 1))
    values, exact = leading_eigenvalues(source)
    report(Progress("eigenvalues", 1, 1))
    return {
        "eigenvalues": values.tolist(),
        "eigenvalues_exact": exact,
        "trace": float(source.diagonal().sum()),
    }
