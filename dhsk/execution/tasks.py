"""Executors: a bounded number of tasks at a time, results in order or as they finish."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from dhsk.errors import StoreError
from dhsk.files import full_disk_is_budget

Result = TypeVar("Result")


class Executor(Protocol):
    """Runs tasks: on threads of this process, or on the workers of a Dask client."""

    def run(
        self,
        function: Callable[..., Result],
        tasks: Iterable[tuple[Any, ...]],
        *,
        ordered: bool = False,
    ) -> Generator[Result, None, None]:
        """Call ``function(*task)`` for each task, a bounded number of them in flight.

        Tasks are taken as earlier ones end. Results come as they finish, or in the order of the
        tasks. Raises BudgetError for a full disk or workers killed for their memory, StoreError
        for files that a task cannot read or write.
        """

    def share(self, value: Any) -> Any:
        """Send a value to each worker once, for use as an argument of many tasks."""


def call(function: Callable[..., Result], *task: Any) -> Result:
    """Call a function within `file_errors`."""
    with file_errors():
        return function(*task)


@contextmanager
def file_errors() -> Iterator[None]:
    """Turn the system's errors about a task's files into BudgetError and StoreError."""
    try:
        with full_disk_is_budget():
            yield
    except OSError as error:
        raise StoreError(f"a worker cannot use the store: {error}") from error
