"""Checkpoint of the passes over a matrix: each product is stored under a hash of its vectors.

Rejected: the basis and the projected matrix, which are rewritten after each pass or need a format
for parts of them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dhsk.arrays import Floats
from dhsk.execution.checkpoint import Checkpoint, digest_of


class CheckpointedProducts:
    """Products of a matrix with vectors, which a killed run finds again when it is repeated.

    A method that is deterministic but for its products then needs no checkpoint of its own: run
    again, it asks for the same products and ends with the same bits. Vectors that differ in one bit
    are others.

    Parameters
    ----------
    multiply
        Product of the matrix with vectors, (N,) or (N, b).
    checkpoint
        Entries; without a folder nothing is stored.
    matrix
        JSON value that tells the matrix, and how it is multiplied.
    """

    def __init__(
        self, multiply: Callable[[Floats], Floats], checkpoint: Checkpoint, matrix: Any
    ) -> None:
        self._multiply = multiply
        self._checkpoint = checkpoint
        self._matrix = matrix
        self.passes = 0

    def __call__(self, V: Floats) -> Floats:
        """Product with V, read if it is stored, else computed and stored."""
        if self._checkpoint.folder is None:
            self.passes += 1
            return self._multiply(V)
        name = digest_of(self._matrix, V)
        found = self._checkpoint.get(name, lambda kept: _of_shape(kept["product"], V))
        if found is None:
            self.passes += 1
            found = np.ascontiguousarray(self._multiply(V))  # the layout that an entry keeps
            self._checkpoint.put(name, {"product": found})
        return found


def _of_shape(product: Floats, V: Floats) -> Floats:
    if product.shape != V.shape:
        raise ValueError("another shape")
    return product
