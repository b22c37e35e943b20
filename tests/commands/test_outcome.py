"""Memory of a process tree as it is seen from the client."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from dhsk.commands.outcome import INTERVAL_SECONDS, LARGEST_COST, TreeMemory, tree_bytes

HELD = 60_000_000
CHILD = f"""
import sys
data = bytearray(b"x") * {HELD}
print("held", flush=True)
sys.stdin.readline()
del data
print("freed", flush=True)
sys.stdin.readline()
"""


def test_the_peak_of_a_child_is_seen_after_it_has_passed() -> None:
    """Held and freed between two looks, memory still counts, as the kernel keeps its peak."""
    me = psutil.Process()
    before = tree_bytes(me)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert tree_bytes(me) - before > 0.9 * HELD
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "freed\n"
        if sys.platform == "linux":
            assert tree_bytes(me) - before > 0.9 * HELD
        with TreeMemory() as memory:
            pass
        assert memory.peak > 0
        child.communicate("\n")
    assert tree_bytes(me) - before < 0.5 * HELD


def test_children_count_where_their_pages_are_not_told(monkeypatch: Any) -> None:
    """As on macOS, which tells a user only what is resident of others, and keeps no peaks."""

    def told(process: psutil.Process) -> Any:
        if process.pid != os.getpid():
            raise psutil.AccessDenied(process.pid)
        return SimpleNamespace(uss=10**6, rss=10**7)

    monkeypatch.setattr(psutil.Process, "memory_full_info", told)
    monkeypatch.setattr("dhsk.commands.outcome.peak_resident", lambda _: 0)
    me = psutil.Process()
    before = tree_bytes(me)  # with children of other tests
    assert before >= 10**6
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert HELD < tree_bytes(me) - before < 1.5 * HELD
        child.communicate("\n\n")


@pytest.mark.slow
def test_looks_that_take_long_come_seldom(monkeypatch: Any) -> None:
    """A look of 20 ms may come every two seconds, so a second sees the first and the last one."""
    looks = []

    def slow(process: psutil.Process) -> int:
        looks.append(process.pid)
        time.sleep(2 * LARGEST_COST)
        return 100 - len(looks)

    monkeypatch.setattr("dhsk.commands.outcome.tree_bytes", slow)
    with TreeMemory() as memory:
        time.sleep(2 * INTERVAL_SECONDS)
    assert len(looks) == 2
    assert memory.peak == 99
