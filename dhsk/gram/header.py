"""What a store holds, and of what: the description that is written before its first tile."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from dhsk.gram.plan import DtypeName, Layout, Tiling
from dhsk.samples import SphereMap

SCHEMA = 1
"""Version of the format of stores."""


@dataclass(frozen=True)
class Header:
    """What a store holds, and of what; written before its first tile.

    Attributes
    ----------
    n_rows, n_cols
        Shape of the matrix.
    symmetric
        Rows and columns are the same samples.
    dtype
        Type of the entries.
    tile
        Edge of a tile.
    layout
        "triangle" or "full".
    kernel
        The kernel's name and parameters.
    sphere_map
        How samples were mapped before the product.
    dim
        Number of features.
    fingerprints
        Of the row samples and, if rectangular, of the column samples, before the map.
    nnz
        Entries of each of these if they are sparse, None where dense.
    schema
        Version of this format.
    """

    n_rows: int
    n_cols: int
    symmetric: bool
    dtype: DtypeName
    tile: int
    layout: Layout
    kernel: dict[str, Any]
    sphere_map: SphereMap
    dim: int
    fingerprints: tuple[str, ...]
    nnz: tuple[int | None, ...]
    schema: int = SCHEMA

    @property
    def tiling(self) -> Tiling:
        """The cut into tiles."""
        return Tiling(self.n_rows, self.n_cols, self.tile, self.symmetric)

    def chunks_of(self, i: int, j: int) -> list[tuple[int, int]]:
        """Chunks that hold tile (i, j): itself, and its mirror image in the full layout."""
        mirrored = self.symmetric and self.layout == "full" and i != j
        return [(i, j), (j, i)] if mirrored else [(i, j)]

    def differences(self, other: "Header") -> list[str]:
        """Say in words where the content of two stores differs; their tiles may differ."""
        names = {
            "fingerprints": "samples",
            "kernel": "kernel",
            "sphere_map": "map",
            "dtype": "dtype",
            "layout": "layout",
            "n_rows": "rows",
            "n_cols": "columns",
            "symmetric": "symmetry",
            "dim": "dim",
        }
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)
        return [
            f"{label} ({_short(mine[key])}, now {_short(theirs[key])})"
            for key, label in names.items()
            if mine[key] != theirs[key]
        ]


def _short(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values())
    if isinstance(value, tuple):
        return "+".join(str(part)[:8] for part in value)
    return str(value)
