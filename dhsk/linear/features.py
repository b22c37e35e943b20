"""Protocol of the features that the linear solvers read in passes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices


class Features(Protocol):
    """Features Z of all samples, (N, width), read or computed in passes, span by span."""

    n: int
    """Number of samples."""
    width: int
    """Number of features."""
    inner: int
    """Number of columns that a pass reads: those of K where Z = K R."""
    dtype: "np.dtype[Any]"
    """Type of the values that a pass reads."""
    root: Floats | None
    """R where passes read K and Z = K R, (inner, width); None if they read Z."""
    values: NDArray[Any] | None
    """Z if it is in memory, else None."""

    def map(
        self, function: Callable[..., Any], along: Sequence[NDArray[Any]], *shared: Any
    ) -> Iterator[Any]:
        """Call ``function(blocks, *parts of along, *shared)`` for each span; results in order."""

    def whole(
        self,
        function: Callable[..., Any],
        along: tuple[NDArray[Any], ...],
        calls: Sequence[tuple[Any, ...]],
    ) -> Iterator[Any]:
        """Call a function on all features, in memory, once with each tuple of arguments."""

    def into(self, V: Floats) -> Floats:
        """Coefficients of the columns that a pass reads, for coefficients V of the features."""

    def back(self, A: Floats) -> Floats:
        """Adjoint of `into`."""

    def part(self, chosen: Indices, threads: int) -> "Features":
        """Features of some samples in memory; chosen are ascending indices, (m,)."""


def sum_of(parts: Iterator[Any]) -> Any:
    """Sum of arrays, added in order to the first, in place."""
    total = next(parts)
    for part in parts:
        total += part
    return total
