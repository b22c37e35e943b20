"""Products of a matrix with vectors on a device, where its values never leave the device."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.devices import Device, DeviceArray, current_device, refuse_too_large
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, SourceOfTiles, TileSource, extent, samples_of_sides, within
from dhsk.kernels.cuda import DevicePass
from dhsk.kernels.duplicates import are_apart
from dhsk.kernels.on_device import DeviceRows, values_on_device

Factor: TypeAlias = tuple[slice, NDArray[Any]]
"""Rows of the other factor of a product, and their values, (rows, k)."""

_SIDE_STRIPS: Final = 2
"""Size of the samples of a side of a group, in strips of the device."""

Partial: TypeAlias = list[tuple[slice, NDArray[Any]]]
"""Rows of a result and their sums, (kernels, rows, k)."""


def computes_on_device(source: SourceOfTiles) -> bool:
    """Whether the device of the code in progress multiplies a matrix of dense samples."""
    return current_device() is not None and bool(_passes_of(source))


def device_edge(source: SourceOfTiles, tiling: Tiling) -> int | None:
    """Tiles along the edge of a group that a device multiplies; None if it does not.

    They are many: in smaller groups the same samples are read, and copied, more often.
    """
    device = current_device()
    if device is None or not _passes_of(source):
        return None
    assert isinstance(source, TileSource)  # others have no passes
    header = GramStore.open(source.path).header
    row_bytes = np.dtype(header.product_dtype).itemsize * header.dim
    return max(1, _SIDE_STRIPS * device.strip_bytes // (row_bytes * tiling.tile))


def multiplied_on_device(
    source: SourceOfTiles,
    tiling: Tiling,
    group: Group,
    factors: tuple[Factor | None, Factor | None],
    dtype: Any,
) -> Partial | None:
    """Products of the tiles of a group with their parts of V, if a device computes them.

    Parameters
    ----------
    source, tiling, group
        The tiles.
    factors
        Parts of V by which the tiles and the transposed tiles are multiplied.
    dtype
        Type of the sums.

    Returns
    -------
    list of (slice, ndarray) or None
        Sums of each factor that is given; None for sparse samples, tiles that are stored, kernels
        that no device computes, and where there is no device.
    """
    device = current_device()
    passes = [] if device is None else _passes_of(source)
    if device is None or not passes:
        return None
    assert isinstance(source, TileSource)  # others have no passes
    with device.turn():  # from here on, as samples of many tasks would not fit in memory
        return _multiplied(device, source, passes, tiling, group, factors, dtype)


def _multiplied(
    device: Device,
    source: TileSource,
    passes: Sequence[DevicePass],
    tiling: Tiling,
    group: Group,
    factors: tuple[Factor | None, Factor | None],
    dtype: Any,
) -> Partial:
    """Products of a group within a turn on a device."""
    store, extents = GramStore.open(source.path), extent(tiling, group)
    rows, cols = samples_of_sides(store, *extents)
    of_norms = (k for k, one in zip(source.kernels, passes, strict=True) if one.equal == "norms")
    kernel = next(of_norms, source.kernels[0])
    prepared = [kernel.prepared(rows)] if cols is rows else list(map(kernel.prepared, (rows, cols)))
    if are_apart([marks for _, _, marks in prepared]):
        prepared = [(side, norms2, None) for side, norms2, _ in prepared]
    refuse_too_large(
        device, sum(own.nbytes for own, _, _ in prepared), "samples of a group of tiles"
    )
    sides = [DeviceRows.put(device, *side) for side in prepared]
    sums = _GroupSums(device, extents, factors, len(passes), np.dtype(dtype))
    for i, j in group:
        place = within(tiling.rows(i), extents[0]), within(tiling.cols(j), extents[1])
        blocks, own = (sides[0][place[0]], sides[-1][place[1]]), tiling.symmetric and i == j
        for number, part, values in values_on_device(
            device, passes, *blocks, store.header.dtype, same=own and blocks[0].marks is None
        ):
            sums.add(number, _moved(part, place[0].start), place[1], values, mirrored=not own)
    return sums.fetched()


def _passes_of(source: SourceOfTiles) -> list[DevicePass]:
    """How a device makes the values of each kernel; empty if it does not."""
    if not (isinstance(source, TileSource) and source.compute):
        return []
    header = GramStore.open(source.path).header
    if any(entries is not None for entries in header.nnz):
        return []
    passes = [kernel.device_pass(np.dtype(header.product_dtype)) for kernel in source.kernels]
    return [one for one in passes if one is not None] if None not in passes else []


def _moved(part: slice, start: int) -> slice:
    return slice(part.start + start, part.stop + start)


class _GroupSums:
    """Sums of a group on a device, and the factors that they are made with."""

    def __init__(
        self,
        device: Device,
        extents: tuple[slice, slice],
        factors: tuple[Factor | None, Factor | None],
        n_kernels: int,
        dtype: "np.dtype[Any]",
    ) -> None:
        self._device, self._extents, self._dtype = device, extents, dtype
        self._factors = [None if one is None else device.put(one[1]) for one in factors]
        self._sums: list[DeviceArray] = [
            None
            if one is None
            else device.xp.zeros((n_kernels, part.stop - part.start, one.shape[1]), dtype)
            for one, part in zip(self._factors, extents, strict=True)
        ]

    def add(
        self, number: int, rows: slice, cols: slice, values: DeviceArray, *, mirrored: bool
    ) -> None:
        """Add the products of values of a kernel, and of their mirror image."""
        values = values.astype(self._dtype, copy=False)
        forward, backward = self._factors
        if forward is not None:
            self._sums[0][number, rows] += values @ forward[cols]
        if backward is not None and mirrored:
            self._sums[1][number, cols] += values.T @ backward[rows]

    def fetched(self) -> Partial:
        """Rows of the result and their sums."""
        found: Partial = []
        for part, sums in zip(self._extents, self._sums, strict=True):
            if sums is not None:
                values = np.empty(sums.shape, self._dtype)
                self._device.get(sums, values)
                found.append((part, values))
        return found
