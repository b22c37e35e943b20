"""What the linear solvers ask of features: a matrix that is only ever seen in passes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices


class Features(Protocol):
    """Features Z of all samples, (N, width), by passes; they may never be there as a whole."""

    n: int
    """Number of samples."""
    width: int
    """Number of features."""
    inner: int
    """Columns of what a pass reads, which `into` turns coefficients to."""
    dtype: "np.dtype[Any]"
    """Type of what a pass reads."""
    root: Floats | None
    """R of Z = K R, (inner, width), K being what a pass reads; None if it reads Z itself."""
    values: NDArray[Any] | None
    """Z if it is in memory."""

    def map(
        self, function: Callable[..., Any], along: Sequence[NDArray[Any]], *shared: Any
    ) -> Iterator[Any]:
        """Make a pass: ``function(blocks, *parts of along, *shared)`` of each span, in order."""

    def whole(
        self,
        function: Callable[..., Any],
        along: tuple[NDArray[Any], ...],
        calls: Sequence[tuple[Any, ...]],
    ) -> Iterator[Any]:
        """Call a function on all samples, which are in memory, once with each of `calls`."""

    def into(self, V: Floats) -> Floats:
        """Coefficients of what a pass reads that give the same function as V of the features."""

    def back(self, A: Floats) -> Floats:
        """Adjoint of `into`."""

    def part(self, chosen: Indices, threads: int) -> "Features":
        """Features of some samples, ascending numbers (m,), in memory."""


def sum_of(parts: Iterator[Any]) -> Any:
    """Sum of arrays, in their order, into the first."""
    total = next(parts)
    for part in parts:
        total += part
    return total
