"""Executors: a bounded number of tasks at a time, results in order or as they finish."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from dhsk.errors import StoreError
from dhsk.files import full_disk_is_budget

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])


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
        """Send a value to each worker once, for use as an argument of many tasks.

        It must be an argument itself, not a part of one.
        """


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


def told_as(
    words: Callable[..., str], memory: Callable[..., int] | None = None
) -> Callable[[Function], Function]:
    """Decorator of a function for tasks: what a task computes, in words, and the bytes it takes.

    Both are functions of the arguments of the task, for messages about a task that is lost. They
    are attributes of the function, so that it is still pickled by its name.
    """

    def told(function: Function) -> Function:
        vars(function).update(words_of_task=words, memory_of_task=memory)
        return function

    return told


def words_of(function: Callable[..., Any], task: tuple[Any, ...]) -> str:
    """What a task computes, such as its tiles."""
    words = getattr(function, "words_of_task", None)
    return function.__name__ if words is None else str(words(*task))


def memory_of(function: Callable[..., Any], task: tuple[Any, ...]) -> int | None:
    """Bytes that a task takes, about; None if it is not known."""
    memory = getattr(function, "memory_of_task", None)
    return None if memory is None else int(memory(*task))
