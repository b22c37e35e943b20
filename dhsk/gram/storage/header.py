"""What a store holds, and of what: the description that is written before its first tile."""

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Final

from dhsk.errors import StoreMismatchError
from dhsk.gram.storage.tiling import DtypeName, Layout, Tiling
from dhsk.samples import SphereMap

SCHEMA = 2
"""Version of the format of stores; 1 (one kernel, float64 products) is read too."""

_SCHEMA_1 = 1

_FINGERPRINT: Final = re.compile("[0-9a-f]{16,}")


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
        "triangle", "full", or "none" for samples without tiles.
    kernels
        Name and parameters of each kernel, one array of tiles a kernel.
    sphere_map
        How samples were mapped before the product.
    dim
        Number of features.
    fingerprints
        Of the row samples and, if rectangular, of the column samples, before the map.
    nnz
        Entries of each of these, mapped, if they are sparse, None where dense.
    product_dtype
        Type in which samples are held, multiplied and evaluated.
    schema
        Version of this format.
    feature_names
        Digest of the names of the features, see `names`; None if they have none.
    zero_rows
        How many of the row samples and, if rectangular, of the column samples were all zero and
        became the centre of the positive orthant; None if none was.
    """

    n_rows: int
    n_cols: int
    symmetric: bool
    dtype: DtypeName
    tile: int
    layout: Layout
    kernels: tuple[dict[str, Any], ...]
    sphere_map: SphereMap
    dim: int
    fingerprints: tuple[str, ...]
    nnz: tuple[int | None, ...]
    product_dtype: DtypeName = "float64"
    schema: int = SCHEMA
    feature_names: str | None = None
    zero_rows: tuple[int, ...] | None = None

    @classmethod
    def of_json(cls, attributes: dict[str, Any]) -> "Header":
        """Read the attributes of a group, of this schema or an earlier one.

        Raises
        ------
        StoreMismatchError
            They are of a later schema, or of none.
        """
        found = dict(attributes)
        if found.get("schema") == _SCHEMA_1:
            found |= {"kernels": [found.pop("kernel")], "product_dtype": "float64"}
        elif found.get("schema") != SCHEMA:
            raise StoreMismatchError(
                f"it has schema {found.get('schema')}, this version reads {_SCHEMA_1} to {SCHEMA}: "
                "open it with the version that wrote it"
            )
        lists = {key: tuple(found[key]) for key in ("kernels", "fingerprints", "nnz")}
        if "zero_rows" in found:
            lists["zero_rows"] = tuple(found["zero_rows"])
        return cls(**(found | lists))

    def to_json(self) -> dict[str, Any]:
        """Attributes that `of_json` reads; what came later is left out where there is none."""
        found = dataclasses.asdict(self)
        return {key: value for key, value in found.items() if value is not None}

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
            "kernels": "kernel",
            "sphere_map": "map",
            "dtype": "dtype",
            "product_dtype": "product dtype",
            "layout": "layout",
            "n_rows": "rows",
            "n_cols": "columns",
            "symmetric": "symmetry",
            "dim": "dim",
        }
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)
        return [
            f"{label} ({short(mine[key])}, now {short(theirs[key])})"
            for key, label in names.items()
            if mine[key] != theirs[key]
        ]


def short(value: object) -> str:
    """A value of a description as messages name it: fingerprints by their first digits."""
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values())
    if isinstance(value, tuple):
        return "+".join(map(short, value))
    words = str(value)
    return words[:8] if _FINGERPRINT.fullmatch(words) else words
