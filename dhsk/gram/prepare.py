"""Samples as kernels see them, checked before the first tile: kernels, maps and every row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.execution.run import Run
from dhsk.gram.plan import GramPlan
from dhsk.gram.storage.header import Header, indefinite_of
from dhsk.gram.storage.names import digest_of_names
from dhsk.gram.storage.staging import in_order_of
from dhsk.gram.storage.store import GramStore
from dhsk.kernels import GaussianKernel, Kernel, PolynomialKernel, RowKernel, SmoothedKernel
from dhsk.kernels.rows import require_unit_rows, squared_norms
from dhsk.progress import Progress
from dhsk.samples import (
    Samples,
    Scan,
    SphereMap,
    ZeroRows,
    ZeroRule,
    apply_map,
    of_counts,
    open_samples,
    parse_sphere_map,
    scan,
    warn_of_zero_rows,
)
from dhsk.samples.looks import warn_of_heavy_direction, warn_of_looks
from dhsk.samples.names import in_order


def check_kernels(
    kernels: Sequence[Kernel],
    sides: Sequence[Samples],
    sphere_map: str | None,
    product_dtype: str = "float64",
) -> SphereMap:
    """Check that kernels, samples and map are compatible, before all rows are read; return the map.

    `sides` are the samples of rows and, if rectangular, of columns; the default map is that of the
    kernels. Warns (`InputWarning`) where a kernel takes samples for counts whose first rows seem to
    be none, or for directions that are nearly those of one column. Raises InputError, or
    AccuracyError for a kernel without its guaranteed accuracy.
    """
    if not kernels:
        raise InputError("no kernel was given: pass one, or a list of them")
    own = {kernel.default_map for kernel in kernels}
    if sphere_map is None and len(own) > 1:
        raise InputError(
            f"these kernels take samples by different maps ({', '.join(sorted(own))}): "
            "give sphere_map, or compute them separately"
        )
    chosen = parse_sphere_map(own.pop() if sphere_map is None else sphere_map)
    for kernel in kernels:
        _check_kernel(kernel, sides, chosen, product_dtype)
        kernel.prepare(product_dtype)
    if _of_counts(kernels, chosen):
        for side in sides:
            warn_of_looks(side)
    elif chosen == "projective" and any(kernel.spherical for kernel in kernels):
        for side in sides:
            warn_of_heavy_direction(side)
    return chosen


def _of_counts(kernels: Sequence[Kernel], chosen: SphereMap) -> bool:
    """Whether a kernel takes its samples for counts, made proportions by the map."""
    mapped = of_counts(chosen) and any(kernel.spherical for kernel in kernels)
    return mapped or any(isinstance(kernel, SmoothedKernel) for kernel in kernels)


def takes_float32(kernel: Kernel) -> bool:
    """Whether a kernel is accurate enough with inner products in float32 of any rows."""
    return kernel.spherical or kernel.name == "linear"


def _refuse_float32(kernel: Kernel) -> None:
    """Refuse kernels that take no inner products in float32; a Gaussian one checks its rows."""
    if takes_float32(kernel) or isinstance(kernel, GaussianKernel):
        return
    reason = "it is computed in float64"
    if isinstance(kernel, RowKernel):
        reason = "it is computed from the samples themselves, in float64"
    if isinstance(kernel, PolynomialKernel):
        reason = (
            f"a power of {kernel.degree} makes rounding as many times as large, and float32 has "
            "seven digits for values of all sizes"
        )
    raise InputError(
        f"a {kernel.name} kernel takes no float32, as {reason}: leave dtype and product_dtype at "
        "float64"
    )


def _check_kernel(
    kernel: Kernel, sides: Sequence[Samples], chosen: SphereMap, product_dtype: str
) -> None:
    if not kernel.of_samples:
        raise InputError(
            f"the {kernel.label} kernel is one of graph nodes, not of samples: compute it with "
            "dhsk.graph_gram"
        )
    if product_dtype == "float32":
        _refuse_float32(kernel)
    if isinstance(kernel, RowKernel) and chosen != "identity":
        raise InputError(
            f"a {kernel.name} kernel takes samples as they are, not mapped to a sphere: leave out "
            f"the {chosen} map"
        )
    dims = {side.shape[1] for side in sides}
    if len(dims) > 1:
        rows, columns = (side.source for side in sides)
        second = "Y, for the columns," if columns == rows else columns
        raise InputError(
            f"{rows} has {sides[0].shape[1]} features but {second} has {sides[1].shape[1]}: both "
            "sides need the same"
        )
    dim = kernel.row_length
    if dim is not None and dims != {dim}:
        raise InputError(
            f"the kernel is for dim {dim} but {sides[0].source} has {sides[0].shape[1]} features: "
            f"make the kernel with dim={sides[0].shape[1]}"
        )


def open_sides(X: Any, Y: Any = None) -> list[Samples]:
    """Open the samples of rows and, if given, of columns, with features in the same order."""
    rows = open_samples(X)
    if Y is None:
        return [rows]
    columns = open_samples(Y, vectorizer=rows.vectorizer)
    return [rows, in_order(columns, rows.feature_names, rows.source)]


@dataclass(frozen=True, eq=False)
class Data:
    """Samples as some kernels see them."""

    sides: Sequence[Samples]
    """Samples of the rows and, if the matrix is rectangular, of the columns."""
    kernels: Sequence[Kernel]
    sphere_map: SphereMap
    zero_rows: ZeroRule | ZeroRows
    """Rule for all-zero samples, of which `scan` warns; or their count, if the caller warns."""
    dtype: str = "float64"
    """Type of the values of the kernels, which must be in its range."""
    product_dtype: str = "float64"
    """Type of the products, which must determine the values."""

    def in_order_of(self, store: GramStore | None) -> Self:
        """The same samples with their features in the order of a store's, if there is one."""
        return self if store is None else replace(self, sides=in_order_of(store, self.sides))

    def scan(self, run: Run) -> list[Scan]:
        """Read all samples once: check each row for map and kernels, and compute fingerprints.

        Unmapped samples of spherical kernels must be unit vectors.
        """
        given = self.zero_rows
        zeros = [given if isinstance(given, ZeroRows) else ZeroRows(given) for _ in self.sides]
        pairs = list(zip(self.sides, zeros, strict=True))
        scans = [self._scanned(side, zero, run) for side, zero in pairs]
        if not isinstance(given, ZeroRows):
            warn_of_zero_rows([(side.source, zero.count, side.shape[0]) for side, zero in pairs])
        return scans

    def _scanned(self, side: Samples, zeros: ZeroRows, run: Run) -> Scan:
        kernels, sphere_map = self.kernels, self.sphere_map
        narrow = "float32" if "float32" in (self.dtype, self.product_dtype) else "float64"
        strict = [k for k in kernels if isinstance(k, RowKernel) or k.largest_norm2() < math.inf]
        single = self.product_dtype == "float32" and not all(map(takes_float32, kernels))
        unit = sphere_map == "identity" and any(kernel.spherical for kernel in kernels)

        def check(block: Rows, first: int) -> None:
            if unit:
                require_unit_rows(squared_norms(block), first_row=first)
            for kernel in strict:
                kernel.check_rows(block, first, dtype=narrow)
            if single:
                rows = apply_map(sphere_map, block, first, ZeroRows())
                for kernel in kernels:
                    kernel.check_products(rows, first, dtype=self.product_dtype)

        return scan(
            side,
            sphere_map,
            check=check if strict or unit else None,
            on_rows=lambda done: run.report(Progress("reading", done, side.shape[0])),
            zero_rows=zeros,
        )

    def header(self, plan: GramPlan, scans: Sequence[Scan]) -> Header:
        """Description of the store of a planned matrix."""
        rows, tiling, zeros = self.sides[0], plan.tiling, tuple(s.zero_rows for s in scans)
        return Header(
            n_rows=tiling.n_rows,
            n_cols=tiling.n_cols,
            symmetric=tiling.symmetric,
            dtype=plan.dtype,
            tile=tiling.tile,
            layout=plan.layout,
            kernels=tuple(kernel.to_spec() for kernel in self.kernels),
            sphere_map=self.sphere_map,
            dim=plan.sides.dim,
            fingerprints=tuple(s.fingerprint for s in scans),
            nnz=tuple(s.mapped_nnz for s in scans),
            product_dtype=plan.product_dtype,
            feature_names=digest_of_names(rows.feature_names),
            zero_rows=zeros if any(zeros) else None,
            vectorizer=None if rows.vectorizer is None else rows.vectorizer.settings,
            indefinite=indefinite_of(self.kernels),
        )
