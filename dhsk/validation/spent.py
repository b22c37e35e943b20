"""Seconds of a grid with those of earlier calls that were interrupted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Final

from dhsk.errors import AccuracyError, BudgetError, InputError
from dhsk.execution.checkpoint import Checkpoint
from dhsk.objects.places import Place

NAME: Final = "spent"


@contextmanager
def spent(journal: Place | None) -> Iterator[Callable[[], float]]:
    """Yield what tells the seconds so far; an interrupt keeps them among the checkpoints.

    So does any error but a refusal. What common methods may take depends on them: the same call
    would advise otherwise if it counted only what it did after the interrupt.
    """
    checkpoint = Checkpoint(journal)
    before = checkpoint.get(NAME, lambda kept: float(kept["seconds"])) or 0.0
    begin = perf_counter()

    def seconds() -> float:
        return before + perf_counter() - begin

    try:
        yield seconds
    except (InputError, BudgetError, AccuracyError):  # the same call is refused again
        raise
    except BaseException:
        with suppress(OSError):  # of a full disk, of which the error tells
            checkpoint.put(NAME, {"seconds": seconds()})
        raise
    checkpoint.drop(NAME)
