"""What runs tasks: a bounded number at a time, results in order or as they finish."""

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
        """Call a function on many argument tuples, a bounded number of them in flight.

        Parameters
        ----------
        function
            Called as ``function(*task)``.
        tasks
            Argument tuples, taken only as room appears.
        ordered
            Whether results come in the order of the tasks, rather than as they finish.

        Yields
        ------
        Result
            What each call returns.

        Raises
        ------
        BudgetError
            The disk is full, or workers died of too little memory.
        StoreError
            A task could not read or write its files.
        """

    def share(self, value: Any) -> Any:
        """Make a value ready that many tasks are given: it is sent to each worker once."""


def call(function: Callable[..., Result], *task: Any) -> Result:
    """Call a function; errors of the system say what they are about."""
    with file_errors():
        return function(*task)


@contextmanager
def file_errors() -> Iterator[None]:
    """Say which of a task's files could not be used."""
    try:
        with full_disk_is_budget():
            yield
    except OSError as error:
        raise StoreError(f"a worker cannot use the store: {error}") from error
