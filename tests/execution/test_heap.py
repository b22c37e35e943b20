"""Threads share one arena of malloc; what a command loads is not searched for garbage."""

import os
import subprocess
import sys

import pytest

import dhsk
from dhsk.execution.heap import WORKER_HEAP

ARENAS = """
import ctypes
from threading import Barrier, Thread
from dhsk.execution.heap import use_one_arena

if {limited}:
    use_one_arena()
library, together = ctypes.CDLL(None), Barrier(4)
library.malloc.restype = ctypes.c_void_p

def allocate():
    together.wait(60)
    assert library.malloc(ctypes.c_size_t(1000))
    together.wait(60)

threads = [Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.malloc_stats()
"""


def arenas(*, limited: bool) -> int:
    """Number of arenas of a process with four threads."""
    words = [sys.executable, "-c", ARENAS.format(limited=limited)]
    # Dask sets the variables of its workers in this process too.
    others = {name: os.environ[name] for name in os.environ if not name.startswith("MALLOC_")}
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, env=others)
    return done.stderr.count("Arena ")


@pytest.mark.skipif(sys.platform != "linux", reason="arenas are a matter of glibc")
def test_threads_share_an_arena() -> None:
    """By default they have one each."""
    assert arenas(limited=True) == 1
    assert arenas(limited=False) > 1


@pytest.mark.slow
def test_workers_begin_with_one_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is set before a worker process begins, as libc reads it once."""
    for name in WORKER_HEAP:  # what Dask left here after its own clusters comes first
        monkeypatch.delenv(name, raising=False)
    with dhsk.connect("local", n_workers=1) as client:
        (found,) = client.run(lambda: dict(os.environ)).values()
    assert found.items() >= {name: str(value) for name, value in WORKER_HEAP.items()}.items()


LOADED = """
import gc, sys
from dhsk.commands.cli import COMMANDS

searched = []
gc.callbacks.append(lambda phase, facts: searched.append(facts["generation"]))
COMMANDS["gram"].loaded
print(2 in searched, gc.isenabled(), gc.get_freeze_count() > 100_000, "dask.array" in sys.modules)
"""


@pytest.mark.slow
def test_what_a_command_loads_is_not_searched() -> None:
    """No search of all objects while libraries load, nor of theirs later; Dask's arrays not yet."""
    words = [sys.executable, "-c", LOADED]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "True", "True", "False"]
