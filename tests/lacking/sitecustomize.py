"""Makes another system of this one, for dhsk alone, in each process that finds this on its path.

``DHSK_LACKS`` names what is lacking, separated by commas: calls such as ``os.pwrite``, modules such
as ``fcntl``, folders such as ``/proc``, "glibc", and "open names" where open files can be neither
removed nor renamed, as on Windows. Other libraries have all, so they know this for Linux.
"""

import builtins
import errno
import fcntl
import importlib.abc
import importlib.machinery
import os
import struct
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

LACKS = frozenset(filter(None, os.environ.get("DHSK_LACKS", "").split(",")))

FOLDERS = ("/proc", "/dev/shm", "/sys/fs/cgroup")


class Lacking:
    """A module without some names, and with others in place of its own."""

    def __init__(self, module: Any, gone: set[str], own: dict[str, Any]) -> None:
        self._module, self._gone, self._own = module, gone, own

    def __getattr__(self, name: str) -> Any:
        if name in self._gone:
            raise AttributeError(f"module {self._module.__name__!r} has no attribute {name!r}")
        return self._own[name] if name in self._own else getattr(self._module, name)


class Msvcrt(ModuleType):
    """Locks of bytes as `msvcrt.locking` has them: of an open file, without overlap, not shared.

    They are Linux's locks of an open file, which duplicates of a descriptor share too.
    """

    LK_UNLCK, LK_LOCK, LK_NBLCK = 0, 1, 2

    @staticmethod
    def locking(descriptor: int, mode: int, count: int) -> None:
        """Lock or unlock bytes from the present position on; `PermissionError` if others have."""
        first = os.lseek(descriptor, 0, os.SEEK_CUR)
        if first + count > 2**31:
            raise OSError(errno.EINVAL, "a position is a number of 32 bits")
        if mode == Msvcrt.LK_UNLCK:
            allowed, kind = (first, first + count) in held_by(descriptor), fcntl.F_UNLCK
        else:
            overlaps = [o for o in held_by(descriptor) if first < o[1] and o[0] < first + count]
            allowed, kind = not overlaps, fcntl.F_WRLCK
        try:
            if not allowed:
                raise BlockingIOError
            wanted = struct.pack("hhqqi4x", kind, os.SEEK_SET, first, count, 0)
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error


def held_by(descriptor: int) -> list[tuple[int, int]]:
    """First bytes and ends of what an open file has locked."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    words = [line.split() for line in lines if line.startswith("lock:")]
    return [(int(found[-2]), int(found[-1]) + 1) for found in words if "OFDLCK" in found]


def own_names(name: str) -> dict[str, Any]:
    """What stands in a module in place of its own names."""
    if name == "os" and "open names" in LACKS:
        return {"name": "nt", "O_BINARY": 0}
    if name == "ctypes" and "glibc" in LACKS:
        return {"CDLL": without_glibc}
    return {}


def without_glibc(name: str | None) -> Any:
    """The libraries of this process, of another maker."""
    import ctypes

    if "open names" in LACKS:
        raise TypeError("LoadLibrary() argument 1 must be str, not None")
    return Lacking(ctypes.CDLL(name), {"gnu_get_libc_version"}, {})


def lacking_import(name: str, *given: Any) -> Any:
    """Import a module as dhsk finds it on that system."""
    if name == "msvcrt" and "fcntl" in LACKS:
        return Msvcrt(name)
    if name in LACKS:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    found = builtins.__import__(name, *given)
    gone = {one.removeprefix(f"{name}.") for one in LACKS if one.startswith(f"{name}.")}
    own = own_names(name)
    return Lacking(found, gone, own) if gone or own else found


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a module of dhsk, with folders of the system's under names that are not there."""

    def exec_module(self, module: ModuleType) -> None:
        """Have it import as on that system."""
        own = vars(builtins) | {"__import__": lacking_import}
        module.__dict__["__builtins__"] = own
        super().exec_module(module)

    def get_code(self, fullname: str) -> Any:
        """Code of the changed source, which is not kept."""
        path = self.get_filename(fullname)
        source = self.get_data(path).decode()
        changed = source
        for folder in LACKS.intersection(FOLDERS):
            changed = changed.replace(f'"{folder}', f'"/lacking{folder}')
        return super().get_code(fullname) if changed == source else compile(changed, path, "exec")


class Finder(importlib.abc.MetaPathFinder):
    """Finds modules of dhsk."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Where the module is, with its loader from here."""
        if fullname.partition(".")[0] != "dhsk":
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and isinstance(found.loader, importlib.machinery.SourceFileLoader):
            found.loader = Loader(found.loader.name, found.loader.path)
        return found


def refuse_open(event: str, given: tuple[Any, ...]) -> None:
    """Refuse to remove or rename a file of a test that this process has open."""
    if event not in ("os.remove", "os.rename"):
        return
    for name in given[: 1 + (event == "os.rename")]:
        with suppress(TypeError, ValueError):
            file = os.fsdecode(name)
            if file.startswith(os.environ["DHSK_LACKS_IN"]):
                refuse_if_open(file)


def refuse_if_open(file: str) -> None:
    """Refuse as Windows does; a link is no open file."""
    with suppress(FileNotFoundError):
        wanted = os.lstat(file)
        for number in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(os.fstat(int(number.name)), wanted):
                    break
        else:
            return
        raise PermissionError(errno.EACCES, "it is open in this process", file)


if LACKS:
    sys.meta_path.insert(0, Finder())
    if "open names" in LACKS:
        sys.addaudithook(refuse_open)
