"""Held-out test samples, on which the winner of a cross-validation is scored."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.execution.run import Run
from dhsk.gram.matrix import GramMatrix
from dhsk.models.exact import SvcModel
from dhsk.models.low_rank import LowRankModel
from dhsk.models.predict import Predictor
from dhsk.results.parts import HeldOutScore
from dhsk.samples import Samples, check_labels, open_samples
from dhsk.samples.names import in_order
from dhsk.validation.grid import Grid
from dhsk.validation.input import Square
from dhsk.validation.scores import score


@dataclass(frozen=True)
class HeldOutSamples:
    """Test samples and the numbers of their classes."""

    samples: Samples
    y: Indices


def open_held_out(square: Square, test: tuple[Any, Any], grid: Grid) -> HeldOutSamples:
    """Check test samples and labels before any long work.

    InputError if they do not go with the training samples, or if the scorer needs probabilities.
    """
    X, y = test
    if grid.scoring.probabilities:
        raise InputError(
            f"scoring {grid.scoring.name!r} needs probabilities, which the model for a test set "
            "lacks: leave out the test, or choose a scorer of labels or decisions"
        )
    known = None if isinstance(square, np.ndarray) else square
    samples = open_samples(X, vectorizer=None if known is None else known.vectorizer)
    names = None if known is None else known.feature_names
    dim = square.dim if isinstance(square, GramMatrix) else square.shape[1]
    samples = in_order(samples, names, "the training samples", dim)
    labels = check_labels(y, samples.shape[0])
    unknown = np.flatnonzero(~np.isin(labels, grid.classes))
    if len(unknown):
        label = labels[unknown[0]]
        left_out = label in [name for name, _ in grid.dropped]
        raise InputError(
            f"test sample {unknown[0]} has the label {label}, "
            + (
                "a class that min_class leaves out: leave it out of the test samples too"
                if left_out
                else "which no training sample has"
            )
        )
    return HeldOutSamples(samples, np.searchsorted(grid.classes, labels))


def score_held_out(
    model: SvcModel | LowRankModel,
    held_out: HeldOutSamples,
    grid: Grid,
    run: Run,
) -> HeldOutScore:
    """Score a model on test samples, block by block; count by true and predicted class."""
    begin, k = perf_counter(), len(grid.classes)
    row_map = model.row_map
    # The limit of memory is not for this last step: a refusal would lose the whole grid.
    run = Run(client=run.client, report=run.report)
    predictor = Predictor(row_map, model.rows, model.decisions, model.width)
    samples = row_map.to_predict(held_out.samples)
    decisions = predictor.whole(samples, run, 8 * model.width)
    row_map.warn(samples)
    found, guess = score(
        grid.scoring, decisions, np.arange(k), grid.classes, held_out.y, model.multi_class
    )
    confusion = np.zeros((k, k), dtype=np.int64)
    np.add.at(confusion, (held_out.y, guess), 1)
    counts = tuple(map(tuple, confusion.tolist()))
    return HeldOutScore(found, len(held_out.y), counts, perf_counter() - begin)
