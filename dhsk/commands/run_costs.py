"""Costs of training and of predictions, by the plans of the computations themselves."""

from typing import Any, Literal

import numpy as np

from dhsk.costs import Cost
from dhsk.execution.limits import core_count
from dhsk.execution.resources import Resources
from dhsk.execution.run import Run
from dhsk.gram.plan import make_plan
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.tiling import DtypeName
from dhsk.models.fit_plan import FitCounts, plan_exact, plan_fits
from dhsk.models.low_rank_plan import plan_low_rank
from dhsk.models.predict import BlockNeed, plan_prediction
from dhsk.models.sources import RowsShape
from dhsk.planning.fits import (
    FLOPS,
    SUPPORT,
    exact_seconds,
    features_seconds,
    few_support_seconds,
    reading_seconds,
)
from dhsk.planning.prediction import KERNEL_SECONDS, Prediction
from dhsk.planning.rates import TYPICAL, known_rates
from dhsk.samples import Samples
from dhsk.solvers.problems import MultiClass, way_of_model
from dhsk.units import counted

MEASURED_FROM = 50_000
"""Samples from which a fit takes long beside the second in which a machine is measured."""

LABEL_BYTES, NUMBER_BYTES = 8, 20
"""Bytes of a label and of a number in a table of predictions, about."""


def exact_cost(
    samples: Samples,
    y: Any,
    dtype: str,
    run: Run,
    multi_class: MultiClass | Literal["auto"] = "auto",
) -> Cost:
    """Cost of an exact SVM, in this process or on workers."""
    rows, sizes = RowsShape.of_samples(samples, dtype), np.unique(y, return_counts=True)[1].tolist()
    way = way_of_model(multi_class, len(sizes))
    counts = FitCounts.of_classes(sizes, multi_class=way)
    resources, store = run.resources, run.store is not None
    layout = "triangle" if store else "none"
    prediction = _prediction(samples, dtype, resources, layout)
    gram = prediction.plan
    products = 0
    if run.client is None and not store:
        peak = plan_exact(rows, counts, sizes, run.allowance).need.total
    else:
        products = gram.disk_bytes
        fits = plan_fits(counts, np.dtype(dtype), 1, resources, None if store else "working sets")
        peak = max(fits.need.total, gram.peak_bytes)
    speeds = prediction.of_core
    model = int(SUPPORT * (rows.nbytes + 8 * rows.n * (len(sizes) - 1)))
    return Cost(
        what=f"exact SVM of {_words(samples)}, {counted(len(sizes), 'class', 'classes')}",
        seconds=exact_seconds(sizes, 1, 1, core_count(), speeds.entry, [way]),
        memory=peak,
        disk=products + model,
        stays=(products if store else 0) + model,
        sooner="a sample of the rows first, or --rank 1000",
        least=few_support_seconds(sizes, core_count(), speeds, way),
    )


def low_rank_cost(samples: Samples, y: Any, dtype: str, landmarks: int, run: Run) -> Cost:
    """Cost of a linear classifier on Nyström features, in this process or on workers."""
    rows, classes = RowsShape.of_samples(samples, dtype), len(np.unique(y))
    columns, resources = 1 if classes == 2 else classes, run.resources
    fit = plan_low_rank(rows, landmarks, columns, run.allowance)
    tier = fit.way if run.client is None else "on workers"
    prediction = _prediction(samples, dtype, resources, "none")
    model = landmarks * (rows.nbytes // rows.n + 8 * columns)
    return Cost(
        what=f"linear SVM on {landmarks:,} Nyström features: {_words(samples)}, {classes} classes",
        seconds=prediction.seconds_of_low_rank(landmarks, columns, tier),
        memory=fit.need.total,
        disk=model if run.client is None else model + prediction.plan.disk_bytes,
        stays=model,
    )


def features_cost(
    samples: Samples, run: Run, dtype: str, landmarks: int, width: int, fitted: RowsShape | None
) -> Cost:
    """Cost of Nyström features in a store, by landmarks to be chosen, or by `fitted` ones."""
    n, rows = samples.shape[0], RowsShape.of_samples(samples, dtype)
    prediction = _prediction(samples, dtype, run.resources, "none")
    speeds, cores = prediction.of_core, prediction.at_once
    store = n * width * rows.itemsize
    model = landmarks * (rows.nbytes // n + 8 * width)
    writing = n * landmarks * (speeds.entry + width * speeds.product) / cores
    seconds, copied = 2 * reading_seconds(n, speeds) + writing, 0
    if fitted is None:
        seconds += reading_seconds(n, speeds) + features_seconds(n, landmarks, cores, speeds)
        memory = plan_low_rank(rows, landmarks, 0, run.allowance).need.total
        copied = 0 if run.client is None else prediction.plan.disk_bytes
    else:
        block = BlockNeed(samples, fitted, width)
        memory = plan_prediction(block, 0, run.allowance).need.total
    return Cost(
        what=f"{width:,} features of {_words(samples)} by {landmarks:,} landmarks",
        seconds=seconds,
        memory=memory,
        disk=copied + store + 2 * model,
        stays=store + 2 * model,
        sooner="fewer features, or --oversampling 1",
    )


def _prediction(samples: Samples, dtype: str, resources: Resources, layout: str) -> Prediction:
    """Prediction of the matrix of samples, by rates that are measured if there are many."""
    product_dtype: DtypeName = "float32" if dtype == "float32" else "float64"
    sides = GramSides.of([samples])
    plan = make_plan(sides, resources, layout=layout, product_dtype=product_dtype)
    rates = known_rates() if samples.shape[0] >= MEASURED_FROM else TYPICAL
    return Prediction(plan, rates, KERNEL_SECONDS[product_dtype])


def prediction_cost(
    samples: Samples, fitted: RowsShape, width: int, columns: int, run: Run
) -> Cost:
    """Cost of predictions, of which a table has some columns, a label and numbers."""
    allowed = run.allowance
    need = plan_prediction(BlockNeed(samples, fitted, width), 0, allowed).need
    n = samples.shape[0]
    table = n * (LABEL_BYTES + NUMBER_BYTES * (columns - 1))
    multiply_adds = fitted.dim if fitted.nnz is None else fitted.nnz / max(fitted.n, 1)
    return Cost(
        what=f"predictions of {_words(samples)} by {fitted.n:,} fitted samples",
        seconds=2 * n * fitted.n * (multiply_adds + width) / (FLOPS * allowed.cores),
        memory=need.total,
        disk=table,
        stays=table,
    )


def _words(samples: Samples) -> str:
    n, dim = samples.shape
    return f"{n:,} samples of {counted(dim, 'feature')}"
