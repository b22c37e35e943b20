"""Parts of tiles that a selection of rows and columns needs."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices
from dhsk.errors import InputError

Selector: TypeAlias = int | np.integer[Any] | slice | Sequence[int] | NDArray[Any]
"""One axis of an index: an integer, a slice, or a 1-D array of indices or booleans."""


class Part(NamedTuple):
    """Chosen indices in one block."""

    place: Indices  # positions in the result
    inside: Indices  # positions in the block


def sides_of(key: Any) -> tuple[Any, Any]:
    """Rows and columns of an index, of which ``...`` or nothing stands for all, as in numpy."""
    parts = key if isinstance(key, tuple) else (key,)
    dots = [number for number, part in enumerate(parts) if part is Ellipsis]
    place = dots[0] if dots else len(parts)
    left = [slice(None)] * (2 - len(parts) + bool(dots))
    sides: list[Any] = [*parts[:place], *left, *parts[place + 1 :]]
    wrong = any(side is None or side is Ellipsis for side in sides)
    if wrong or len(sides) != 2 or sum(map(np.ndim, sides)) > 1:
        raise InputError(
            "an index has rows and columns: integers, slices, or on one side a 1-D array of "
            "indices or booleans; for arrays on both sides use G.submatrix(rows, cols)"
        )
    return sides[0], sides[1]


def to_indices(selector: Selector, n: int) -> Indices:
    """Non-negative indices of a selector along an axis of length n."""
    everything: Indices = np.arange(n, dtype=np.intp)
    try:
        return np.atleast_1d(everything[selector])
    except IndexError as error:
        raise IndexError(f"index out of range for axis of {n}: {error}") from error


def by_block(indices: Indices, tile: int) -> dict[int, Part]:
    """Chosen indices by their block of `tile` indices."""
    blocks = indices // tile
    order = np.argsort(blocks, kind="stable")
    starts = np.flatnonzero(np.diff(blocks[order], prepend=-1))
    parts = np.split(order, starts[1:])
    return {
        int(blocks[place[0]]): Part(place, indices[place] % tile) for place in parts if len(place)
    }


def grid(rows: Indices, cols: Indices) -> Any:
    """Index for all pairs: slices if both are runs, ten times faster than index arrays."""
    row_run, col_run = _run(rows), _run(cols)
    if row_run is not None and col_run is not None:
        return row_run, col_run
    return np.ix_(rows, cols)


def _run(indices: Indices) -> slice | None:
    first, last = int(indices[0]), int(indices[-1])
    is_run = last - first + 1 == len(indices) and bool(np.all(np.diff(indices) == 1))
    return slice(first, last + 1) if is_run else None
