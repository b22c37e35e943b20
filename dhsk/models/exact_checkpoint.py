"""Checkpoint of the training of an exact SVM, and its progress."""

from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np

from dhsk.arrays import Rows
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.gram.row_map import RowMap
from dhsk.models.problem import Problem
from dhsk.progress import Progress
from dhsk.solvers.decomposition import Round

PREFIX: Final = "exact-"
"""Begins the names of these files."""

_COLUMNS: Final = 1.8
"""Columns of the matrix that a support vector costs, for the expected end. Measured on 30,000 and
100,000 samples of `tests/benchmarks/mixtures.py`: 1.8 and 1.6."""

_UNKNOWN: Final = 1.1
"""Columns that are expected once there are more than that, as a multiple of those so far: what is
not over is not at 99 %."""

_OF_TIME: Final = 0.5
"""Power of the share of columns that is about the share of time, as the first rounds compute few
columns. Measured on 20,000 images of MNIST: after 0.38, 0.50 and 0.76 of the time 0.05, 0.45 and
0.16 of the columns that were then expected."""


class Layout(NamedTuple):
    """What decides the last bits of kernel values, so that a resumed run takes it over."""

    room: int
    """Memory of the matrix of a task, in bytes."""
    edge: int = 0
    """Samples of a block of kernel values."""
    keep: bool = False
    """Whether the matrices of single classes may be kept in memory."""


def kept_layout(entries: Checkpoint, name: str, own: Layout) -> Layout:
    """The layout of the call that began what has this name: the own one, if it begins now."""
    entry = digest_of(name, "layout")
    kept = entries.get(entry, lambda values: Layout(*values["layout"]))
    if kept is None:
        entries.put(entry, {}, {"layout": list(own)})
    return kept or own


def drop_layout(entries: Checkpoint, name: str) -> None:
    """Delete the layout of what has this name and has ended."""
    entries.drop(digest_of(name, "layout"))


def name_of_training(problem: Problem, row_map: RowMap, samples: Any) -> str:
    """Name of a training on some mapped samples: rows, or a JSON value that identifies them."""
    kernel = row_map.kernel.to_spec()
    own = [kernel, row_map.sphere_map, row_map.dtype, problem.C, problem.tol]
    parts = _arrays_of(samples) if hasattr(samples, "shape") else [samples]
    return digest_of(own, problem.codes, problem.fold_weights, *parts)


def _arrays_of(rows: Rows) -> list[Any]:
    if isinstance(rows, np.ndarray):
        return [rows]
    return [list(rows.shape), rows.data, rows.indices, rows.indptr]


def progress_of(one: Round, n: int) -> Progress:
    """Columns computed so far, and as many as the support vectors so far will take."""
    done = one.entries // n
    expected = max(int(_COLUMNS * one.needed / n), ceil(_UNKNOWN * done), done + 1)
    total = done if one.ended == one.pairs else expected
    return Progress(
        f"columns of {n:,}",
        done,
        total,
        f"{one.support:,} support vectors, KKT violation {one.violation:.1e}",
        share=(done / max(total, 1)) ** _OF_TIME,
    )
