"""What runs tasks looks like to those that have some."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

Run: TypeAlias = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]
"""Calls a function on argument tuples, somewhere, and yields the results in any order."""
