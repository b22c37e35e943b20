"""Matrices of the kernels of a grid, derived from one or two stores of products.

Or their values are computed on demand, and only the mapped samples are stored.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from dhsk.execution.checkpoint import digest_of
from dhsk.execution.run import Run
from dhsk.gram.compute import compute_gram
from dhsk.gram.derive import product_kernel
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel
from dhsk.models.gram_source import KEPT_BYTES, GramSource
from dhsk.models.sources import RowsShape
from dhsk.results.columns import KernelColumns
from dhsk.samples import Samples, SphereMap, ZeroRule
from dhsk.solvers.sources import ArraySource, Source
from dhsk.solvers.whole import FINE_SAMPLES
from dhsk.validation.cells import names_of
from dhsk.validation.engine import CvOptions
from dhsk.validation.grid import Grid
from dhsk.validation.input import Square

SAMPLES_OF_ENTRY: Final = 100
"""Fewest samples of a problem for each entry of a row, from which on steps on rows are sure to cost
less than on a matrix. With 4,000 for each (39,774 recipes) they took a quarter of the time; a
search of 11,314 posts with all their words took longer with them."""


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """Matrix of a kernel of the grid."""

    source: Source
    names: KernelColumns
    """Columns of the kernel in the results."""
    key: Any
    """JSON value that differs for different matrices."""
    on_rows: bool = False
    """Whether its problems are solved on rows in memory."""


class KernelMatrices:
    """Gives the matrix of a kernel: stored, derived from stored products, or precomputed.

    `sphere_map` is for the spherical kernels; `run.store` is the folder for stores of products.
    Linear kernels `on_rows`, whose problems are solved on rows in memory, need none.
    """

    def __init__(
        self, square: Square, sphere_map: SphereMap | None, zero_rows: ZeroRule, run: Run,
        *, on_rows: bool = False,
    ) -> None:  # fmt: skip
        self.square = square
        self.zero_rows = zero_rows
        self._map = sphere_map
        self._options = run
        self._made: dict[Kernel, GramMatrix] = {}
        self._on_demand, self._on_rows = False, on_rows

    def compute_on_demand(self) -> None:
        """Store no products from now on."""
        self._on_demand = True

    @property
    def made(self) -> GramMatrix | None:
        """A matrix of the samples; None if the matrix is precomputed."""
        if isinstance(self.square, GramMatrix):
            return self.square
        return next(iter(self._made.values()), None)

    def of(self, kernels: Sequence[Kernel]) -> list[KernelMatrix]:
        """Matrices of kernels in the same order, or only the precomputed one."""
        if isinstance(self.square, np.ndarray):
            return [_of_array(self.square)]
        return [_of_gram(self.gram(kernel), on_rows=self.has_rows(kernel)) for kernel in kernels]

    def lacking(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        """Some of the kernels: those whose products are to be made, from which all are derived."""
        if not isinstance(self.square, Samples):
            return []
        found: dict[Kernel, Kernel] = {}
        for kernel in sorted(kernels, key=lambda kernel: not self.stores(kernel)):
            if not self._is_made(kernel):
                found.setdefault(product_kernel(kernel), kernel)
        return list(found.values())

    def gram(self, kernel: Kernel) -> GramMatrix:
        """Gram matrix of a kernel on the samples."""
        if isinstance(self.square, GramMatrix):
            own = kernel == self.square.kernel
            return self.square if own else self.square.with_kernel(kernel)
        product = product_kernel(kernel)
        if not self._is_made(kernel):
            store = self._options.store
            assert store is not None  # `cross_validate` makes a temporary one
            self._made[product] = compute_gram(
                self.square,
                product,
                sphere_map=self._map if kernel.spherical else "identity",
                zero_rows=self.zero_rows,
                store=store / _folder(product) if self.stores(kernel) else None,
                memory=self._options.memory,
                client=self._options.client,
                scratch=self._options.scratch,
                progress=self._options.report,
            )
        return self._made[product].with_kernel(kernel)

    def has_rows(self, kernel: Kernel) -> bool:
        """Whether problems of a kernel are solved on rows in memory."""
        return self._on_rows and kernel.bilinear

    def stores(self, kernel: Kernel) -> bool:
        """Whether products of a kernel are stored."""
        return not self._on_demand and not self.has_rows(kernel)

    def _is_made(self, kernel: Kernel) -> bool:
        """Whether there is a matrix that a kernel can be derived from as it is wanted."""
        made = self._made.get(product_kernel(kernel))
        return made is not None and not (made.computed and self.stores(kernel))


def keeps_rows(square: Square, grid: Grid, options: CvOptions) -> bool:
    """Whether problems of linear kernels are solved on rows in memory, without their matrix.

    Small ones are not, as matrices have the smallest ball that contains the samples. What an
    interrupted call has stored does not count: results would differ by it.
    """
    if not isinstance(square, Samples) or not options.on_demand:
        return False
    *_, most = (int(np.sort(grid.counts)[-2 if way == "ovo" else 0 :].sum()) for way in grid.ways)
    n, dim = square.shape
    entries = dim if square.nnz is None else square.nnz / n
    few = RowsShape.of_samples(square, "float64").nbytes <= KEPT_BYTES
    return few and most > max(FINE_SAMPLES, SAMPLES_OF_ENTRY * entries)


def _folder(product: Kernel) -> str:
    """Name of the store of a kernel; kernels with parameters have one store each."""
    spec = product.to_spec()
    if len(spec) == 1:
        return product.name
    digest = blake2b(json.dumps(spec, sort_keys=True).encode(), digest_size=6).hexdigest()
    return f"{product.name}-{digest}"


def _of_gram(G: GramMatrix, *, on_rows: bool) -> KernelMatrix:
    header = G.header
    types = [str(G.dtype), str(header.product_dtype)]
    key = [G.kernel.to_spec(), list(header.fingerprints), header.sphere_map, types]
    return KernelMatrix(GramSource(G), names_of(G.kernel, G.dim), key, on_rows)


def _of_array(K: Any) -> KernelMatrix:
    return KernelMatrix(ArraySource(K), KernelColumns("precomputed", "precomputed"), digest_of(K))
