"""Cross-validation of SVMs over kernels, times, C and folds: exact, or of low rank."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dhsk.bars import Show
from dhsk.costs import tell_cost
from dhsk.errors import InputError
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.folder import TemporaryFolder
from dhsk.kernels import HeatKernel
from dhsk.kernels.base import chosen_parameter
from dhsk.models.exact import SvcModel
from dhsk.models.problem import ClassWeight
from dhsk.objects.places import Place, parse_place, scratch_in
from dhsk.results.asked import SEARCHES, Choose, Fitting, Output, Refit, Search
from dhsk.results.columns import Cell, bare, is_rest, rows_by_point, summarise
from dhsk.results.decision import decide, rivals_in
from dhsk.results.low_rank import LowRank
from dhsk.results.parts import ChoiceOfBest, Timings
from dhsk.samples.weighted import MapName
from dhsk.solvers.problems import MultiClass
from dhsk.units import parse_bytes
from dhsk.validation.baselines import asked_for, baselines_of, with_methods
from dhsk.validation.cautions import look_at, look_back
from dhsk.validation.costs import cost_of
from dhsk.validation.disk import remove_stores
from dhsk.validation.engine import NO_MODEL, CvOptions, Engine, TriedKernel
from dhsk.validation.examined import examine
from dhsk.validation.folds import divide
from dhsk.validation.grid import DEFAULT_C, Grid, Kernels, make_grid, ways_of
from dhsk.validation.grid_progress import MODEL, GridProgress
from dhsk.validation.halving import Halving, sizes_of_rounds
from dhsk.validation.held_out import HeldOutSamples, open_held_out, score_held_out
from dhsk.validation.input import Square, has_samples, open_square, samples_first
from dhsk.validation.low_rank import checked
from dhsk.validation.out_of_fold import HeldOutPredictions
from dhsk.validation.result import CvResult
from dhsk.validation.runs import EngineMaker, Maps, make_runs
from dhsk.validation.scores import Scorer
from dhsk.validation.search import SPREAD_C
from dhsk.validation.spent import spent
from dhsk.validation.stages import is_default, kernels_of, rows_of

if TYPE_CHECKING:
    from distributed import Client


MOST_WEIGHTS: Final = 12
"""Features that results name for each class."""


@samples_first
def cross_validate(
    G_or_X: Any,
    y: Any,
    *,
    time_scale: float | Sequence[float] | Literal["auto"] | None = None,
    kernels: Kernels | Literal["precomputed"] | None = None,
    C: float | Sequence[float] | Literal["auto"] | None = None,
    cv: Any = 5,
    groups: Any = None,
    class_weight: ClassWeight = None,
    sample_weight: Any = None,
    scoring: str | Scorer | None = "accuracy",
    fit: Fitting = Fitting(),  # noqa: B008 - it is frozen
    refit: bool | Refit = False,
    low_rank: LowRank | None = None,
    sphere_map: MapName | Literal["auto"] | None = None,
    multi_class: MultiClass | Literal["auto"] = "auto",
    search: Search = "halving",
    memory: int | str | None = None,
    client: "Client | None" = None,
    out: str | Place | Output | None = None,
    progress: Show = None,
) -> CvResult:
    """Cross-validate an SVM over kernels, diffusion times and C: exact, or of low rank.

    Exact, the inner products of the samples are computed once, as a Gram store of cosines (and one
    of plain inner products if a kernel asks for it); every kernel is derived from them. A task fits
    a pair of classes of one kernel: all folds, and all C, each from the solution before. Where its
    part of the matrix does not fit the memory, it is solved in rounds of passes over the matrix.
    Samples without `store` are then solved on working sets instead, and also where the products do
    not fit the disk: kernel values are computed on demand, all pairs, folds and C of a kernel share
    them, and no products are stored.

    With `low_rank`, Nyström features take the place of the matrix, and linear classifiers on them
    that of the exact ones, one class against the rest: all classes, folds and C share every pass
    over the features. Landmarks are chosen among all samples, without their labels, once a kernel.

    Parameters
    ----------
    G_or_X
        A symmetric `GramMatrix`, or samples as for `compute_gram`; with ``kernels="precomputed"`` a
        precomputed matrix, (N, N).
    y
        Labels, (N,), integers or strings.
    time_scale
        Heat kernels to try: time = time_scale * log(dim) / dim. "auto" looks for the best one,
        coarse to fine: it starts where the kernel tells these samples apart (mean of 1 - K over
        pairs from 0.9 to 0.1), and goes no further than where the kernel has become linear. With
        neither this nor `kernels`, samples and stored cosines get the same search beside the cosine
        kernel and, for samples, the linear kernel on them as they are, unless they are counts whose
        totals differ; texts also get the cosine kernel on tf-idf. Of any other matrix it is the
        kernel itself.
    kernels
        More kernels to try, or their names as for `compute_gram`: "heat" and "parametrix" at each
        time of `time_scale`, by default 0.7, 1 and 1.4. Or "precomputed".
    C
        Bounds of the dual coefficients to try; None for 0.1, 1 and 10, or in a search of times for
        "auto": 0.5, 1.5, 5 and 15 over the spread of the samples under each kernel (mean diagonal
        less mean of all entries), so that flat kernels have the C they need. A search then enlarges
        or lowers C until the best one lies inside, from 0.005 to 5,000 over the spread. The results
        have these units as ``C_scaled`` beside ``C``.
    cv
        Number of stratified folds, shuffled with seed 0; or a scikit-learn splitter, or pairs of
        index arrays. `StratifiedFolds` has other seeds, divides the samples several times, and
        leaves out classes of few samples. All repeats of a splitter that repeats, as
        `RepeatedStratifiedKFold` does too, share the kernel matrices. Rows of the results count
        folds through; `CvResult.repeats_` tells the repeats apart. With fewer samples than folds, a
        class is missing from the training or the test part of some: scores count its samples as
        wrong in folds that are trained without it.
    groups
        Group of each sample, (N,), for the splitter. A number of folds divides none of them between
        training and test.
    class_weight
        Factors of C by class: a dict, or "balanced".
    sample_weight
        Factors of C by sample, (N,). Scores count all samples alike.
    scoring
        Name of a scikit-learn scorer, such as "accuracy", "balanced_accuracy", "f1_macro",
        "roc_auc", "neg_log_loss"; or what `sklearn.metrics.make_scorer` gives, or a function of a
        classifier, samples (without content) and labels. Probabilities, where one asks for them,
        are Platt's: a fold's sigmoids are fitted to what the other folds hold out.
    fit
        Tolerance of each fit, and whether samples of zeros and kernels that are not positive
        semi-definite are taken, see `Fitting`. The model of `refit` keeps it.
    refit
        Whether to fit the cell that is taken on all samples too: the `model_` of the result. A
        `Refit` says which cell is taken, and has test samples on which that model is scored.
    low_rank
        Rank, landmarks and loss of fits on features of low rank; None for exact ones. Only for
        samples. Products and features are then in float32, which rounds far less than a low rank
        leaves out, where the kernel takes it.
    sphere_map
        Map for the spherical kernels; None for their own. Only for samples. "tfidf", for counts, is
        the projective map of counts times inverse document frequencies, which are learnt in every
        fold from its training part; each fold then has products of its own. "scaled" is the
        `StandardScaler` of each fold before Gaussian and linear kernels, with means in gaps (NaN of
        dense samples), for which a search takes it. "auto" tries "tfidf" beside the kernels' map,
        as kernels that are called "tf-idf heat", ..., and of dense samples log-ratios, "clr heat",
        ... Without kernels and times, fewer than 5,000 dense samples that seem to be compositions
        (of one total, or counts whose totals differ) get "clr cosine" unasked.
    multi_class
        Exact fits of three classes and more: "ovo", each pair of classes, or "ovr", each class
        against the rest, whose kernels are called "heat, one-vs-rest", ... "auto" tries both where
        times are searched for, from 64 classes on "ovr" alone. Elsewhere it is "ovo" up to ten
        classes and "ovr" above, as in `HeatSVC`. A sample has the weight of its own class in all
        fits.
    search
        How the search without `time_scale` and `kernels` goes on 5,000 samples or more. "halving":
        everything is tried on a sample of 1,000 to 3,000, where that is expected to save time, and
        on all samples the best kernel of each family, at its best C and, if the family may still
        win, the neighbours. "full": everything is tried on all samples.
    memory
        Most bytes that all processes together may hold, as a number or like "2GB".
    client
        Where to compute; None takes dask's current client, or threads of this process.
    out
        Folder or ``s3://`` prefix for what is finished while the grid runs, from which the same
        call continues. An `Output` also says where products are stored, how much disk they may
        take, and what is computed for the report.
    progress
        Function that is called with a `Progress` after every tile and every task; True for bars.

    Returns
    -------
    CvResult
        Scores, winner, confusion matrix, eigenvalues; the model, if asked for. Cells with fits that
        did not converge win only if there are no others. On working sets eigenvalues are left out,
        VC bounds are from larger balls, and "auto" takes the spread from a sample of columns.

    Warns
    -----
    InputWarning
        A class has fewer samples than there are folds; a column alone tells every label; or labels,
        groups or weights have the index of the samples in another order, as rows are paired by
        position.

    Raises
    ------
    InputError
        Samples, labels or parameters cannot be used.
    BudgetError
        The fits do not fit the memory, or the results or products the disk.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> result = dhsk.cross_validate(X[:500], y[:500], time_scale=[0.5, 1.0], C=[1, 10], cv=3)
    >>> round(result.best_score_, 2)
    0.98
    """
    begin = perf_counter()
    if not isinstance(fit, Fitting):
        raise InputError(f"fit must be a dhsk.Fitting, got {fit!r:.80}")
    taken, output = Refit.of(refit), Output.of(out)
    places = _places(output)
    square = _square(G_or_X, kernels, model=taken.fits)
    low_rank = checked(low_rank, square)
    default = is_default(square, time_scale, kernels)
    look = _is_auto("time_scale", time_scale) or default
    scale_C = _is_auto("C", C) or (C is None and look)
    grid = make_grid(
        divide(square.shape[0], y, cv, groups),
        SPREAD_C if scale_C else DEFAULT_C if C is None else C, tol=fit.tol,
        class_weight=class_weight, sample_weight=sample_weight, scoring=scoring or "accuracy",
    )  # fmt: skip
    grid = replace(grid, in_spreads=scale_C)
    if low_rank is None:
        grid = replace(grid, ways=ways_of(multi_class, len(grid.classes), search=look))
    maps = Maps.of(sphere_map, square, default=default)
    chosen_parameter("search", search, SEARCHES)
    rounds = sizes_of_rounds(search, square, grid, default=default)
    kernels_on = partial(
        kernels_of, time_scale=time_scale, kernels=kernels, zero_rows=fit.zero_rows,
        indefinite=fit.indefinite,
    )  # fmt: skip
    held_out = None if taken.test is None else open_held_out(square, taken.test, grid)
    look_at(square, grid)
    asked = asked_for(output.baselines, square, default=default)
    temporary = TemporaryFolder()
    begun = CvOptions.begun(
        progress, memory=memory, client=client, store=places["store"] or temporary.path,
        journal=places["journal"], scratch=scratch_in(places["journal"]),
    )  # fmt: skip
    with begun as (run, report), spent(run.journal) as seconds:
        told = GridProgress(report, (asked is not False, output.eigenvalues is True, taken.fits))
        options = _options(run, told, output, places["table"])
        make = EngineMaker(fit.zero_rows, low_rank, options)
        runs = make_runs(maps, square, grid, kernels_on, make)
        cost = partial(cost_of, runs, square, grid, options, low_rank, rounds, look=look)
        tell_cost(partial(with_methods, cost, square, asked))
        halving = Halving(rounds, maps, square, grid, kernels_on, make)
        runs, halved = halving.run(runs, look=look)
        look_back(square, groups)
        winner, scores = _scores(grid, runs.tried, taken.choose)
        engine = runs.engine_of(winner)
        fitted = perf_counter()
        beside = baselines_of(square, grid, options, scores["rows"], asked, seconds())
        facts = engine.facts(winner)
        seen = scores["held_out_"].numbered(scores["best"].point)
        examined = examine(seen, partial(engine.among, winner), square)
        own = _parameters(scores["best"], fit, class_weight, low_rank)
        on_all = _refit(engine, winner, own, grid, held_out, options) if taken.fits else {}
        remove_stores(options)
        told.end()
    return CvResult(
        **vars(facts), **grid.described, **scores, **on_all, **halved.with_last(runs.search),
        version=version("dhsk"), created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        low_rank=low_rank, examined=examined, baselines=beside,
        seconds=_timings(runs.prepared, begin, fitted),
    )  # fmt: skip


def _places(output: Output) -> dict[str, Place | None]:
    """Where products, checkpoints and finished rows are kept; None for nowhere."""
    folder = None if output.folder is None else parse_place("out", output.folder)
    kept = {"store": "fits/gram", "journal": "fits", "table": "results.csv"}
    found = {name: None if folder is None else folder / where for name, where in kept.items()}
    store = output.store
    return found if store is None else found | {"store": parse_place("store", store)}


def _options(run: CvOptions, told: GridProgress, output: Output, table: Place | None) -> CvOptions:
    """Where engines compute, and what they keep; InputError in an array job."""
    if isinstance(run.client, ArrayJob):
        raise InputError(
            "an array job does not share a cross-validation: run it outside of the job, or on "
            "a client of Dask"
        )
    disk = None if output.disk is None else parse_bytes(output.disk, "disk")
    return replace(
        run, report=told, table=table, on_demand=output.store is None, disk=disk,
        eigenvalues=output.eigenvalues,
    )  # fmt: skip


def _timings(prepared: float, begin: float, fitted: float) -> Timings:
    """Seconds of a run that began and had fitted its kernels at some times, and ends now."""
    return Timings(prepared, fitted - begin - prepared, perf_counter() - begin)


def _is_auto(name: str, value: Any) -> bool:
    """Whether a parameter is the word "auto"; any other word is refused."""
    if isinstance(value, str) and value != "auto":
        raise InputError(f"{name} must be numbers or 'auto', got {value!r}")
    return isinstance(value, str)


def _square(G_or_X: Any, kernels: Any, *, model: bool) -> Square:
    """Samples or a matrix; InputError for one without samples if a `model` is to be made."""
    precomputed = isinstance(kernels, str) and kernels == "precomputed"
    square = open_square(G_or_X, precomputed=precomputed)
    if model and not has_samples(square):
        raise InputError(NO_MODEL)
    return square


def _scores(
    grid: Grid, tried: Sequence[TriedKernel], choose: Choose
) -> tuple[TriedKernel, dict[str, Any]]:
    """The kernel that won; and rows, cells, winner and its confusion, as `CvResult` has them."""
    rows = rows_of(tried)
    summary = summarise(rows)
    sizes = grid.splitting.sizes(grid.repeats, int(grid.counts.sum()))
    decision = decide(summary, rows_by_point(rows), sizes)
    best = decision.best if choose == "best" else decision.simplest.cell
    choice = ChoiceOfBest(choose, len(summary) - len(rivals_in(summary)))
    counts = np.zeros((len(grid.classes), len(grid.classes)), dtype=np.int64)
    for one in tried:
        for row, guess in zip(one.cells.rows, one.cells.predicted, strict=True):
            if row.point == best.point:
                winner = one
                np.add.at(counts, (grid.y[grid.folds[row.fold][1]], np.asarray(guess)), 1)
    confusion = tuple(map(tuple, counts.tolist()))
    held_out = HeldOutPredictions(
        classes=grid.classes,
        y=grid.y,
        tests=[test for _, test in grid.folds],
        repeats=grid.repeats,
        cells={point: kept for one in tried for point, kept in one.cells.by_point().items()},
    )
    return winner, {
        "held_out_": held_out,
        "rows": tuple(rows),
        "summary": summary,
        "best": best,
        "choice": choice,
        "confusion": confusion,
    }


def _refit(
    engine: Engine,
    winner: TriedKernel,
    parameters: dict[str, Any],
    grid: Grid,
    held_out: HeldOutSamples | None,
    options: CvOptions,
) -> dict[str, Any]:
    """The taken cell on all samples: model, certificate, and score on samples held out."""
    score, told = None, options.report
    told.what = MODEL
    with told.part(MODEL, 1.0):
        which = parameters.get("multi_class", "ovo")
        model, proof = engine.refit(winner, parameters["C"], which)
        if held_out is not None:
            score = score_held_out(model, held_out, grid, options)
    made = {"model_": model, "refit": proof, "test": score}
    if isinstance(model, SvcModel):
        made["weights"] = model.class_weights(MOST_WEIGHTS)
    return made | {"estimator_parameters_": parameters}


def _parameters(
    best: Cell, fit: Fitting, class_weight: ClassWeight, low_rank: LowRank | None
) -> dict[str, Any]:
    """Parameters of the estimator that is fitted as the taken cell was, but kernel and map."""
    found: dict[str, Any] = {"C": best.C, "class_weight": class_weight}
    found |= {"tol": float(fit.tol), "zero_rows": fit.zero_rows}
    if low_rank is None:
        found["multi_class"] = "ovr" if is_rest(best.kernel) else "ovo"
    if bare(best.kernel) == HeatKernel.name:
        found["time_scale"] = best.time_scale
    if low_rank is not None:
        names = [field.name for field in fields(low_rank) if field.name != "rank"]
        found |= {name: getattr(low_rank, name) for name in names} | {"n_components": best.rank}
    if fit.indefinite != "error":
        found["indefinite"] = fit.indefinite
    return found
