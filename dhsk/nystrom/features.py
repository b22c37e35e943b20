"""Features of any samples, by the landmarks and the root that were found: now, or by Dask."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask import delayed
from dask.base import tokenize
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import ROWS, Floats, Indices, Rows
from dhsk.errors import InputError
from dhsk.execution.checkpoint import digest_of
from dhsk.gram.row_map import RowMap
from dhsk.samples import Samples, open_samples


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """What turns samples into features, Z = K(X, L) R.

    Attributes
    ----------
    row_map
        The kernel, and how samples become its rows.
    landmarks
        L, mapped rows, (m, dim).
    root
        R, (m, r), float64.
    feature_names
        Names of the features of a sample, (dim,), if they have names.
    """

    row_map: RowMap
    landmarks: Rows
    root: Floats
    feature_names: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """Number of features, r."""
        return int(self.root.shape[1])

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the features."""
        return np.dtype(self.row_map.dtype)

    def of(self, samples: Samples, first_row: int = 0) -> NDArray[Any]:
        """Features of samples, block by block.

        Parameters
        ----------
        samples
            What to read, (N, dim).
        first_row
            Number of the first of them in the whole, for messages.

        Returns
        -------
        NDArray
            (N, r), of `dtype`.

        Raises
        ------
        InputError
            A row cannot be used; the message names it.
        """
        Z = np.empty((samples.shape[0], self.width), self.dtype)
        for first, rows in self.row_map.blocks(samples, ROWS, first_row=first_row):
            values = self.row_map.kernel.of_rows(rows, self.landmarks)
            Z[first : first + rows.shape[0]] = values @ self.root
        return Z

    def described(self) -> dict[str, Any]:
        """What tells these features from others, in JSON; landmarks and root by a hash of both."""
        L: Any = self.landmarks
        parts = [L.data, L.indices, L.indptr] if isinstance(L, csr_array) else [L]
        return {
            "landmarks": digest_of(*parts, self.root),
            "kernel": self.row_map.kernel.to_spec(),
            "map": self.row_map.sphere_map,
            "dtype": self.row_map.dtype,
        }


def lazy_features(X: da.Array, features: FeatureMap) -> da.Array:
    """Features of a Dask array, which nothing computes yet.

    Parameters
    ----------
    X
        Samples, (N, dim), in chunks of any sizes, unknown ones too; numpy or scipy's CSR.
    features
        What gives the features: one key of the graph, which all tasks share.

    Returns
    -------
    da.Array
        (N, r), in the row chunks of X, each with all columns. A row that cannot be used is an
        `InputError` when its chunk is computed; where chunk sizes are unknown it names the chunk,
        and the row in that.

    Raises
    ------
    InputError
        X has other than two dimensions.
    """
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


_Shared: TypeAlias = tuple[FeatureMap, Indices | None]


def _of_chunk(chunk: Any, shared: _Shared, block_id: tuple[int, int] = (0, 0)) -> NDArray[Any]:
    """Features of a chunk, (rows, r)."""
    features, starts = shared
    if not chunk.shape[0]:  # as selections by a condition give
        return np.empty((0, features.width), features.dtype)
    first_row = 0 if starts is None else int(starts[block_id[0]])
    try:
        return features.of(open_samples(chunk), first_row)
    except InputError as error:
        if starts is not None:
            raise
        raise InputError(f"chunk {block_id[0]} of {error}") from None
