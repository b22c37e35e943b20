"""What a process keeps of freed memory, by glibc's malloc, and what Python searches for garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dhsk import systems

WORKER_HEAP: Final = {
    "MALLOC_ARENA_MAX": 1,
    "MALLOC_MMAP_THRESHOLD_": 16 << 20,
    "MALLOC_TRIM_THRESHOLD_": 32 << 20,
}
"""Environment of workers. One arena: by default each thread takes one of its own, which keeps what
that thread has freed, and a worker has several; a Gram matrix on two workers took 605 MiB in place
of 505. By Dask's default a worker returns the memory of every array at once: a fifth of the
time of a grid of small problems was the kernel's, to make it again. So up to 32 MiB are kept."""

_ARENA_MAX: Final = -8
"""M_ARENA_MAX in glibc's malloc.h."""


def use_one_arena() -> None:
    """Have all threads of this process share one arena; for programs, before they start threads.

    Does nothing where the C library has no such setting.
    """
    library = systems.glibc()
    if library is not None:
        library.mallopt(_ARENA_MAX, 1)


@contextmanager
def loading_libraries() -> Iterator[None]:
    """Leave all that is loaded within out of the searches for garbage; for programs.

    Modules, classes and functions stay until the end, but searching them while more are loaded, and
    once more at the end, took a third of the processor time of a command that computes little.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
