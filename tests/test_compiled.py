"""Functions are compiled once for all processes that start together."""

import ast
import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import sleep

import pytest
from numba.core.caching import IndexDataCacheFile

from dhsk import compiled
from dhsk.clock import WorkingClock
from dhsk.compiled import LOCK_NAME
from tests.parsed import parsed

PACKAGE = Path(compiled.__file__).parent

PROCESSES = 3

SCRIPT = """
import sys
import numpy as np
from dhsk.linear.active_rows import add_rows
from dhsk.solvers.smo import settle
sys.stdin.readline()
sums, b = np.zeros((1, 4)), np.array([1.0, 1e-18])
add_rows(np.eye(4), np.ones((4, 1)), sums)
settle(b, np.zeros(2), np.ones(2))
assert sums.sum() == 4 and b.tolist() == [1.0, 0.0]
print(sum(sum(one.stats.cache_misses.values()) for one in (add_rows, settle)))
"""
"""Needs two compiled functions, and prints how many of them it compiled."""

HOLDER = """
import sys
from dhsk.compiled import _turn
with _turn.at_most_one():
    _turn.take()
    print(flush=True)
    sys.stdin.read()
"""
"""Takes the turn to compile, and keeps it."""


def start(folder: Path, script: str = SCRIPT) -> subprocess.Popen[str]:
    """Start a process with its cache in a folder; it begins when it is told to."""
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
    )  # fmt: skip


def compilations(processes: Sequence["subprocess.Popen[str]"]) -> list[int]:
    """Functions that each compiled, if all begin together."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [int(text) for text in told]


@pytest.mark.slow
def test_processes_that_start_together_compile_each_function_once(tmp_path: Path) -> None:
    """And keep it under one name."""
    assert sum(compilations([start(tmp_path) for _ in range(PROCESSES)])) == 2
    assert len(list(tmp_path.rglob("*.nbc"))) == 2
    assert compilations([start(tmp_path)]) == [0]


@pytest.mark.slow
def test_a_killed_compiler_leaves_the_turn_to_others(tmp_path: Path) -> None:
    """Who waits goes on when the lock ends with its process."""
    holder = start(tmp_path, HOLDER)
    assert holder.stdout is not None
    holder.stdout.readline()
    waiter = start(tmp_path, "from dhsk import compiled\ncompiled.WAITING_SECONDS = 1e9\n" + SCRIPT)
    assert waiter.stdin is not None
    waiter.stdin.write("\n")
    waiter.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        waiter.wait(8.0)
    assert not list(tmp_path.rglob("*.nbc"))
    holder.kill()
    holder.communicate()
    assert compilations([waiter]) == [2]


def test_a_stopped_compiler_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock does not end."""
    monkeypatch.setattr(compiled, "WAITING_SECONDS", 0.1)
    monkeypatch.setattr(compiled, "_folder", lambda: tmp_path)

    @compiled.compiled()
    def twice(x: float) -> float:
        return 2 * x

    with (tmp_path / LOCK_NAME).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert twice(2.0) == 4.0


