"""Attributes of a stored matrix as an array, and of its samples."""

import math
from typing import Any

import numpy as np

from dhsk.gram.storage.header import Header
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.tiling import Tiling
from dhsk.samples import AnyVectorizer, vectorizer_of


class TiledArray:
    """Attributes of a 2-D array in a store; subclasses set `_store`."""

    _store: GramStore

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self._store.header.n_rows, self._store.header.n_cols

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Type of the entries."""
        return np.dtype(self._store.header.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes: 2."""
        return 2

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes as an array in memory; a store of the upper tiles takes about half."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Numbers of rows and columns of the tiles, as `dask.array.Array.chunks`."""
        return self.tiling.chunks

    @property
    def dim(self) -> int:
        """Number of features of the samples."""
        return self._store.header.dim

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, in the order of the columns; None if they have none."""
        return self._store.feature_names

    @property
    def vectorizer(self) -> AnyVectorizer | None:
        """How words were counted, if the samples are texts."""
        return vectorizer_of(self._store.header.vectorizer, self.feature_names)

    @property
    def sphere_map(self) -> str:
        """Map of the samples to the sphere."""
        return self._store.header.sphere_map

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same samples."""
        return self._store.header.symmetric

    @property
    def header(self) -> Header:
        """Description of the store."""
        return self._store.header

    @property
    def tiling(self) -> Tiling:
        """Partition into tiles."""
        return self._store.header.tiling
