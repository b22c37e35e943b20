"""Checkpoint of the training of an exact SVM, and its progress."""

from dataclasses import replace
from math import ceil
from typing import Any, Final

from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.memory import Share
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

_OF_REST: Final = 1.0
"""The same of classes against the rest. Measured on 39,774 recipes of 20 classes: after 0.05 and
0.42 of the time 0.29 and 0.46 of the columns."""


def kept_share(entries: Checkpoint, name: str, own: Share) -> Share:
    """The own share, with what decides last bits from the call that began what has this name.

    That is the memory of a matrix, the blocks of kernel values, and whether some are kept.
    """
    layout = digest_of(name, "layout")
    kept: Any = entries.first(layout, lambda: [own.room, own.rows, own.held])
    room, rows, held = kept
    return replace(own, room=room, rows=rows, held=held)


def drop_share(entries: Checkpoint, name: str) -> None:
    """Delete what `kept_share` has written for what has ended."""
    entries.drop(digest_of(name, "layout"))


def name_of_training(problem: Problem, row_map: RowMap, *samples: Any) -> str:
    """Name of a training on mapped samples: arrays and JSON values that identify them."""
    kernel = row_map.kernel.to_spec()
    own = [kernel, row_map.sphere_map, row_map.dtype, problem.C, problem.tol, problem.multi_class]
    return digest_of(own, problem.codes, problem.fold_weights, *samples)


def progress_of(one: Round, n: int) -> Progress:
    """Columns computed so far, and as many as it may take."""
    detail = f"{one.support:,} support vectors, KKT violation {one.violation:.1e}"
    if one.share is not None:
        share = round(1000 * one.share)
        return Progress("support vectors", share, 1000, detail, what="training")
    done = one.entries // n
    expected = max(int(_COLUMNS * one.needed / n), ceil(_UNKNOWN * done), done + 1)
    total = done if one.ended == one.pairs else expected
    power = _OF_REST if one.against_rest else _OF_TIME
    return Progress(
        f"columns of {n:,}",
        done,
        total,
        detail,
        share=one.part * (done / max(expected if one.left else total, 1)) ** power,
    )
