"""Systems that lack what Linux has: the same results, and the same is left by those killed."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest

import dhsk
from dhsk import systems
from tests.parsed import parsed

HERE = Path(__file__).parent
PACKAGE = Path(dhsk.__file__).parent

MACOS = {
    "os.posix_fallocate", "os.posix_fadvise", "os.sched_getaffinity", "glibc",
    "/proc", "/dev/shm", "/sys/fs/cgroup",
}  # fmt: skip
NEVER_CALLED = {
    "resource", "os.fork", "os.getuid", "os.getegid", "os.pread", "os.pwritev", "os.O_DIRECTORY",
    "os.statvfs", "os.killpg", "os.setsid", "os.sched_getaffinity", "signal.SIGKILL",
    "signal.SIGHUP", "signal.alarm",
}  # fmt: skip
WINDOWS = NEVER_CALLED | MACOS | {
    "fcntl", "open names", "os.register_at_fork", "os.geteuid", "os.pwrite", "os.preadv",
    "os.O_NOFOLLOW", "os.O_NONBLOCK", "os.O_CLOEXEC", "signal.pthread_sigmask",
}  # fmt: skip
SYSTEMS = {
    "Linux without /proc and /dev/shm": {"/proc", "/dev/shm", "/sys/fs/cgroup"},
    "macOS": MACOS,
    "Windows": WINDOWS,
}

WORK = """
import os, signal, sys
from functools import partial
from hashlib import sha256
from pathlib import Path
import numpy as np
import dhsk

def told(last, event):
    if last is not None and event.stage == last[0] and last[1] <= event.done < event.total:
        os.kill(os.getpid(), signal.SIGKILL)

def all_of(folder, client, kill):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = rng.poisson(1.0 + 2.0 * (y[:, None] == np.arange(9) % 3)) + 1.0
    kernel = dhsk.HeatKernel(9, 0.2)
    of_tiles = partial(told, ("tiles", 4) if kill == "matrix" else None)
    G = dhsk.compute_gram(
        X, kernel, store=folder / "gram", tile=30, client=client, progress=of_tiles
    )
    yield np.asarray(G).tobytes()
    of_folds = partial(told, ("fits", 2) if kill == "grid" else None)
    found = dhsk.cross_validate(
        X, y, kernels=["cosine", kernel], cv=2, C=[0.1, 1.0], client=client,
        out=dhsk.Output(folder / "journal", folder / "cv"), progress=of_folds,
    )
    yield repr([(row["mean"], row["n_support"]) for row in found.summary_]).encode()
    model = dhsk.HeatSVC(C=1.0, kernel=kernel).fit_samples(X, y, journal=folder / "fit")
    model.save(folder / "model.dhsk")
    yield dhsk.HeatSVC.load(folder / "model.dhsk").predict(X[::2]).tobytes()
    head = "%%MatrixMarket matrix coordinate integer general"
    (folder / "counts.mtx").write_text(head + "\\n3 2 4\\n3 2 5\\n1 1 2\\n2 2 1\\n3 1 1\\n")
    yield np.asarray(dhsk.compute_gram(folder / "counts.mtx", dhsk.CosineKernel())).tobytes()

if __name__ == "__main__":
    folder, kill, n_workers = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    client = dhsk.connect("local", n_workers=n_workers) if n_workers else None
    digest = sha256()
    for found in all_of(folder, client, kill):
        digest.update(found)
    if client is not None:
        client.close()
    print(digest.hexdigest())
"""
"""A matrix in a store, a grid with a journal, a model that is saved, counts that are spilled."""


def environment(lacks: set[str], folder: Path) -> dict[str, str]:
    """Variables of a process on a system that lacks something."""
    if sys.platform != "linux":
        pytest.skip("takes away what Linux has, and looks into /proc for it")
    path = os.pathsep.join([str(HERE / "lacking"), str(PACKAGE.parent)])
    if "fcntl" in lacks:  # its locks are none for other tests, whose semaphores it would remove
        lacks = lacks | {"/dev/shm"}
    own = {"DHSK_LACKS": ",".join(sorted(lacks)), "DHSK_LACKS_IN": str(folder), "PYTHONPATH": path}
    return dict(os.environ) | own | {"TMPDIR": str(folder / "tmp")}


def run(lacks: set[str], folder: Path, script: str, *words: object) -> Any:
    """Run a script on a system that lacks something, with its temporary files in a folder."""
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "script.py").write_text(script)
    return subprocess.run(
        [sys.executable, str(folder / "script.py"), str(folder), *map(str, words)],
        capture_output=True, text=True, check=False, timeout=240, env=environment(lacks, folder),
    )  # fmt: skip


def digest_of(done: "subprocess.CompletedProcess[str]") -> str:
    """What a run has found."""
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run finds on this system, that nobody kills."""
    return digest_of(run(set(), tmp_path_factory.mktemp("whole"), WORK, "never", 0))


