"""Warnings of what makes scores too high: copied labels, repeated samples, folds across time."""

from typing import Any, Final

import numpy as np

from dhsk.errors import warn
from dhsk.samples import Samples
from dhsk.samples.dates import warn_of_order
from dhsk.samples.distances import warn_of_distances
from dhsk.samples.gaps import warn_of_codes
from dhsk.samples.kinds import groups_left_out
from dhsk.samples.looks import first_rows, warn_of_copied_labels, warn_of_repeated
from dhsk.samples.names import shown
from dhsk.systems import quoted
from dhsk.validation.examined import check_ids
from dhsk.validation.grid import Grid
from dhsk.validation.input import Square
from dhsk.validation.scores import ACCURACY

_LISTED: Final = 5
"""Folds that a message names."""


def look_at(square: Square, grid: Grid) -> None:
    """Refuse ids that cannot be read, and warn before any work.

    Of a feature that has the labels, of numbers that may stand for gaps, and of folds that are
    trained on what comes after what they test, where rows follow dates; and of scores by class
    where folds test none of some class.
    """
    check_ids(square)
    if grid.scoring != ACCURACY:
        _warn_of_untested(grid)
    if isinstance(square, Samples):
        warn_of_copied_labels(square, grid.y)
        if not square.is_sparse:
            warn_of_codes(first_rows(square), square)
            warn_of_distances(square)
        ordered = all(train.max() < test.min() for train, test in grid.folds)
        warn_of_order(square, ordered=ordered)
        _warn_of_divided_groups(square, grid)


def _warn_of_divided_groups(samples: Samples, grid: Grid) -> None:
    """Warn of folds that divide rows of one value, where values of a column seem to be groups."""
    found = groups_left_out(samples, grid.y.tolist())
    if found is None:
        return
    name, values = found
    rows = np.array(values)
    train, test = (part[part < len(rows)] for part in grid.folds[0])
    divided = np.intersect1d(rows[train], rows[test])
    if divided.size:
        warn(
            f"{samples.source}: the {len(set(values)):,} values of column {shown(name)} have one "
            f"label each, and folds divide the rows of {divided.size:,}: if rows of one value are "
            f"alike, as visits of one plot, scores are too high; --groups "
            f"{quoted(f'{samples.source}:{name}')} (groups=) keeps them in one fold"
        )


def _warn_of_untested(grid: Grid) -> None:
    """Say which folds lack classes in their test part; the first ones, if there are many."""
    lacking = {fold: classes for fold, classes in enumerate(grid.untested) if classes}
    if not lacking:
        return
    named = [
        f"fold {fold} ({grid.classes[own[0]] if len(own) == 1 else f'{len(own)} classes'})"
        for fold, own in list(lacking.items())[:_LISTED]
    ]
    more = ", ..." if len(lacking) > _LISTED else ""
    warn(
        f"{len(lacking)} of {len(grid.folds)} folds lack classes in their test part: "
        f"{', '.join(named)}{more}; there {grid.scoring.name} says nothing of these classes, "
        "and fewer folds may each test all"
    )


def look_back(square: Square, groups: Any) -> None:
    """Warn of samples that equal others, now that all were read, unless groups divide them."""
    if isinstance(square, Samples) and groups is None:
        warn_of_repeated(square)
