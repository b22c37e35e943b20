"""Whether this process can start worker processes, and if not, why."""

import errno
import multiprocessing
import os
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from multiprocessing import process
from pathlib import Path
from typing import Final

from dhsk.errors import InputError
from dhsk.execution.folder import LockedName, remove_folder, sweep
from dhsk.systems import SEMAPHORES

SCRIPT: Final = 'for processes, run a script from a file, with `if __name__ == "__main__":`'
"""Advice if workers cannot import the program."""

_NO_MORE: Final = (errno.EAGAIN, errno.ENOMEM)
"""Errors of a system that starts no more processes."""

NANNY: Final = "Dask Worker process (from Nanny)"
"""Distributed's name of the processes that its nannies start."""

UNGUARDED: Final = (
    "worker processes import the script that starts them, and these ended during the import: put "
    'its statements under `if __name__ == "__main__":`, or omit connect("local"), as without a '
    "client dhsk computes on threads of this process"
)


def refuse_unguarded() -> None:
    """Raise InputError if this process was spawned and still imports the script of its parent.

    A worker ends without a traceback: those of all workers would bury the message of their parent.
    """
    own = process.current_process()
    # The flag that multiprocessing reads before it refuses to start a process.
    if getattr(own, "_inheriting", False):
        raise SystemExit(1) if own.name == NANNY else InputError(UNGUARDED)


def imports_main() -> bool:
    """Whether spawned processes import the script or module that this process runs."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return not (spec.name == "__main__" or spec.name.endswith(".__main__"))
    return getattr(main, "__file__", None) is not None


def obstacle() -> str | None:
    """Why this process can spawn no other; None if no reason is known.

    A program from standard input or a pipe has a name, but no file for other processes to import.
    An interactive one has no name, and nothing is imported.
    """
    if multiprocessing.current_process().daemon:
        return "this process is daemonic, of a pool or a Dask worker, and starts no processes"
    path = _path_of_main()
    if path is not None and not path.is_file():
        return (
            f"worker processes import the program that starts them, and {path.name} is no file "
            f"that they can read ({SCRIPT})"
        )
    try:
        multiprocessing.get_context("spawn").Lock()  # a worker needs several
    except (ImportError, OSError) as error:
        return f"worker processes need semaphores in shared memory, and there are none ({error})"
    return None


def _path_of_main() -> Path | None:
    """Path of the script that spawned processes import; None if they import none."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is not None or path is None:
        return None
    if Path(path).stem == "ipython":  # multiprocessing leaves that one alone
        return None
    return Path(getattr(process, "ORIGINAL_DIR", None) or Path.cwd(), path)


def refusal(error: BaseException) -> OSError | None:
    """The first error in a chain of causes by which the system refuses to start a process."""
    following: BaseException | None = error
    while following is not None:
        if isinstance(following, OSError) and following.errno in _NO_MORE:
            return following
        following = following.__cause__ or following.__context__
    return None


def root_cause(error: BaseException) -> BaseException:
    """The first error in the chain of causes of this one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


@lru_cache(maxsize=1)
def _semaphores(owner: int) -> LockedName:  # noqa: ARG001  # a forked process has its own
    """Name under which this process and those that it starts make their semaphores."""
    return LockedName(SEMAPHORES, _remove_semaphores, tidy=True)


def name_semaphores() -> None:
    """Name semaphores after dhsk, and remove those of killed processes.

    Spawned processes share named semaphores, which remain if all are killed together.
    `multiprocessing` gives them names that do not tell their owner.
    """
    if SEMAPHORES.is_dir():
        with suppress(OSError):  # not writable: no semaphores can be made either
            prefix = f"/{_semaphores(os.getpid()).name}"
            process.current_process()._config["semprefix"] = prefix  # type: ignore[attr-defined]


def remove_leftovers() -> None:
    """Remove what killed processes of this user left in temporary folders and shared memory."""
    sweep(Path(tempfile.gettempdir()), remove_folder)
    sweep(SEMAPHORES, _remove_semaphores)


def _remove_semaphores(folder: Path, name: str) -> None:
    for file in folder.glob(f"sem.{name}-*"):
        file.unlink(missing_ok=True)
