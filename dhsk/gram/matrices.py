"""Gram matrices of several kernels on the same samples."""

from collections.abc import Sequence
from typing import Any, overload

from numpy.typing import ArrayLike, NDArray

from dhsk.gram.matrix import GramMatrix
from dhsk.gram.passes import multiply
from dhsk.gram.tiles import TileSource


class GramMatrices(Sequence[GramMatrix]):
    """Gram matrices of several kernels on the same samples, with products in one pass.

    `compute_gram` returns them for a list of kernels.

    Parameters
    ----------
    matrices
        Matrices on one store.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> grams = dhsk.compute_gram(np.eye(4), ["heat", "cosine"])
    >>> [G.kernel.label for G in grams]
    ['heat t=0.3466', 'cosine']
    >>> (grams @ np.ones(4)).round(4)
    array([[1.7948, 1.7948, 1.7948, 1.7948],
           [1.    , 1.    , 1.    , 1.    ]])
    """

    __array_priority__ = 100  # numpy defers `array @ grams` to this class

    def __init__(self, matrices: Sequence[GramMatrix]) -> None:
        self._matrices = list(matrices)

    def __len__(self) -> int:
        """Number of kernels."""
        return len(self._matrices)

    @overload
    def __getitem__(self, index: int) -> GramMatrix: ...
    @overload
    def __getitem__(self, index: slice) -> list[GramMatrix]: ...
    def __getitem__(self, index: int | slice) -> GramMatrix | list[GramMatrix]:
        """Matrix of one kernel, or a list of matrices."""
        return self._matrices[index]

    def __matmul__(self, V: ArrayLike) -> NDArray[Any]:
        """Product of each matrix with V, (M,) or (M, k): (kernels, N) or (kernels, N, k).

        Matrices that are computed on demand share the inner products of the samples.
        """
        first, sources = self._matrices[0], [matrix.source for matrix in self._matrices]
        return multiply(TileSource.joined(sources), first.tiling, V, first.dtype)
