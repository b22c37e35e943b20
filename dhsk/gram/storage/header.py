"""Header of a store: the description of its content, written before its first tile."""

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dhsk.errors import StoreMismatchError
from dhsk.gram.storage.tiling import DtypeName, Layout, Tiling
from dhsk.kernels import Kernel
from dhsk.samples import SphereMap

SCHEMA: Final = 3
"""Version of the format of stores; no other one is read."""

_SIMILARITIES: Final = ("similarity", "negative Laplacian")
_FINGERPRINT: Final = re.compile("[0-9a-f]{16,}")


@dataclass(frozen=True)
class Header:
    """Content of a store. Tuples have one item for rows and, if rectangular, one for columns."""

    n_rows: int
    n_cols: int
    symmetric: bool
    """Whether rows and columns are the same samples."""
    dtype: DtypeName
    """Type of the entries."""
    tile: int
    """Edge of a tile."""
    layout: Layout
    kernels: tuple[dict[str, Any], ...]
    """Name and parameters of each kernel; each has an array of tiles."""
    sphere_map: SphereMap
    """Map of the samples before the product."""
    dim: int
    """Number of features."""
    fingerprints: tuple[str, ...]
    """Fingerprints of the samples before the map."""
    nnz: tuple[int | None, ...]
    """Entries of the mapped samples; None if they are dense."""
    product_dtype: DtypeName = "float64"
    """Type in which samples are stored, multiplied and evaluated."""
    schema: int = SCHEMA
    feature_names: str | None = None
    """Digest of the features' names, see `names`; None for no names."""
    zero_rows: tuple[int, ...] | None = None
    """All-zero samples that became the centre of the positive orthant; None if there were none."""
    vectorizer: dict[str, Any] | None = None
    """Settings of the texts' vectorizer, whose vocabulary is the features' names; else None."""

    indefinite: tuple[int, ...] | None = None
    """Numbers of the kernels that are known not to be positive semi-definite; None for none."""

    graph: dict[str, float] | None = None
    """Of a matrix of graph nodes, whose samples are the rows of their similarity S: the interval of
    its eigenvalues, `NodeSpectrum.to_json`, not for powers, and "laplacian", 1 if S was made as a
    negative Laplacian and 0 if it was given; None of a matrix of samples."""

    @classmethod
    def of_json(cls, attributes: dict[str, Any]) -> "Header":
        """Read a group's attributes; StoreMismatchError for another schema than `SCHEMA`."""
        found = dict(attributes)
        if found.get("schema") != SCHEMA:
            raise StoreMismatchError(
                f"it has schema {found.get('schema')}, this version reads {SCHEMA}: compute it "
                "again, or open it with the version that wrote it"
            )
        lists = {key: tuple(found[key]) for key in ("kernels", "fingerprints", "nnz")}
        lists |= {key: tuple(found[key]) for key in ("zero_rows", "indefinite") if key in found}
        return cls(**(found | lists))

    def to_json(self) -> dict[str, Any]:
        """Attributes that `of_json` reads, without those that are None."""
        found = dataclasses.asdict(self)
        return {key: value for key, value in found.items() if value is not None}

    @property
    def tiling(self) -> Tiling:
        """Partition into tiles."""
        return Tiling(self.n_rows, self.n_cols, self.tile, self.symmetric)

    def chunks_of(self, i: int, j: int) -> list[tuple[int, int]]:
        """Chunks of tile (i, j): its own and, in the full layout, its mirror image's."""
        mirrored = self.symmetric and self.layout == "full" and i != j
        return [(i, j), (j, i)] if mirrored else [(i, j)]

    def differences(self, other: "Header") -> list[str]:
        """Differences of the content of two stores, in words; the tile size may differ."""
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
        if self.similarity and other.similarity and self.similarity != other.similarity:
            names["fingerprints"] = "matrix of the graph"  # the hashes of both would say nothing
            mine["fingerprints"], theirs["fingerprints"] = self.similarity, other.similarity
        return [
            f"{label} ({short(mine[key])}, now {short(theirs[key])})"
            for key, label in names.items()
            if mine[key] != theirs[key]
        ]

    @property
    def similarity(self) -> str | None:
        """Similarity of nodes in words; None of samples, and in stores that do not say it."""
        laplacian = (self.graph or {}).get("laplacian")
        return None if laplacian is None else _SIMILARITIES[bool(laplacian)]


def indefinite_of(kernels: Sequence[Kernel]) -> tuple[int, ...] | None:
    """Numbers of the kernels that are known not to be positive semi-definite; None for none."""
    return tuple(k for k, one in enumerate(kernels) if one.positive_semidefinite is False) or None


def short(value: object) -> str:
    """A header's value for messages: of a fingerprint the first digits."""
    if isinstance(value, dict):
        return " ".join(
            str(part) for part in value.values() if part is not None and part is not False
        )
    if isinstance(value, tuple):
        return "+".join(map(short, value))
    words = str(value)
    return words[:8] if _FINGERPRINT.fullmatch(words) else words
