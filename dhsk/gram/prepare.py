"""Checks before the first tile: of kernels, maps, memory, and every row of samples."""

import math
from collections.abc import Sequence
from typing import Any

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.kernels import GaussianKernel, Kernel, PolynomialKernel, RowKernel, SmoothedKernel
from dhsk.progress import OnProgress, Progress
from dhsk.samples import (
    Samples,
    Scan,
    SphereMap,
    ZeroRows,
    apply_map,
    open_samples,
    parse_sphere_map,
    scan,
)
from dhsk.samples.looks import warn_of_looks
from dhsk.samples.names import in_order


def check_kernels(
    kernels: Sequence[Kernel],
    sides: list[Samples],
    sphere_map: str | None,
    product_dtype: str = "float64",
) -> SphereMap:
    """Check that kernels, samples and map are compatible, before all rows are read; return the map.

    `sides` are the samples of rows and, if rectangular, of columns; the default map is that of the
    kernels. Warns (`InputWarning`) where a kernel takes samples for counts whose first rows seem to
    be none. Raises InputError, or AccuracyError for a kernel without its guaranteed accuracy.
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
        kernel.prepare()
    if _of_counts(kernels, chosen):
        for side in sides:
            warn_of_looks(side)
    return chosen


def _of_counts(kernels: Sequence[Kernel], chosen: SphereMap) -> bool:
    """Whether a kernel takes its samples for counts, made proportions by the map."""
    mapped = chosen == "hyperspherical" and any(kernel.spherical for kernel in kernels)
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
    kernel: Kernel, sides: list[Samples], chosen: SphereMap, product_dtype: str
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
        raise InputError(
            f"{sides[0].source} has {sides[0].shape[1]} features but "
            f"{sides[1].source} has {sides[1].shape[1]}: both sides need the same"
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


def scan_side(
    side: Samples,
    kernels: Sequence[Kernel],
    sphere_map: SphereMap,
    report: OnProgress,
    zero_rows: ZeroRows | None = None,
    dtype: str = "float64",
    product_dtype: str = "float64",
) -> Scan:
    """Read all samples once: check each row for map and kernels, and compute their fingerprint.

    Unmapped samples of spherical kernels must be unit vectors, and kernel values in the range of
    `dtype` and determined by products of `product_dtype`. `zero_rows` counts all-zero samples; None
    maps them to the centre.
    """
    strict = [k for k in kernels if isinstance(k, RowKernel) or k.largest_norm2() < math.inf]

    def check(block: Rows, first: int) -> None:
        for kernel in strict:
            kernel.check_rows(block, first, dtype=dtype)
        if product_dtype == "float32" and not all(takes_float32(kernel) for kernel in kernels):
            rows = apply_map(sphere_map, block, first, ZeroRows())
            for kernel in kernels:
                kernel.check_products(rows, first, dtype=product_dtype)

    return scan(
        side,
        sphere_map,
        unit=sphere_map == "identity" and any(kernel.spherical for kernel in kernels),
        check=check if strict else None,
        on_rows=lambda done: report(Progress("reading", done, side.shape[0])),
        zero_rows=zero_rows,
    )
