"""Parts of a computation that several processes share without a scheduler, and their tiles.

Rejected: tiles dealt out in turn (each part would read nearly all samples); a queue in the store (a
lock for each tile).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dhsk.errors import InputError
from dhsk.execution.lock import TURNS_NAME
from dhsk.files import parse_json
from dhsk.gram.storage.tiling import Tiling
from dhsk.kernels.base import whole_parameter
from dhsk.objects.places import Place

Tile = tuple[int, int]

SQUARE: Final = 4
"""Edge, in tiles, of the squares that a part takes one after the other: neighbouring tiles share
their samples. Every part must use the same."""


@dataclass(frozen=True)
class TilePart:
    """One of several parts of a computation; make it with `parse_part`."""

    number: int
    """From 1 to `count`."""
    count: int

    def __str__(self) -> str:
        return f"part {self.number} of {self.count}"


def parse_part(part: Any) -> TilePart:
    """Take a pair such as (3, 64); InputError for anything else."""
    try:
        number, count = part
    except (TypeError, ValueError) as error:
        raise InputError(f"part must be a pair such as (3, 64), got {part!r}") from error
    whole_parameter("the number of parts", count, 1)
    whole_parameter("the number of the part", number, 1)
    if number > count:
        raise InputError(f"there is no part {number} of {count}: parts are numbered from 1")
    return TilePart(int(number), int(count))


def numbers_of_parts(tiling: Tiling, count: int) -> dict[Tile, int]:
    """The part of each tile, from 1 to `count`.

    Parts differ by at most the work of a tile. Each is a run of tiles in the order of squares of
    `SQUARE` tiles, so that its tasks share samples.
    """
    tiles = sorted(tiling.tiles(), key=lambda tile: (tile[0] // SQUARE, tile[1] // SQUARE, tile))
    sides = tiling.chunks
    work = np.array([sides[0][i] * sides[1][j] for i, j in tiles], dtype=object)  # no overflow
    middles = 2 * np.cumsum(work) - work
    numbers = 1 + middles * count // (2 * work.sum())
    return dict(zip(tiles, map(int, numbers), strict=True))


def share_of(tiling: Tiling, part: TilePart) -> set[Tile]:
    """Tiles of a part."""
    return {
        t for t, number in numbers_of_parts(tiling, part.count).items() if number == part.number
    }


def note_parts(path: Place, count: int) -> None:
    """Record the number of parts in a store's folder, for `whose`."""
    text = json.dumps({"parts": count})
    (path / TURNS_NAME).write_bytes(text.encode())  # in place: the file may be locked


def forget_parts(path: Place) -> None:
    """Remove the record, as the store is finished."""
    (path / TURNS_NAME).unlink(missing_ok=True)


def is_begun(path: Place) -> bool:
    """Whether parts have begun to make a store that has no description yet."""
    return (path / TURNS_NAME).is_file() and not (path / "zarr.json").is_file()


def whose(path: Place, tiling: Tiling, tiles: Sequence[Tile]) -> str:
    """Parts that compute the given tiles, in words; empty if the store is not made by parts."""
    try:
        count = int(parse_json((path / TURNS_NAME).read_bytes())["parts"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    numbers = numbers_of_parts(tiling, count)
    found = sorted({numbers[tile] for tile in tiles})
    return f"{'parts' if len(found) > 1 else 'part'} {_ranges(found)} of {count}"


def _ranges(numbers: Iterable[int]) -> str:
    """Sorted numbers as Slurm's --array takes them, such as 3,7-9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