def unportable(folder: Path) -> set[str]:
    """Names below a folder that another system would refuse, or take for one another."""
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    lower = Counter(path.lower() for path in paths)
    odd = re.compile(r'[<>:"\\|?*\x00-\x1f]|[ .](/|$)|(^|/)(con|prn|aux|nul|com\d|lpt\d)(\.|/|$)')
    return {path for path in paths if lower[path.lower()] > 1 or odd.search(path.lower())}


def test_names_are_compared_as_other_systems_do(tmp_path: Path) -> None:
    """By the checks of the next test."""
    (tmp_path / "a").mkdir()
    for name in ("Ab", "aB", "x:y", "end.", "nul.npz", "plain.npz", "a/.lock", "a/con"):
        (tmp_path / name).touch()
    assert unportable(tmp_path) == {"Ab", "aB", "x:y", "end.", "nul.npz", "a/con"}


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_killed_run_goes_on_to_the_same_bits(system: str, whole: str, tmp_path: Path) -> None:
    """Killed in its matrix and in its grid, it leaves nothing but what it was to make."""
    lacks = SYSTEMS[system]
    for kill in ("matrix", "grid"):
        done = run(lacks, tmp_path, WORK, kill, 0)
        assert done.returncode == -9, done.stderr
        assert unportable(tmp_path) == set()
    assert digest_of(run(lacks, tmp_path, WORK, "never", 0)) == whole
    left = {path.name for path in tmp_path.rglob(".*")}
    assert left == set()
    assert list((tmp_path / "tmp").iterdir()) == []


EACH = """
import os, signal, sys
from hashlib import sha256
from pathlib import Path
import numpy as np
import dhsk
import psutil
from dhsk import systems
from dhsk.commands.outcome import tree_bytes
from dhsk.execution.folder import TemporaryFolder
from dhsk.execution.heap import use_one_arena
from dhsk.execution.limits import memory_limit
from dhsk.execution.processes import name_semaphores, remove_leftovers
from dhsk.execution.upstream import signals_blocked
from dhsk.files import written_beside
from dhsk.samples.spill import Spill

folder = Path(sys.argv[1])
use_one_arena()
remove_leftovers()
name_semaphores()
with signals_blocked():
    X = np.random.default_rng(0).poisson(2.0, (60, 9)) + 1.0
G = dhsk.compute_gram(X, "heat", store=folder / "gram", tile=20)
with written_beside(folder / "file", flush=True) as file:
    file.write(np.asarray(G).tobytes())
systems.forget_content(folder / "file")
spill = Spill(np.float64)
spill.append(np.arange(9.0))
spill.write(3, np.ones(2))
kept = TemporaryFolder(folder)
assert memory_limit() > 0 and tree_bytes(psutil.Process()) > 0 and kept.path.is_dir()
kept.remove()
data = (folder / "file").read_bytes() + spill.read(1, 8).tobytes()
print(sha256(data).hexdigest(), sorted(path.name for path in folder.iterdir()))
"""
"""Whatever `systems` is asked for."""

TOGETHER = (
    {"fcntl", "os.preadv", "os.geteuid", "signal.pthread_sigmask", "glibc"},
    {"open names", "os.pwrite", "os.posix_fadvise"},
    {"/proc", "os.O_NOFOLLOW", "os.posix_fallocate", "os.register_at_fork"},
    {"/dev/shm", "/sys/fs/cgroup", "os.O_NONBLOCK", "os.O_CLOEXEC"},
)
"""All that is called; what does the like, such as reading and writing, is lacking apart."""


