"""What systems differ in: calls that some of them lack, and what is lost there.

All other modules call this one, and `tests/test_systems.py` takes the calls away. Linux has all.

| call | missing on | what is lost there |
|---|---|---|
| `fcntl.flock` | Windows | nothing: bytes beyond the end of the file are locked |
| quotes of a POSIX shell | Windows | nothing: commands are proposed in double quotes |
| removing and renaming open files | Windows | nothing: they are closed before, and others wait |
| `os.posix_fallocate` | macOS, Windows | a quarter of the time to write a chunk |
| `os.posix_fadvise` | macOS, Windows | `dhsk plan --measure` reads from memory, not from the disk |
| `os.preadv`, `pwrite` | Windows | reading temporary records by several threads at once |
| `os.register_at_fork` | Windows | nothing: no process is forked |
| `os.geteuid`, `O_NOFOLLOW` | Windows | what another user left in a shared folder may be removed |
| `signal.pthread_sigmask` | Windows | workers end at Ctrl-C by themselves, and say so |
| OpenBLAS | macOS | one thread: Accelerate cannot be limited to it, so last bits may differ |
| glibc's malloc | macOS, Windows | one arena: threads keep some of what they have freed |
| `/proc` | macOS, Windows | peaks of memory between two looks; the host stands for its boot |
| `/sys/fs/cgroup` | macOS, Windows | nothing: there are no control groups |
| `/dev/shm` | macOS, Windows | semaphores of killed processes on macOS stay until it restarts |

`fsync` on macOS ends when the disk has the data, which may still be in the disk's own cache.
"""

import ctypes
import errno
import os
import re
import shlex
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import resource_tracker
from pathlib import Path, PurePath
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    _HAS_FLOCK = False
else:
    _HAS_FLOCK = True


def is_windows() -> bool:
    """Whether names of open files are fixed, and commands are typed into cmd.exe or PowerShell."""
    return os.name == "nt"


_PLAIN: Final = re.compile(r"[\w+=.:~/\\-]+")
"""Words that neither cmd.exe nor PowerShell reads anything into."""


def quoted(text: str) -> str:
    """Text as one word of a command that people type; on Windows cmd.exe keeps single quotes.

    Programs there read a doubled quote as one, and two backslashes before a quote as one.
    """
    if not is_windows():
        return shlex.quote(text)
    if _PLAIN.fullmatch(text):
        return text
    return '"' + re.sub(r'\\+(?="|\Z)', r"\g<0>\g<0>", text).replace('"', '""') + '"'


# Locks of open files, which end with their process


def open_to_lock(file: Path, *, create: bool = False) -> int:
    """Open a file of this machine for a lock; a link or a pipe is no such file."""
    if create:
        flags = os.O_RDWR | os.O_CREAT
    else:
        flags = os.O_RDWR | _flag("O_NOFOLLOW") | _flag("O_NONBLOCK")
    return os.open(file, flags | _flag("O_CLOEXEC") | _flag("O_BINARY"), 0o666)


def _flag(name: str) -> int:
    return int(getattr(os, name, 0))


