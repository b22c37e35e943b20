"""Features of any samples by given landmarks and root, computed now or lazily by Dask."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from dask import delayed
from dask.base import tokenize
from numpy.typing import NDArray

from dhsk.arrays import ROWS, Floats, Indices, Rows
from dhsk.errors import InputError
from dhsk.execution.checkpoint import digest_of
from dhsk.gram.row_map import RowMap
from dhsk.progress import counter
from dhsk.run_progress import passes_of_call
from dhsk.samples import Samples, open_samples

if TYPE_CHECKING:
    import dask.array as da


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Nyström feature map of samples, Z = K(X, L) R."""

    row_map: RowMap
    """The kernel, and the map of samples to its rows."""
    landmarks: Rows
    """L, mapped rows, (m, dim)."""
    root: Floats
    """R, (m, r), float64."""
    feature_names: tuple[str, ...] | None = None
    """Names of the input features, (dim,)."""

    @property
    def width(self) -> int:
        """Number of features, r."""
        return int(self.root.shape[1])

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the features."""
        return np.dtype(self.row_map.dtype)

    def of(self, samples: Samples, first_row: int = 0) -> NDArray[Any]:
        """Features of samples, (N, r), of `dtype`, computed block by block.

        Raises InputError if a row cannot be used; messages count rows from `first_row`.
        """
        Z = np.empty((samples.shape[0], self.width), self.dtype)
        advance = counter(passes_of_call().report, "features", len(Z))
        for first, rows in self.row_map.blocks(samples, ROWS, first_row=first_row):
            values = self.row_map.kernel.of_rows(rows, self.landmarks)
            Z[first : first + rows.shape[0]] = values @ self.root
            advance(rows.shape[0])
        return Z

    def described(self) -> dict[str, Any]:
        """Description of the features, as JSON; landmarks and root are described by their hash."""
        return {
            "landmarks": digest_of(self.landmarks, self.root),
            "kernel": self.row_map.kernel.to_spec(),
            "map": self.row_map.sphere_map,
            "dtype": self.row_map.dtype,
        }


def lazy_features(X: "da.Array", features: FeatureMap) -> "da.Array":
    """Lazy features, (N, r), of a Dask array X, (N, dim), in its row chunks.

    Chunks are numpy or scipy's CSR, of any sizes, also unknown ones. The feature map is one key of
    the graph that all tasks share. A row that cannot be used raises InputError when its chunk is
    computed; the message names the row, or with unknown chunk sizes the chunk and the row in it.

    Raises InputError if X does not have two dimensions.
    """
    import dask.array as da  # a tenth of what a command imports, and most need none of it

    if X.ndim != 2:
        raise InputError(
            f"X has shape {X.shape}, but samples need two dimensions (samples by features): "
            "reshape it"
        )
    sizes = X.chunks[0]
    starts = None if np.isnan(sizes).any() else np.cumsum((0, *sizes))
    name = f"nystrom-{tokenize(features.described(), sizes)}"
    return da.map_blocks(
        _of_chunk,
        X.rechunk({1: -1}),
        shared=delayed((features, starts), name=name, traverse=False),
        dtype=features.dtype,
        chunks=(sizes, (features.width,)),
        meta=np.empty((0, 0), features.dtype),
    )


def _of_chunk(
    chunk: Any, shared: tuple[FeatureMap, Indices | None], block_id: tuple[int, int] = (0, 0)
) -> NDArray[Any]:
    """Features of a chunk, (rows, r)."""
    features, starts = shared
    if not chunk.shape[0]:  # boolean indexing leaves empty chunks
        return np.empty((0, features.width), features.dtype)
    first_row = 0 if starts is None else int(starts[block_id[0]])
    try:
        return features.of(features.row_map.to_predict(open_samples(chunk)), first_row)
    except InputError as error:
        if starts is not None:
            raise
        raise InputError(f"chunk {block_id[0]} of {error}") from None