@pytest.fixture(scope="module")
def each(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What that gives on this system."""
    return digest_of(run(set(), tmp_path_factory.mktemp("each"), EACH))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("lack", TOGETHER, ids=lambda lack: ", ".join(sorted(lack)))
def test_each_call_may_be_lacking(lack: set[str], each: str, tmp_path: Path) -> None:
    """While those like it are there, as on systems that nobody has thought of."""
    done = run(lack, tmp_path, EACH)
    assert digest_of(done) == each
    assert done.stderr == ""


def test_each_call_is_lacking_once() -> None:
    """In the test before this one."""
    assert sorted(chain(*TOGETHER)) == sorted(WINDOWS - NEVER_CALLED)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["macOS", "Windows"])
def test_workers_are_started_anew(system: str, whole: str, tmp_path: Path) -> None:
    """They lack the same, import the script, and end without a word."""
    done = run(SYSTEMS[system], tmp_path, WORK, "never", 2)
    assert digest_of(done) == whole
    assert done.stderr == ""
    assert list((tmp_path / "tmp").iterdir()) == []


# Locks

LOCKS = """
import sys
from pathlib import Path
import dhsk
from dhsk.execution.lock import one_of_several, sole_writer

def hold(context):
    with context:
        print("held", flush=True)
        sys.stdin.readline()

folder, how = Path(sys.argv[1]) / "store", sys.argv[2]
try:
    hold(sole_writer(folder) if how == "alone" else one_of_several(folder))
except dhsk.StoreError as error:
    print("refused:", error, flush=True)
"""


class Writer:
    """A process that asks for the lock of a store, and holds it until it is told to end."""

    def __init__(self, lacks: set[str], folder: Path, how: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(folder / "script.py"), str(folder), how],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment(lacks, folder),
        )  # fmt: skip
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()

    def end(self) -> None:
        """Let it go on to its end."""
        self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("system", ["Windows", "macOS"])
def test_locks_exclude_other_processes_and_end_with_theirs(system: str, tmp_path: Path) -> None:
    """One alone or several; the killed one leaves a file without a lock, the last one none."""
    (tmp_path / "script.py").write_text(LOCKS)
    lacks = SYSTEMS[system]
    first = Writer(lacks, tmp_path, "alone")
    assert first.said == "held\n"
    for how in ("alone", "together"):
        refused = Writer(lacks, tmp_path, how)
        assert f"is being written by process {first.process.pid} on " in refused.said
        refused.end()
    first.process.kill()
    first.process.communicate()
    assert (tmp_path / "store" / ".lock").exists()
    together = [Writer(lacks, tmp_path, "together") for _ in range(3)]
    assert [one.said for one in together] == ["held\n"] * 3
    for one in together:
        refused = Writer(lacks, tmp_path, "alone")
        assert "is being written by process" in refused.said
        refused.end()
        one.end()
    last = Writer(lacks, tmp_path, "alone")
    assert last.said == "held\n"
    last.end()
    assert list((tmp_path / "store").iterdir()) == []


# Names


def test_folders_of_devices_are_those_of_unix() -> None:
    """On a disk of Windows anybody may call a folder dev."""
    for name in ("/dev/stdout", "/proc/self/fd/1", "/dev"):
        assert systems.is_device_name(PurePosixPath(name))
    for name in ("/dev/shm/a", "/home/dev/a", "/home", "/"):
        assert not systems.is_device_name(PurePosixPath(name))
    assert not systems.is_device_name(PureWindowsPath(r"C:\dev\a"))
    assert not systems.is_device_name(PureWindowsPath(r"\\host\dev\a"))


def test_a_name_that_is_busy_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scanners of viruses have new files open for a moment."""
    tries: list[Path] = []
    replace = Path.replace

    def busy(file: Path, target: Path) -> Path:
        tries.append(file)
        if len(tries) < 3:
            raise PermissionError(13, "in use")
        return replace(file, target)

    monkeypatch.setattr(Path, "replace", busy)
    monkeypatch.setattr(systems, "is_windows", lambda: True)
    monkeypatch.setattr(systems, "_BUSY_TURN_SECONDS", 0.001)
    for name, content in (("a", "new"), ("b", "old")):
        (tmp_path / name).write_text(content)
    descriptor = systems.open_to_lock(tmp_path / "a")
    systems.close_and_rename(descriptor, tmp_path / "a", tmp_path / "b")
    assert (len(tries), (tmp_path / "b").read_text()) == (3, "new")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(descriptor)


# Words of commands that people type


def parsed_by_windows(line: str) -> list[str]:
    """Words of a command line as programs for Windows are given them (Microsoft's rules of C)."""
    words, word, inside, at = [], None, False, 0
    while at < len(line):
        found = re.compile(r"(\\*)(\"*)").match(line, at)
        assert found is not None
        slashes, quotes = map(len, found.groups())
        if not quotes and not slashes:
            if line[at] == " " and not inside:
                words, word = words + ([] if word is None else [word]), None
            else:
                word = (word or "") + line[at]
            at += 1
            continue
        word = (word or "") + "\\" * (slashes // 2 if quotes else slashes)
        at += slashes
        if quotes and slashes % 2:
            word, at = word + '"', at + 1
        elif quotes > 1 and inside:
            word, at = word + '"', at + 2
        elif quotes:
            inside, at = not inside, at + 1
    return words + ([] if word is None else [word])


BARE = (
    r"found\run.toml", r"C:\Users\RUNNER~1\a.csv:kind", r"\\host\share\x.csv", "ill=5", "Größe",
    "a-b_c.h5",
)  # fmt: skip
ENCLOSED = (
    "my data.csv", r"C:\a b\c.csv:kind", "a&b", "x|y", "a<b", "a>b", "a^b", "a(1)", "50%", "a!",
    "a;b", "a,b", "it's", "{a}", "@a", "#a", "", "a b\\",
)  # fmt: skip


def test_words_are_quoted_as_shells_of_windows_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By double quotes, and only where cmd.exe or PowerShell would read something into them."""
    monkeypatch.setattr(systems, "is_windows", lambda: True)
    assert [systems.quoted(one) for one in BARE] == list(BARE)
    assert systems.quoted("my data.csv") == '"my data.csv"'
    texts = [*BARE, *ENCLOSED, 'a "b" c', 'a\\"b', '"', "a b\\\\"]
    line = " ".join(systems.quoted(one) for one in texts)
    assert parsed_by_windows(line) == texts
    assert all(systems.quoted(one)[0] == '"' == systems.quoted(one)[-1] for one in ENCLOSED)


def test_words_are_quoted_for_other_shells_too() -> None:
    """As the library of Python does."""
    if os.name != "nt":
        assert systems.quoted(r"found\run.toml") == r"'found\run.toml'"
        assert systems.quoted("a.csv:kind") == "a.csv:kind"


WRITES_SCRIPTS = {"systems.py", "execution/batch.py", "execution/upstream.py"}
"""The one that quotes for others, and those whose words are for scripts of batch systems."""


def test_no_other_module_quotes_for_one_shell_alone() -> None:
    """What people are to type goes through `quoted`."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in parsed(file):
            names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
            if "shlex" in [*names, getattr(node, "module", None)]:
                found.add(str(file.relative_to(PACKAGE)))
    assert found == WRITES_SCRIPTS


# All else that differs is in one module

CALLS = {one.partition(".")[2] for one in WINDOWS if "." in one} | {
    "CDLL", "locking", "F_FULLFSYNC", "memfd_create", "sendfile", "copy_file_range",
    "mkfifo", "symlink", "chown", "lchown", "fchmod", "getrlimit", "setrlimit", "getrusage",
    "wait4", "waitpid", "SIGUSR1", "SIGUSR2", "SIGALRM", "getpgid", "uname", "nice",
}  # fmt: skip
"""Attributes that only some systems have."""

MODULES = {"fcntl", "msvcrt", "resource", "pwd", "grp", "termios", "tty", "pty", "ctypes", "winreg"}


def names_of(file: Path) -> Iterator[str]:
    """Calls, modules and folders in a file that only some systems have."""
    for node in parsed(file):
        if isinstance(node, ast.Attribute) and node.attr in CALLS:
            yield node.attr
        elif isinstance(node, ast.Import):
            yield from MODULES.intersection(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from MODULES.intersection([node.module])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (one for one in ("/proc", "/dev/", "/sys/") if node.value.startswith(one))


def test_no_other_module_knows_what_systems_lack() -> None:
    """Who needs it asks this one."""
    found = {
        (str(file.relative_to(PACKAGE)), name)
        for file in PACKAGE.rglob("*.py")
        if file.name != "systems.py"
        for name in names_of(file)
    }
    assert not found
    assert len(set(names_of(PACKAGE / "systems.py"))) > 10
