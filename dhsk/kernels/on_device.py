"""Kernel values on a device: one matrix product and one pass, strip by strip.

Strips are small enough to stay in the cache of a device between the product, the pass and what
follows, and large enough to fill it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.devices import Device, DeviceArray, current_device
from dhsk.kernels.cuda import DevicePass
from dhsk.kernels.duplicates import Marks, equal_pairs, set_near

_PASS: Final = 20
"""Cost of a value besides its inner product, in multiplications."""


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """Rows of one side of a block on a device."""

    rows: DeviceArray
    """(rows, dim)."""
    norms2: DeviceArray
    """Squared norms, (rows,), of the type of the rows, or ones."""
    marks: Marks | None
    """Hashes by which equal rows are found, in the memory of the machine; None if none are."""

    @classmethod
    def put(
        cls, device: Device, rows: NDArray[Any], norms2: Floats, marks: Marks | None
    ) -> "DeviceRows":
        """Copy checked rows, (rows, dim), and their squared norms, (rows,)."""
        norms = device.put(np.ascontiguousarray(norms2, rows.dtype))
        return cls(device.put(rows), norms, marks)

    def take(self, device: Device, chosen: Indices) -> "DeviceRows":
        """Some of the rows, in any order."""
        places = device.put(chosen)
        marks = None if self.marks is None else self.marks[chosen]
        return DeviceRows(self.rows[places], self.norms2[places], marks)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __getitem__(self, part: slice) -> "DeviceRows":
        marks = None if self.marks is None else self.marks[part]
        return DeviceRows(self.rows[part], self.norms2[part], marks)


def memory_for(shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
    """Array of zeros to copy to, whose pages exist: first writes are slow, and others wait then."""
    found = np.empty(shape, dtype)
    found.fill(0)
    return found


def device_for(rows: Rows, columns: Rows, fetched: int | None = None) -> Device | None:
    """Device of the code in progress, if it computes a block sooner than all cores would.

    It copies the rows to the device, and so many numbers of a row back, by default all values.
    Sparse rows stay on the processor.
    """
    device = current_device()
    if device is None or not (isinstance(rows, np.ndarray) and isinstance(columns, np.ndarray)):
        return None
    (a, dim), b = rows.shape, columns.shape[0]
    copied = (a + b) * dim + a * (b if fetched is None else fetched)
    pays = pays_on(device, a * b, dim, copied * rows.itemsize)
    return device if pays and rows.dtype == columns.dtype else None


def pays_on(device: Device, entries: int, dim: int, copied: int) -> bool:
    """Whether a device makes so many values sooner than all cores, and copies so many bytes."""
    return device.pays(entries * (dim + _PASS), copied)


def blocks_from_device(
    device: Device, one: DevicePass, rows: DeviceRows, columns: DeviceRows, dtype: Any
) -> Iterator[tuple[slice, DeviceArray]]:
    """Yield rows of a kernel's values, and the values of all pairs there, within a turn."""
    for _, part, values in values_on_device(device, [one], rows, columns, dtype):
        yield part, values


def block_from_device(
    device: Device, one: DevicePass, rows: DeviceRows, columns: DeviceRows, out: NDArray[Any]
) -> None:
    """Write kernel values of all pairs of rows, (a, b), to an array in memory, within a turn."""
    for part, values in blocks_from_device(device, one, rows, columns, out.dtype):
        device.get(values, out[part])


def values_on_device(
    device: Device,
    passes: Sequence[DevicePass],
    rows: DeviceRows,
    columns: DeviceRows,
    dtype: Any,
    *,
    same: bool = False,
) -> Iterator[tuple[int, slice, DeviceArray]]:
    """Yield values of kernels of all pairs of rows, within a turn on the device.

    Parameters
    ----------
    passes
        How each kernel is made of inner products.
    rows, columns
        Rows of both sides, (a, dim) and (b, dim).
    dtype
        Type of the values.
    same
        Whether both sides are the same rows, and are equal to themselves alone.

    Yields
    ------
    number, part, values
        Index of a kernel, rows, and values there, (part, b), valid until the next are yielded.
    """
    row_bytes = max(1, len(columns)) * columns.rows.dtype.itemsize
    step = max(1, device.strip_bytes // row_bytes)
    equal = _EqualRows.between(rows, columns)
    numbers = [device.put(one.numbers) for one in passes]
    for part in blocks(len(rows), step):
        strip, products = rows[part], dict[str, DeviceArray]()
        for number, one in enumerate(passes):
            if one.equal not in products:
                found = products[one.equal] = device.products(strip.rows, columns.rows)
                pairs = [] if equal is None else equal.pairs(part)
                if one.equal != "product":
                    norms2 = strip.norms2 if one.equal == "norms" else None
                    own = [(np.arange(len(strip)), np.arange(part.start, part.stop))]
                    _set_equal(device, found, own if same else pairs, norms2)
            values, code = products[one.equal], one.code(products[one.equal].dtype, dtype)
            if code is not None:
                values = device.xp.empty(values.shape, dtype)
                norms = (s.norms2.astype(one.numbers.dtype, copy=False) for s in (strip, columns))
                arguments = products[one.equal], values, numbers[number], *norms
                device.launch(code, values.shape, arguments)
            yield number, part, values


@dataclass(frozen=True, eq=False)
class _EqualRows:
    """Rows of two sides that equal one of the other, by their hashes."""

    rows: Indices
    """Their places, ascending."""
    columns: Indices
    row_marks: Marks
    """Their hashes."""
    column_marks: Marks

    @classmethod
    def between(cls, rows: DeviceRows, columns: DeviceRows) -> "_EqualRows | None":
        """Find equal rows; None if there are none, or none are to be found."""
        if rows.marks is None or columns.marks is None:
            return None
        i = _found_in(rows.marks, columns.marks)
        if not len(i):
            return None
        j = _found_in(columns.marks, rows.marks[i])
        return cls(i, j, rows.marks[i], columns.marks[j])

    def pairs(self, part: slice) -> Iterator[tuple[Indices, Indices]]:
        """Pairs of equal rows and columns, of rows in a strip, counted from its start."""
        first, last = np.searchsorted(self.rows, (part.start, part.stop))
        for i, j in equal_pairs(self.row_marks[first:last], self.column_marks):
            yield self.rows[first:last][i] - part.start, self.columns[j]


def _found_in(marks: Marks, others: Marks) -> Indices:
    """Places of the marks that are among others, ascending; only the others are sorted."""
    if not len(others):
        return np.zeros(0, np.intp)
    ascending = np.sort(others)
    at = np.searchsorted(ascending, marks)
    at[at == len(ascending)] = 0
    return np.flatnonzero(ascending[at] == marks)


def _set_equal(
    device: Device,
    products: DeviceArray,
    pairs: Iterable[tuple[Indices, Indices]],
    norms2: DeviceArray | None,
) -> None:
    """Set inner products of equal rows to their squared norms, or 1, if they are near."""
    for pair in pairs:
        i, j = map(device.put, pair)
        ones = device.xp.ones(len(i), products.dtype)
        set_near(device.xp, products, (i, j), ones if norms2 is None else norms2[i])
