"""The table of what the taken cell predicted for each sample while it was held out."""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.objects.places import Place, written
from dhsk.results.columns import GridPoint
from dhsk.samples import Samples
from dhsk.validation.out_of_fold import HeldOutPredictions, OutOfFold

BLOCK: Final = 1 << 14
"""Samples whose rows are made at a time: of more there are never texts, only numbers."""


def write_predictions(
    held_out: HeldOutPredictions, point: GridPoint, samples: Samples | None, place: Place
) -> None:
    """Write one row for each sample and repeat; replace an existing file in one step.

    Columns are the row of the sample from 0, its id if `samples` have some, the true and the
    predicted label, the fold from 0, of several repeats the repeat from 0, and decisions: of two
    classes one, which is positive for the second class, else one for each class, empty where a
    fold was trained without it. There are none if they were not kept.
    """
    found = held_out.numbered(point)
    names = None if samples is None else samples.each_id()
    # Labels of file systems may hold bytes that are no UTF-8.
    with written(place, "w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_columns(held_out, found, slice(0), None if names is None else []))
        for repeat in range(held_out.repeats):
            if repeat and samples is not None:
                names = samples.each_id()
            for rows, ids in _blocks(found, repeat, len(held_out.y), names):
                columns = _columns(held_out, found, rows, ids)
                writer.writerows(zip(*columns.values(), strict=True))


def _blocks(
    found: OutOfFold, repeat: int, n_samples: int, names: Iterator[str] | None
) -> Iterator[tuple[slice, list[str] | None]]:
    """Rows of neighbouring samples in one repeat, and the ids of all samples among them."""
    begin, end = np.searchsorted(found.repeat, [repeat, repeat + 1])
    own = found.samples[begin:end]
    for first in range(0, n_samples, BLOCK):
        ids = None if names is None else list(islice(names, BLOCK))
        low, high = begin + np.searchsorted(own, [first, first + BLOCK])
        yield slice(int(low), int(high)), ids


def _columns(
    held_out: HeldOutPredictions, found: OutOfFold, rows: slice, ids: list[str] | None
) -> dict[str, Sequence[Any]]:
    """Values of some rows under the heads of the table."""
    labels, samples = held_out.classes.tolist(), found.samples[rows]
    columns: dict[str, Sequence[Any]] = {"sample": samples.tolist()}
    if ids is not None:
        columns["id"] = [ids[number] for number in (samples % BLOCK).tolist()]
    columns["true"] = [labels[number] for number in found.true[rows].tolist()]
    columns["predicted"] = [labels[number] for number in found.predicted[rows].tolist()]
    columns["fold"] = found.fold[rows].tolist()
    if held_out.repeats > 1:
        columns["repeat"] = found.repeat[rows].tolist()
    if found.decisions is not None:
        decided = labels if len(labels) > 2 else labels[1:]
        parts = found.decisions[rows].reshape(len(samples), len(decided)).T
        named = zip(decided, parts, strict=True)
        columns |= {f"decision_{name}": _texts(part) for name, part in named}
    return columns


def _texts(column: NDArray[np.float32]) -> list[str]:
    """The shortest numbers that are read as the same float32; nothing for NaN."""
    return ["" if value != value else str(value) for value in column]
