"""Arguments and results of the tasks that processes share: their marks, and their files."""

from collections.abc import Iterator
from functools import partial
from time import monotonic
from types import NoneType
from typing import Any, Final

import numpy as np

from dhsk.errors import InputError
from dhsk.execution.checkpoint import digest_of

FILE_BYTES: Final = 8 * 2**20
FILE_SECONDS: Final = 15.0
"""A file of results is written when they have so many bytes, or took so long: what a killed process
computes again, and what is in memory of each process when all are read."""

_UNSHARED: Final = (
    "an array job cannot share this call, whose tasks return {}: make it outside of the job, or on "
    "a client of Dask"
)


class Marks:
    """What tasks are made of, as far as it tells them from others: see `values_in`."""

    def __init__(self) -> None:
        self._digests: dict[int, tuple[Any, str]] = {}  # the objects, so that none has their id

    def add(self, value: Any) -> None:
        """Compute the digest of an object that many tasks have."""
        self._digests[id(value)] = value, digest_of(*self.values_in(value))

    def values_in(self, value: Any) -> Iterator[Any]:
        """Arrays, numbers and names in the arguments of a task, of which others must have the same.

        Of other objects these are in what they call `marked`; kernels say what they are.
        """
        if id(value) in self._digests:
            yield self._digests[id(value)][1]
        elif isinstance(value, tuple | list):
            for part in value:
                yield from self.values_in(part)
        elif isinstance(value, slice):
            yield [value.start, value.stop]
        elif isinstance(value, str | int | float | NoneType) or _is_array(value):
            yield value
        elif isinstance(value, partial):
            yield from self.values_in((value.func, value.args, list(value.keywords.values())))
        elif hasattr(value, "to_spec") and not isinstance(value, type):
            yield value.to_spec()
        elif hasattr(value, "marked"):
            yield from self.values_in(value.marked)
        elif callable(value):
            yield getattr(value, "__qualname__", type(value).__name__)
            yield from self.values_in(getattr(value, "__self__", None))


def _is_array(value: Any) -> bool:
    """Whether it is an array of numbers or text, or a CSR matrix."""
    return hasattr(value, "indptr") or (isinstance(value, np.ndarray) and not value.dtype.hasobject)


class PackedResults:
    """Results as arrays and JSON values: tuples, lists, arrays, slices, numbers, text and None.

    Of a NamedTuple there is the tuple.
    """

    def __init__(self) -> None:
        self.structures: list[Any] = []
        self.arrays: list[Any] = []
        self._begin, self._bytes = monotonic(), 0

    @property
    def is_full(self) -> bool:
        """Whether a file of them is to be written."""
        return self._bytes >= FILE_BYTES or monotonic() - self._begin >= FILE_SECONDS

    def add(self, result: Any) -> None:
        """Add the result of the next task."""
        self.structures.append(self._packed(result))

    def _packed(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return ["list" if isinstance(value, list) else "tuple", *map(self._packed, value)]
        if isinstance(value, np.ndarray | np.generic):
            kind = "number" if isinstance(value, np.generic) else "array"
            array = np.asarray(value)
            if array.dtype.hasobject:
                raise InputError(_UNSHARED.format("an array of objects"))
            self._bytes += array.nbytes
            self.arrays.append(array if array.ndim else array.reshape(1))
            return [kind, len(self.arrays) - 1, array.ndim]
        if isinstance(value, slice):
            return ["slice", value.start, value.stop, value.step]
        if value is None or isinstance(value, str | int | float):
            return ["value", value]
        raise InputError(_UNSHARED.format(f"a {type(value).__name__}"))


def unpacked(structure: list[Any], arrays: dict[str, Any]) -> Any:
    """A result from its structure and the arrays of its file."""
    kind, *parts = structure
    if kind in ("tuple", "list"):
        found = [unpacked(part, arrays) for part in parts]
        return tuple(found) if kind == "tuple" else found
    if kind == "slice":
        return slice(*parts)
    if kind == "value":
        return parts[0]
    array = arrays.pop(f"array-{parts[0]}")
    if kind == "number":
        return array[0]
    return array if parts[1] else array.reshape(())
