"""Runs that are killed leave nothing for ever: the next one removes it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dhsk.execution.folder import PREFIX, LockedName, TemporaryFolder, remove_folder, sweep
from dhsk.execution.lock import machine

SHARED = Path("/dev/shm")

RUN = """
import sys, time
import numpy as np
import dhsk

if __name__ == "__main__":
    X = np.random.default_rng(0).random((50, 5))
    with dhsk.connect("local", n_workers=1) as client:
        G = dhsk.compute_gram(X, dhsk.CosineKernel(), client=client)
        print("running", flush=True)
        time.sleep(float(sys.argv[1]))
"""


@contextmanager
def running(folder: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A run with a worker and a matrix, at work until the block ends or for so many seconds."""
    (folder / "script.py").write_text(RUN)
    (folder / "tmp").mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, str(folder / "script.py"), str(seconds)],
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        try:
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def semaphores_of(process: "subprocess.Popen[str]") -> set[Path]:
    """Named semaphores that a process has open; those are memory maps."""
    maps = [line.split() for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines()]
    # By inode: a semaphore is made under another name than the one that it gets.
    numbers = {int(words[4]) for words in maps if words[5:] and "/dev/shm/sem." in words[5]}
    return {path for path in SHARED.glob("sem.*") if path.stat().st_ino in numbers}


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="named semaphores are files there on Linux only")
def test_what_a_killed_run_left_is_gone_after_the_next(tmp_path: Path) -> None:
    """Killed with all its processes, it leaves folders and semaphores; the next removes them."""
    with running(tmp_path, 600) as first:
        semaphores = semaphores_of(first)
        os.killpg(first.pid, signal.SIGKILL)
    left = set((tmp_path / "tmp").iterdir())
    assert len(left) > 1  # the worker's and the matrix's, and their locks
    assert semaphores  # a run of another test may have removed them by now
    with running(tmp_path, 1) as second:
        own = semaphores_of(second)
        assert second.stderr is not None
        assert second.stderr.read() == ""
    assert second.returncode == 0
    assert not any(path.exists() for path in semaphores | own)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="named semaphores are files there on Linux only")
def test_what_a_running_one_uses_stays(tmp_path: Path) -> None:
    """A second run beside the first one removes nothing of it, and nothing at all stays behind."""
    before = {path.name for path in SHARED.glob(f"{PREFIX}*.lock")}
    with running(tmp_path, 600) as first:
        semaphores = semaphores_of(first)
        claims = {p for p in SHARED.glob(f"{PREFIX}*.lock") if p.name not in before}
        folders = set((tmp_path / "tmp").iterdir())
        with running(tmp_path, 0):
            pass
        assert all(path.exists() for path in semaphores)
        assert set((tmp_path / "tmp").iterdir()) == folders
        assert any(str(first.pid) in claim.read_text() for claim in claims if claim.exists())
        os.killpg(first.pid, signal.SIGKILL)
    sweep(tmp_path / "tmp", remove_folder)
    assert list((tmp_path / "tmp").iterdir()) == []


def abandoned(folder: Path, name: str, signature: object) -> Path:
    """What a killed process left: a lock that nobody holds, and a folder with a file."""
    (folder / f"{PREFIX}{name}.lock").write_text(json.dumps(signature))
    (folder / f"{PREFIX}{name}").mkdir()
    (folder / f"{PREFIX}{name}" / "file").write_text("content")
    return folder / f"{PREFIX}{name}"


@pytest.mark.parametrize(
    "signature",
    [machine(), machine() | {"host": "a container"}, machine() | {"boot": "before"}],
    ids=["here", "container of this kernel", "before a restart"],
)
def test_names_of_this_machine_are_swept(tmp_path: Path, signature: object) -> None:
    """The kernel's lock tells for every process under it; a restart has ended all of them."""
    left = abandoned(tmp_path, "left", signature)
    assert TemporaryFolder(tmp_path).path != left
    assert list(tmp_path.glob(f"{PREFIX}left*")) == []


@pytest.mark.parametrize(
    "signature",
    [{"host": "another", "boot": "another"}, {"pid": 1}, [], "not of dhsk"],
    ids=["another machine", "no host", "a list", "a text"],
)
def test_names_of_others_stay(tmp_path: Path, signature: object) -> None:
    """Locks of another machine may not be visible here, and other programs have files too."""
    left = abandoned(tmp_path, "left", signature)
    sweep(tmp_path, remove_folder)
    assert (left / "file").read_text() == "content"
    assert (tmp_path / f"{PREFIX}left.lock").exists()


def test_stores_and_folders_without_a_lock_stay(tmp_path: Path) -> None:
    """What a user calls dhsk-something beside them is the user's."""
    (tmp_path / "dhsk-demo").mkdir()
    (tmp_path / "dhsk-gram").mkdir()
    (tmp_path / "dhsk-gram" / ".lock").write_text(json.dumps(machine()))
    sweep(tmp_path, remove_folder)
    assert {path.name for path in tmp_path.iterdir()} == {"dhsk-demo", "dhsk-gram"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Neither a lock that is a link, nor a link in the place of a folder."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("content")
    (mine / "lock").write_text(json.dumps(machine()))
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / f"{PREFIX}a.lock").write_text(json.dumps(machine()))
    (shared / f"{PREFIX}a").symlink_to(mine)
    (shared / f"{PREFIX}b.lock").symlink_to(mine / "lock")
    (shared / f"{PREFIX}b").mkdir()
    (shared / f"{PREFIX}c.lock").mkdir()
    sweep(shared, remove_folder)
    assert (mine / "file").read_text() == "content"
    assert (mine / "lock").exists()
    assert (shared / f"{PREFIX}b").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_other_users_names_stay(tmp_path: Path) -> None:
    """Root would be allowed to remove them."""
    left = abandoned(tmp_path, "left", machine())
    os.chown(tmp_path / f"{PREFIX}left.lock", 12345, 12345)
    sweep(tmp_path, remove_folder)
    assert (left / "file").exists()


def test_a_name_in_use_is_not_swept_by_its_own_process(tmp_path: Path) -> None:
    """Several folders of one process are apart, and each goes when it is told to."""
    first, second = TemporaryFolder(tmp_path), TemporaryFolder(tmp_path)
    assert first.path.is_dir()
    assert second.path.is_dir()
    first.remove()
    assert not first.path.exists()
    assert second.path.is_dir()
    del second
    assert list(tmp_path.iterdir()) == []


def test_a_fork_does_not_remove_what_its_parent_uses(tmp_path: Path) -> None:
    """A forked process that ends, even by the front door, leaves the folder to its owner."""
    folder = TemporaryFolder(tmp_path)
    child = os.fork()
    if child == 0:
        folder.remove()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.path.is_dir()
    sweep(tmp_path, remove_folder)
    assert folder.path.is_dir()


def test_a_name_swept_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: object
) -> None:
    """Between making a file and locking it another process may take it for abandoned."""
    import fcntl

    taken: list[int] = []
    real = fcntl.flock

    def first_fails(descriptor: int, how: int) -> None:
        if not taken:
            taken.append(descriptor)
            raise BlockingIOError(11, "made up")
        real(descriptor, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", first_fails)
        locked = LockedName(tmp_path, remove_folder)
    assert (tmp_path / f"{locked.name}.lock").exists()
    assert taken