def try_lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Lock an open file; False if another process has, None if its file system has no locks."""
    try:
        if _HAS_FLOCK:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        else:
            _lock_bytes(descriptor, shared=shared)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def unlock(descriptor: int) -> None:
    """End a lock; one that is only closed stays with a process that was forked meanwhile."""
    with suppress(OSError):  # there was none
        if _HAS_FLOCK:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        else:
            _unlock_bytes(descriptor)


# Windows lets no other process read or write the bytes that are locked, and a lock must not overlap
# another: so all of these lie beyond the end of any file that is locked, and sharing is to lock one
# of them. The first is as far as `msvcrt` can count.
_FIRST_BYTE: Final = 2**31 - 2**12
_MOST_SHARING: Final = 2**8


def _lock_bytes(descriptor: int, *, shared: bool) -> None:
    if not shared:
        _at_bytes(descriptor, msvcrt.LK_NBLCK, 0, _MOST_SHARING)  # type: ignore[attr-defined]
        return
    for one in range(_MOST_SHARING):
        try:
            _at_bytes(descriptor, msvcrt.LK_NBLCK, one, 1)  # type: ignore[attr-defined]
        except OSError as error:
            if error.errno != errno.EACCES or one == _MOST_SHARING - 1:
                raise
        else:
            return


def _unlock_bytes(descriptor: int) -> None:
    for first, count in [(0, _MOST_SHARING), *((one, 1) for one in range(_MOST_SHARING))]:
        with suppress(OSError):  # others were locked
            _at_bytes(descriptor, msvcrt.LK_UNLCK, first, count)  # type: ignore[attr-defined]
            return


def _at_bytes(descriptor: int, mode: int, first: int, count: int) -> None:
    """Lock or unlock bytes from the present position on, which is put back."""
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        os.lseek(descriptor, _FIRST_BYTE + first, os.SEEK_SET)
        msvcrt.locking(descriptor, mode, count)  # type: ignore[attr-defined]
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


# Names of open files

_BUSY_SECONDS: Final = 5.0
"""Most time to wait on Windows for others, such as virus scanners, that have a file open."""

_BUSY_TURN_SECONDS: Final = 0.05


def close_and_remove(descriptor: int, file: Path) -> None:
    """Remove a locked file and end its lock; on Windows `OSError` if another has it open.

    It is removed before the lock ends, as afterwards it may be another's. Windows removes no open
    file, whoever has opened it.
    """
    if is_windows():
        os.close(descriptor)
        file.unlink(missing_ok=True)
        return
    try:
        file.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def close_and_rename(descriptor: int, file: Path, target: Path) -> None:
    """Rename a locked file, over an existing one, and end its lock."""
    if is_windows():
        os.close(descriptor)
        _rename_in_time(file, target)
        return
    try:
        file.replace(target)
    finally:
        os.close(descriptor)


def _rename_in_time(file: Path, target: Path) -> None:
    end = monotonic() + _BUSY_SECONDS
    while True:
        try:
            file.replace(target)
        except PermissionError:
            if monotonic() > end:
                raise
            sleep(_BUSY_TURN_SECONDS)
        else:
            return


def is_own(status: os.stat_result) -> bool:
    """Whether a file is this user's; on Windows, which says nothing of that, it counts as such."""
    asked: Callable[[], int] | None = getattr(os, "geteuid", None)
    return asked is None or status.st_uid == asked()


def is_device_name(path: PurePath) -> bool:
    """Whether a path is in a folder of devices and processes; those in shared memory are files."""
    root, *names = path.parts[:4]
    return root == "/" and names[:1] in (["dev"], ["proc"]) and names[1:2] != [SEMAPHORES.name]


# Content of files


class AnyPlace:
    """Reads and writes of an open file at any place, by any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seeking = Lock()

    def read(self, at: int, out: memoryview) -> int:
        """Read bytes into memory; the number that were read, 0 at the end of the file."""
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [out], at)
        with self._seeking:
            os.lseek(self._descriptor, at, os.SEEK_SET)
            found = os.read(self._descriptor, len(out))
        out[: len(found)] = found
        return len(found)

    def write(self, at: int, data: memoryview) -> int:
        """Write bytes; the number that were written."""
        if hasattr(os, "pwrite"):
            return os.pwrite(self._descriptor, data, at)
        with self._seeking:
            os.lseek(self._descriptor, at, os.SEEK_SET)
            return os.write(self._descriptor, data)


def reserve(descriptor: int, size: int) -> None:
    """Have the disk set room aside, if it can: a write says what is wrong else."""
    if hasattr(os, "posix_fallocate"):
        with suppress(OSError):
            os.posix_fallocate(descriptor, 0, size)


def forget_content(file: Path) -> None:
    """Drop a written file from the system's memory, if that can be asked for."""
    if not hasattr(os, "posix_fadvise"):
        return
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


# Processes


def at_fork(**called: Callable[[], Any]) -> None:
    """Call functions when this process is forked, as `os.register_at_fork`."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**called)


@contextmanager
def blocking(*numbers: int) -> Iterator[None]:
    """Block signals of this thread, and of the processes that it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its first start would lift the mask again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def glibc() -> Any | None:
    """The C library, if it is GNU's."""
    try:
        library = ctypes.CDLL(None)
    except TypeError:  # Windows has no library of all that is loaded
        return None
    return library if hasattr(library, "gnu_get_libc_version") else None


# What the kernel tells in files

CONTROL_GROUPS: Final = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""Linux's groups of this process, and the folder that they are in."""

SEMAPHORES: Final = Path("/dev/shm")
"""Linux's folder of named semaphores: NAME is the file sem.NAME."""


@cache
def boot_id() -> str:
    """What tells the running system from others, on which its locks may not be seen."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text().strip() if boot.exists() else socket.gethostname()


def process_namespace() -> str:
    """Name of this container's numbers of processes; the host's name where there is none."""
    link = Path("/proc/self/ns/pid")
    with suppress(OSError):
        return os.readlink(link)  # noqa: PTH115  # it is no path
    return socket.gethostname()


def peak_resident(pid: int) -> int:
    """Peak resident memory of the process `pid` in bytes; 0 if the kernel does not say."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 if found else 0
