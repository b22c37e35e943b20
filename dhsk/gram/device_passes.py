"""Products of a matrix with vectors on a device, where its values never leave the device."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.devices import Device, DeviceArray, current_device, refuse_too_large
from dhsk.gram.storage.staged import Side
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, SourceOfTiles, TileSource, extent, within
from dhsk.kernels.cuda import DevicePass
from dhsk.kernels.duplicates import are_apart
from dhsk.kernels.on_device import DeviceRows, values_on_device

Factor: TypeAlias = tuple[slice, NDArray[Any]]
"""Rows of the other factor of a product, and their values, (rows, k)."""

_KEPT: Final = 8
"""Divisor of the memory of a device: the share that samples may take which stay there."""

_SIDE_STRIPS: Final = 2
"""Size of the samples of a side of a group, in strips of the device."""

Partial: TypeAlias = list[tuple[slice, NDArray[Any]]]
"""Rows of a result and their sums, (kernels, rows, k)."""


def computes_on_device(source: SourceOfTiles) -> bool:
    """Whether the device of the code in progress multiplies a matrix of dense samples."""
    return _on_device(source) is not None


def device_edge(source: SourceOfTiles, tiling: Tiling) -> int | None:
    """Tiles along the edge of a group that a device multiplies; None if it does not.

    They are many: in smaller groups the same samples are read, and copied, more often.
    """
    found = _on_device(source)
    if found is None:
        return None
    device, store, _ = found
    row_bytes = np.dtype(store.header.product_dtype).itemsize * store.header.dim
    return _edge(device, row_bytes, tiling.tile)


def pass_bytes(device: Device, row_bytes: int, tiling: Tiling) -> int:
    """Memory of the device that a task of a pass takes: samples of both sides, and two strips.

    Those are inner products and values of some rows. Vectors are small beside them.
    """
    edge = _edge(device, row_bytes, tiling.tile) * tiling.tile
    samples = min(edge, tiling.n_rows) + min(edge, tiling.n_cols)
    return samples * row_bytes + 2 * device.strip_bytes


def _edge(device: Device, row_bytes: int, tile: int) -> int:
    return max(1, _SIDE_STRIPS * device.strip_bytes // (row_bytes * tile))


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
    found = _on_device(source)
    if found is None:
        return None
    device, store, passes = found
    extents = extent(tiling, group)
    with device.turn():  # from here on, as samples of many tasks would not fit in memory
        sides = _sides(device, source, passes, store, extents)
        if are_apart([side.marks for side in sides]):
            sides = [replace(side, marks=None) for side in sides]
        sums = _GroupSums(device, extents, factors, len(passes), np.dtype(dtype))
        for above, left, own in _blocks_of(tiling, group):
            place = within(above, extents[0]), within(left, extents[1])
            blocks = sides[0][place[0]], sides[-1][place[1]]
            for number, part, values in values_on_device(
                device, passes, *blocks, store.header.dtype, same=own and blocks[0].marks is None
            ):
                sums.add(number, _moved(part, place[0].start), place[1], values, mirrored=not own)
        return sums.fetched()


def _blocks_of(tiling: Tiling, group: Group) -> Iterator[tuple[slice, slice, bool]]:
    """Rows and columns of neighbouring tiles of a row, and whether they are one of the diagonal.

    Alone, a tile of 1,000 x 1,000 takes the calls for it: measured on an H200, 0.11 ms.
    """
    for i, tiles in groupby(sorted(group), key=itemgetter(0)):
        columns = [j for _, j in tiles]
        if tiling.symmetric and columns[0] == i:
            yield tiling.rows(i), tiling.cols(i), True
            columns = columns[1:]
        for _, run in groupby(enumerate(columns), key=lambda one: one[1] - one[0]):
            own = [j for _, j in run]
            yield tiling.rows(i), slice(tiling.cols(own[0]).start, tiling.cols(own[-1]).stop), False


def _sides(
    device: Device,
    source: SourceOfTiles,
    passes: Sequence[DevicePass],
    store: GramStore,
    extents: tuple[slice, slice],
) -> list[DeviceRows]:
    """Samples of the rows and the columns of a group; one of both if they are the same.

    They stay on the device for other groups and passes, if all samples take little of it.
    """
    header, (above, left) = store.header, extents
    of_norms = (k for k, one in zip(source.kernels, passes, strict=True) if one.equal == "norms")
    kernel, symmetric = next(of_norms, source.kernels[0]), header.tiling.symmetric
    wanted: list[tuple[Side, slice]]
    wanted = [("rows", above), ("rows" if symmetric else "cols", left)]
    wanted = wanted[:1] if symmetric and above == left else wanted
    row_bytes = np.dtype(header.product_dtype).itemsize * header.dim
    needed = sum(part.stop - part.start for _, part in wanted) * row_bytes
    refuse_too_large(device, needed, "samples of a group of tiles")
    keeps = _KEPT * (header.n_rows + header.n_cols) * row_bytes <= device.room()

    def made(name: Side, part: slice) -> DeviceRows:
        return DeviceRows.put(device, *kernel.prepared(store.samples.read(name, part)))

    return [
        device.kept(source, (name, part.start, part.stop), partial(made, name, part))
        if keeps
        else made(name, part)
        for name, part in wanted
    ]


def _on_device(source: SourceOfTiles) -> tuple[Device, GramStore, list[DevicePass]] | None:
    """The device of the code in progress, and how it makes the values of each kernel of a store.

    None if there is no device, or it does not make the values.
    """
    device = current_device()
    if device is None or not (isinstance(source, TileSource) and source.compute):
        return None
    store = GramStore.open(source.path)
    if any(entries is not None for entries in store.header.nnz):
        return None
    kind = np.dtype(store.header.product_dtype)
    passes = [one for k in source.kernels if (one := k.device_pass(kind)) is not None]
    return None if len(passes) < len(source.kernels) else (device, store, passes)


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
