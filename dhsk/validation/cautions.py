"""Warnings of what makes scores too high: copied labels, repeated samples, folds across time."""

from typing import Any

from dhsk.samples import Samples
from dhsk.samples.dates import warn_of_order
from dhsk.samples.gaps import warn_of_codes
from dhsk.samples.looks import first_rows, warn_of_copied_labels, warn_of_repeated
from dhsk.validation.examined import check_ids
from dhsk.validation.grid import Grid
from dhsk.validation.input import Square


def look_at(square: Square, grid: Grid) -> None:
    """Refuse ids that cannot be read, and warn before any work.

    Of a feature that has the labels, of numbers that may stand for gaps, and of folds that are
    trained on what comes after what they test, where rows follow dates.
    """
    check_ids(square)
    if isinstance(square, Samples):
        warn_of_copied_labels(square, grid.y)
        if not square.is_sparse:
            warn_of_codes(first_rows(square), square)
        ordered = all(train.max() < test.min() for train, test in grid.folds)
        warn_of_order(square, ordered=ordered)


def look_back(square: Square, groups: Any) -> None:
    """Warn of samples that equal others, now that all were read, unless groups divide them."""
    if isinstance(square, Samples) and groups is None:
        warn_of_repeated(square)
