"""Killed at any moment, the same command finishes the store, bit for bit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import dhsk
from dhsk.gram.storage.store import GramStore

WORDS = ["gram", "x.npy", "--out", "killed", "--time-scale", "0.3", "--tile", "64"]
"""A job of 300 tiles and a second."""

WORKERS = ["--workers", "2"]

everywhere = pytest.mark.parametrize("where", [[], WORKERS], ids=["threads", "workers"])
"""In the process of the command, and in others."""

Start = Callable[[Path, list[str]], "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path, counts: Any) -> Path:
    """A folder with samples, where commands run."""
    np.save(tmp_path / "x.npy", counts(1500, 64))
    return tmp_path


def chunks(store: Path) -> dict[str, int]:
    """Finished tiles by name, with their times of writing."""
    files = (store / "gram" / "c").glob("*/*")
    return {str(f.relative_to(store)): f.stat().st_mtime_ns for f in files if f.name.isdigit()}


def wait_for_tiles(process: "subprocess.Popen[str]", store: Path, count: int) -> None:
    """Return once so many tiles are there."""
    deadline = time.monotonic() + 180
    while len(chunks(store)) < count:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)


@everywhere
@pytest.mark.slow(seconds=20)
def test_killed_process_tree_resumes(
    contents: Any, start: Start, folder: Path, where: list[str]
) -> None:
    """SIGKILL to all processes, twice; what was finished is not computed again."""
    rng = np.random.default_rng(1)
    store, reference = folder / "killed", folder / "whole"
    kernel = dhsk.HeatKernel.at_scale(dim=64, time_scale=0.3)
    dhsk.compute_gram(folder / "x.npy", kernel, store=reference, tile=64)
    for count in np.sort(rng.choice(np.arange(1, 60), 2, replace=False)):
        process = start(folder, WORDS + where)
        wait_for_tiles(process, store, int(count))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    finished = {tile: when for tile, when in chunks(store).items() if is_whole(store, tile)}
    assert 0 < len(finished) < 300
    process = start(folder, WORDS + where)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    after = chunks(store)
    assert {tile: after[tile] for tile in finished} == finished
    assert contents(store) == contents(reference)


def is_whole(store: Path, tile: str) -> bool:
    """Whether a tile counts as finished for the store itself."""
    i, j = (int(part) for part in Path(tile).parts[-2:])
    return (i, j) not in GramStore.open(store).missing_tiles()


def members(session: int) -> list[psutil.Process]:
    """Processes of a session that have not ended, zombies included."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(process.pid) == session:
                found.append(process)
    return found


def wait_until_alone(session: int) -> None:
    """Return once no process of a session is left."""
    deadline = time.monotonic() + 30
    while left := members(session):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


@everywhere
@pytest.mark.slow(seconds=20)
def test_interrupted_command_says_so_and_resumes(
    contents: Any, start: Start, tmp_path: Path, counts: Any, where: list[str]
) -> None:
    """Ctrl-C and SIGTERM, which workers hear too: 130, one sentence, nobody left, resumable."""
    np.save(tmp_path / "x.npy", counts(2200, 64))
    store = tmp_path / "killed"
    for number, send in (
        (signal.SIGINT, os.killpg),  # a terminal
        (signal.SIGTERM, os.killpg),  # Slurm at the time limit
        (signal.SIGTERM, os.kill),
    ):
        before = len(chunks(store))
        process = start(tmp_path, WORDS + where)
        wait_for_tiles(process, store, before + 1)
        send(process.pid, number)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 130, output
        said = [line for line in output.splitlines() if line]
        usual = "dashboard", "begins", "of disk while it runs"
        words = [line for line in said if not any(part in line for part in usual)]
        assert len(words) == 1, output
        assert "interrupted; what is finished is kept: run the same command" in words[0]
        wait_until_alone(process.pid)
        assert before < len(chunks(store)) < 630
    kernel = dhsk.HeatKernel.at_scale(dim=64, time_scale=0.3)
    for path in (store, tmp_path / "whole"):
        dhsk.compute_gram(tmp_path / "x.npy", kernel, store=path, tile=64)
    assert contents(store) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_signal_while_the_workers_end_changes_nothing(start: Start, folder: Path) -> None:
    """All tiles are done, so the command ends as done or as interrupted: at once, without noise."""
    process = start(folder, WORDS + WORKERS)
    wait_for_tiles(process, folder / "killed", 300)
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode in (0, 130), output
    assert "Traceback" not in output


DELETED = """
import signal, time
import dhsk.__main__ as command

class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.{})

def run(arguments):
    del [Interrupted()][0]
    time.sleep(5)
    return 0

command._run = run
command.main([])
"""


@pytest.mark.slow
@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_while_an_object_is_deleted_is_heard(name: str) -> None:
    """Python ignores what is raised there."""
    words = [sys.executable, "-c", DELETED.format(name)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 130, done.stderr
    assert done.stderr.startswith("dhsk: interrupted")


WITHIN_EXEC = """
import signal
import dhsk.__main__ as command

command._run = lambda arguments: exec("signal.raise_signal(signal.SIGTERM)")
command.main([])
"""


def test_an_interrupt_within_exec_ends_with_its_code(tmp_path: Path) -> None:
    """`python -m` would end by a signal: a lazy import executes the text of a dataclass."""
    (tmp_path / "interrupted.py").write_text(WITHIN_EXEC)
    words = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr.startswith("dhsk: interrupted")


OF_A_COMPILER = """
import signal
import dhsk.__main__ as command

def run(arguments):
    {}
    raise RuntimeError("no compiled object yet")

command._run = run
command.main([])
"""


@pytest.mark.usefixtures("hears_interrupts")
def test_an_interrupt_of_which_others_make_an_error_is_one() -> None:
    """As numba and half-loaded modules do; without an interrupt the error stays."""
    caught = "try: signal.raise_signal(signal.SIGINT)\n    except KeyboardInterrupt: pass"
    ended = {}
    for line in (caught, "pass"):
        words = [sys.executable, "-c", OF_A_COMPILER.format(line)]
        ended[line] = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended[caught].returncode, ended[caught].stderr.count("\n")) == (130, 1)
    assert ended[caught].stderr.startswith("dhsk: interrupted")
    assert ended["pass"].returncode == 1
    assert "no compiled object yet" in ended["pass"].stderr


AGAIN = """
import signal, time
import dhsk.__main__ as command

def run(arguments):
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.raise_signal(signal.SIGINT)
        print("cleaned", flush=True)
        if {later}:
            time.sleep(command.SAME_SECONDS + 0.1)
            signal.raise_signal(signal.SIGINT)
            time.sleep(5)
            print("in vain", flush=True)

command._run = run
command.main([])
"""


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("later", [False, True])
def test_a_second_interrupt_leaves_no_traceback(later: bool) -> None:
    """The same one sent twice, as `timeout` does, is one; a later one ends at once."""
    words = [sys.executable, "-c", AGAIN.format(later=later)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (130, "cleaned\n"), done.stderr
    assert done.stderr.startswith("dhsk: interrupted")
    assert done.stderr.count("\n") == 1