@pytest.mark.slow
@pytest.mark.parametrize("classes", ["UserProvidedCacheLocator", "UserWideCacheLocator"])
def test_without_any_folder_each_process_compiles_for_itself(
    monkeypatch: pytest.MonkeyPatch, classes: str
) -> None:
    """Where neither the package nor the home can be written, as in some containers."""
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", classes)
    nowhere = Path("/proc/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere))
    assert compilations([start(nowhere)]) == [2]


def test_a_full_disk_costs_the_cache_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled function serves its process."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(compiled, "_folder", lambda: tmp_path)
    monkeypatch.setattr(IndexDataCacheFile, "save", full)

    @compiled.compiled()
    def thrice(x: float) -> float:
        return 3 * x

    assert thrice(2.0) == 6.0


def test_estimates_leave_out_what_compiling_takes(tmp_path: Path) -> None:
    """A function compiles for some tenths of a second; the clock of estimates stands still."""
    script = """
import sys
from time import monotonic
import numpy as np
from dhsk.clock import working_seconds
from dhsk.solvers.smo import settle
sys.stdin.readline()
begin = monotonic(), working_seconds()
settle(np.array([1.0, 1e-18]), np.zeros(2), np.ones(2))
taken, worked = monotonic() - begin[0], working_seconds() - begin[1]
assert settle.stats.cache_misses
assert taken > 0.1, taken
assert 0 <= worked < taken / 4, (worked, taken)
print(1)
"""
    assert compilations([start(tmp_path, script)]) == [1]


def test_a_clock_that_is_stopped_never_falls() -> None:
    """Nor does it wait: it reads the moment at which it was stopped."""
    clock, read = WorkingClock(), []
    for _ in range(3):
        read.append(clock())
        with clock.stopped():
            read += [clock(), clock()]
            sleep(0.02)
        read.append(clock())
    assert read == sorted(read)
    assert read[1] == read[2]
    assert read[-1] - read[0] < 0.02


CALLER = """
from dhsk.compiled import compiled
from probe.called import FACTOR, called
@compiled()
def caller(x):
    return FACTOR * called(x)
"""

CALLED = """
from dhsk.compiled import compiled
FACTOR = 10
@compiled()
def called(x):
    return x + 1
"""


@pytest.mark.parametrize("changed", ["return x + 2", "FACTOR = 20"])
def test_what_is_called_is_compiled_anew(tmp_path: Path, changed: str) -> None:
    """A function whose own file stays, and another one that it calls, or a constant, is new."""
    package = tmp_path / "probe"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(CALLER)
    old = "return x + 1" if "return" in changed else "FACTOR = 10"

    def found() -> str:
        done = subprocess.run(
            [sys.executable, "-c", "from probe.caller import caller; print(caller(1))"],
            capture_output=True, text=True, check=True, cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        return done.stdout.strip()

    (package / "called.py").write_text(CALLED)
    assert (found(), found()) == ("20", "20")
    (package / "called.py").write_text(CALLED.replace(old, changed))
    assert found() == ("30" if "return" in changed else "40")


SOURCES = """
import importlib, pkgutil
from numba.core.dispatcher import Dispatcher
import dhsk
from dhsk.compiled import sources_of
from dhsk.kernels.certified.evaluate import compiled_pass
found = {"the pass of heat kernels": compiled_pass(3, 2, 1)}
for one in pkgutil.walk_packages(dhsk.__path__, "dhsk."):
    if one.name != "dhsk.__main__":
        found.update(vars(importlib.import_module(one.name)))
for name, function in found.items():
    if isinstance(function, Dispatcher):
        print(name, sources_of(function.py_func))
"""


def test_what_is_kept_serves_every_process() -> None:
    """Nothing in the hash of sources is of one process, such as an address or an order of sets."""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", SOURCES],
            capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    )  # fmt: skip
    assert len(first.splitlines()) > 20
    assert first == second


HEAT = """
import numpy as np
from dhsk.kernels.certified.evaluate import compiled_pass
run = compiled_pass(3, 2, 1)
run(np.ones(8), np.ones(8), np.ones(12))
print(sum(run.stats.cache_misses.values()))
"""


def test_the_pass_of_heat_kernels_is_compiled_once_a_machine(tmp_path: Path) -> None:
    """The second process loads it."""
    compiled_by = [
        subprocess.run(
            [sys.executable, "-c", HEAT], capture_output=True, text=True, check=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert compiled_by == ["1", "0"]


def is_compiled(function: ast.FunctionDef) -> bool:
    """Whether numba compiles it."""
    return any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "compiled"
        for one in function.decorator_list
    )


def test_no_slice_is_assigned_to() -> None:
    """`assign` does that: numba compiles messages with it, for seconds of each first run."""
    found, functions = [], 0
    for file in sorted(PACKAGE.rglob("*.py")):
        for function in parsed(file):
            if not (isinstance(function, ast.FunctionDef) and is_compiled(function)):
                continue
            functions += 1
            for node in ast.walk(function):
                targets = node.targets if isinstance(node, ast.Assign) else []
                if any(isinstance(part, ast.Slice) for one in targets for part in ast.walk(one)):
                    found.append(f"{file.name}:{node.lineno}")
    assert functions > 40
    assert found == []
