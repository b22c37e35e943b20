"""Matrices of the kernels of a grid, all read from one store of products or two."""

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

from dhsk.execution.checkpoint import digest_of
from dhsk.gram.compute import compute_gram
from dhsk.gram.derive import product_kernel
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel
from dhsk.models.sources import GramSource
from dhsk.progress import OnProgress
from dhsk.samples import SphereMap, ZeroRule
from dhsk.solvers.sources import ArraySource
from dhsk.validation.cells import names_of
from dhsk.validation.input import Square
from dhsk.validation.job import Candidate


class Products:
    """Gives the matrix of a kernel: stored, derived from stored products, or the user's own.

    Parameters
    ----------
    square
        What was given.
    sphere_map
        Map for the spherical kernels.
    zero_rows
        What becomes of samples of zeros.
    store
        Folder for stores of products.
    memory
        Bytes for all processes together.
    client
        Where products are computed; None for threads of this process.
    report
        Receives progress.
    """

    def __init__(
        self,
        square: Square,
        sphere_map: SphereMap | None,
        zero_rows: ZeroRule,
        store: Path,
        memory: int | None,
        client: Client | None,
        report: OnProgress,
    ) -> None:
        self._square = square
        self._map = sphere_map
        self._zero_rows = zero_rows
        self._store = store
        self._memory = memory
        self._client = client
        self._report = report
        self._made: dict[Kernel, GramMatrix] = {}

    @property
    def made(self) -> GramMatrix | None:
        """A matrix of the samples; None for a matrix of the user's own."""
        if isinstance(self._square, GramMatrix):
            return self._square
        return next(iter(self._made.values()), None)

    def candidates(self, kernels: Sequence[Kernel]) -> list[Candidate]:
        """Matrices of kernels; for a matrix of the user's own, that one.

        Parameters
        ----------
        kernels
            The kernels.

        Returns
        -------
        list of Candidate
            In the same order.
        """
        if isinstance(self._square, np.ndarray):
            return [_of_array(self._square)]
        return [_of_gram(self.gram(kernel)) for kernel in kernels]

    def gram(self, kernel: Kernel) -> GramMatrix:
        """Gram matrix of a kernel on the samples."""
        if isinstance(self._square, GramMatrix):
            own = kernel == self._square.kernel
            return self._square if own else self._square.with_kernel(kernel)
        product = product_kernel(kernel)
        if product not in self._made:
            self._made[product] = compute_gram(
                self._square,
                product,
                sphere_map=self._map if kernel.spherical else "identity",
                zero_rows=self._zero_rows,
                store=self._store / _folder(product),
                memory=self._memory,
                client=self._client,
                progress=self._report,
            )
        return self._made[product].with_kernel(kernel)


def _folder(product: Kernel) -> str:
    """Name of the store of a kernel: of those with parameters, each has its own."""
    spec = product.to_spec()
    if len(spec) == 1:
        return product.name
    digest = blake2b(json.dumps(spec, sort_keys=True).encode(), digest_size=6).hexdigest()
    return f"{product.name}-{digest}"


def _of_gram(G: GramMatrix) -> Candidate:
    header = G.header
    types = [str(G.dtype), str(header.product_dtype)]
    key = [G.kernel.to_spec(), list(header.fingerprints), header.sphere_map, types]
    return Candidate(GramSource(G), names_of(G.kernel, G.dim), key)


def _of_array(K: Any) -> Candidate:
    names = dict.fromkeys(("kernel", "label"), "precomputed")
    nothing = dict.fromkeys(("time_scale", "time", "sigma"))
    return Candidate(ArraySource(K), names | nothing, digest_of(K))
