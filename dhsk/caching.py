"""Attributes that are computed at their first use, without a lock."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class CachedValue(Generic[Value]):
    """Descriptor of an attribute that is computed at its first use and kept in the object.

    As `functools.cached_property` from Python 3.12 on. Before, that holds a lock of the whole class
    while it computes: a computation that waits for other threads deadlocks if one of these needs
    the same attribute of another object. Without a lock, threads that come at the same time each
    compute the value, and the last one is kept.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> Self | Value:
        """The value, which hides this descriptor from then on."""
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def cached_value(compute: Callable[[Any], Value]) -> CachedValue[Value]:
    """Make a method an attribute that is computed at its first use, see `CachedValue`."""
    return CachedValue(compute)
