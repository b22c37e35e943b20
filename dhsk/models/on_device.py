"""Parts of kernel matrices on a device, for solvers and predictions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.devices import Device, DeviceArray, current_device, read_only
from dhsk.kernels import Kernel
from dhsk.kernels.cuda import DevicePass
from dhsk.kernels.duplicates import are_apart
from dhsk.kernels.on_device import (
    DeviceRows,
    block_from_device,
    blocks_from_device,
    device_for,
    memory_for,
    pays_on,
    values_on_device,
)
from dhsk.solvers.device_steps import WholeOnDevice
from dhsk.solvers.sources import Combination

_EDGE: Final = 8192
"""Rows of a block of a product: half a gigabyte of values in float64."""

_WHOLE: Final = 0.5
"""Share of the free memory that a whole matrix may take: two tasks use a device at a time."""


def most_whole(device: Device, itemsize: int) -> int:
    """Samples whose whole matrix may stay on a device, of entries of so many bytes."""
    return math.isqrt(int(_WHOLE * device.room()) // itemsize)


@dataclass(eq=False)
class RowsOnDevice:
    """Rows in memory, (n, dim), which are copied to a device once, at their first use."""

    kernel: Kernel
    rows: NDArray[Any]
    """Checked rows, dense; they are not written while this lives."""
    exact: bool
    """Whether the values of equal rows, and of a row with itself, are exact; else they are off by
    rounding like any others."""
    _apart: bool = field(default=True, init=False)
    _prepared: tuple[Any, Any, Any] | None = field(default=None, init=False)

    def pays(self, entries: int) -> bool:
        """Whether a device computes and sums so many values sooner than all cores."""
        return self._used(entries, 0) is not None

    def block(self, members: Indices, out: NDArray[Any]) -> bool:
        """Write the matrix of some rows, (k, k), unless a device would not compute it sooner."""
        k = len(members)
        found = self._used(k * k, k * k * out.itemsize)
        if found is None:
            return False
        device, one = found
        values = memory_for((k, k), out.dtype)
        with device.turn():
            rows = self._put(device).take(device, members)
            block_from_device(device, one, rows, rows, values)
        self.kernel.make_symmetric(values)
        out[...] = values
        return True

    def whole(self, samples: Indices) -> WholeOnDevice | None:
        """Matrix of some rows that stays on a device; None if it is no gain, or does not fit."""
        k = len(samples)
        found = self._used(k * k, self.rows.itemsize * k)
        if found is None or k > most_whole(found[0], self.rows.itemsize):
            return None
        device, one = found

        def values() -> DeviceArray:
            rows = self._put(device).take(device, samples)
            K = device.xp.empty((k, k), self.rows.dtype)
            for _, part, own in values_on_device(
                device, [one], rows, rows, K.dtype, same=self._apart
            ):
                K[part] = own
            return K

        return WholeOnDevice(device, samples, values)

    def combined(self, parts: Sequence[Combination]) -> list[Floats] | None:
        """Combinations, summed in float64; None if a device would not compute them sooner."""
        copied = sum(8 * part.coef.shape[1] * len(part.rows) for part in parts)
        found = self._used(sum(part.entries for part in parts), copied)
        if found is None:
            return None
        device, one = found
        with device.turn():
            rows = self._put(device)
            sides = ((rows.take(device, p.rows), rows.take(device, p.columns)) for p in parts)
            pairs = zip(sides, parts, strict=True)
            return [_product(device, one, *side, part.coef) for side, part in pairs]

    def product(self, V: Floats) -> Floats | None:
        """Product of the whole matrix with V, (n, k), in float64, by blocks above the diagonal.

        None if a device would not compute it sooner.
        """
        n, k = len(self.rows), V.shape[1]
        found = self._used(n * n // 2, 16 * n * k)
        if found is None:
            return None
        device, one = found
        result = np.empty(V.shape)
        with device.turn():
            rows, factor = self._put(device), device.put(V)
            sums = device.xp.zeros(V.shape)
            if self._apart:  # blocks of other rows need no search
                rows = replace(rows, marks=None)
            for number, i in enumerate(parts := list(blocks(n, _EDGE))):
                for j in parts[number:]:
                    sides, same = (rows[i], rows[j]), i == j and self._apart
                    for _, inside, values in values_on_device(
                        device, [one], *sides, np.float64, same=same
                    ):
                        part = slice(i.start + inside.start, i.start + inside.stop)
                        sums[part] += values @ factor[j]
                        if i != j:
                            sums[j] += values.T @ factor[part]
            device.get(sums, result)
        return result

    def _used(self, entries: int, copied: int) -> tuple[Device, DevicePass] | None:
        """Device of the code in progress and how it makes values, if it makes so many sooner."""
        device = current_device()
        if device is None or not pays_on(device, entries, self.rows.shape[1], copied):
            return None
        one = self.kernel.device_pass(self.rows.dtype)
        return None if one is None else (device, one)

    def _put(self, device: Device) -> DeviceRows:
        if self._prepared is None:
            rows, norms2, marks = self.kernel.prepared(self.rows, distinct=not self.exact)
            norms2 = norms2.astype(rows.dtype, copy=False)
            self._apart = marks is None or are_apart([marks])
            self._prepared = read_only(rows), read_only(norms2), marks
        return DeviceRows.put(device, *self._prepared)


def combined_on_device(kernel: Kernel, rows: Rows, columns: Rows, coef: Floats) -> Floats | None:
    """Kernel values between rows and columns, (a, b), times coefficients, (b, k), in float64.

    None if no device computes them sooner.
    """
    device = device_for(rows, columns, fetched=coef.shape[1])
    one = None if device is None else kernel.device_pass(rows.dtype)
    if device is None or one is None:
        return None
    prepared = kernel.prepared(rows), kernel.prepared(columns)
    with device.turn():
        sides = [DeviceRows.put(device, *side) for side in prepared]
        return _product(device, one, sides[0], sides[1], coef)


def _product(
    device: Device, one: DevicePass, rows: DeviceRows, columns: DeviceRows, coef: Floats
) -> Floats:
    """Product of kernel values and coefficients, in float64."""
    factor = device.put(coef.astype(np.float64))
    sums = device.xp.empty((len(rows), coef.shape[1]))
    for part, values in blocks_from_device(device, one, rows, columns, np.float64):
        sums[part] = values @ factor
    found = np.empty(sums.shape)
    device.get(sums, found)
    return found
