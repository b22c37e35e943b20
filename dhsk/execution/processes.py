"""Whether worker processes can be started from here, and what stands in the way where not."""

import errno
import multiprocessing
import os
import sys
from contextlib import suppress
from multiprocessing import process
from pathlib import Path
from typing import Final

from dhsk.execution.leftovers import Claim

SEMAPHORES: Final = Path("/dev/shm")
"""Where Linux keeps named semaphores: NAME is the file sem.NAME."""

SCRIPT: Final = 'for processes, run a script from a file, with `if __name__ == "__main__":`'
"""The way out where it is the program that cannot be imported."""

_NO_MORE: Final = (errno.EAGAIN, errno.ENOMEM)
"""What the system says where it starts no more processes."""

NANNY: Final = "Dask Worker process (from Nanny)"
"""What distributed calls the processes that its nannies start."""

UNGUARDED: Final = (
    "worker processes import the script that starts them, and these ended while they did: put what "
    'it does under `if __name__ == "__main__":`, or leave out connect("local"), as without a '
    "client dhsk computes on threads of this process"
)


def importing_main() -> bool:
    """Whether this process was spawned and is still importing the script of its parent."""
    # What multiprocessing itself asks before it refuses to start a process.
    return bool(getattr(process.current_process(), "_inheriting", False))


def end_quietly_if_worker() -> None:
    """End a worker process that came here by importing an unguarded script.

    Its parent says what is missing, once; a traceback from every worker would bury that.
    """
    if process.current_process().name == NANNY:
        raise SystemExit(1)


def imports_main() -> bool:
    """Whether spawned processes import the script or module that this process runs."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return not (spec.name == "__main__" or spec.name.endswith(".__main__"))
    return getattr(main, "__file__", None) is not None


def obstacle() -> str | None:
    """Why no process can be spawned from this one, in words; None if nothing is known against it.

    A program from standard input or a pipe has a name, but no file that another process could
    import; an interactive one has no name, and nothing is imported.
    """
    if multiprocessing.current_process().daemon:
        return "this process is daemonic, of a pool or a Dask worker, and starts no processes"
    path = _path_of_main()
    if path is not None and not path.is_file():
        return (
            f"worker processes import the program that starts them, and {path.name} is no file "
            f"that they could read ({SCRIPT})"
        )
    try:
        multiprocessing.get_context("spawn").Lock()  # a worker needs several
    except (ImportError, OSError) as error:
        return f"worker processes need semaphores in shared memory, and there are none ({error})"
    return None


def _path_of_main() -> Path | None:
    """Script that spawned processes run again by its path; None if there is none."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is not None or path is None:
        return None
    if Path(path).stem == "ipython":  # multiprocessing leaves that one alone
        return None
    return Path(getattr(process, "ORIGINAL_DIR", None) or Path.cwd(), path)


def refusal(error: BaseException) -> OSError | None:
    """Error of a system that starts no more processes, among those that led to this one."""
    following: BaseException | None = error
    while following is not None:
        if isinstance(following, OSError) and following.errno in _NO_MORE:
            return following
        following = following.__cause__ or following.__context__
    return None


def root_cause(error: BaseException) -> BaseException:
    """First of the errors that led to this one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


class _Semaphores:
    """Name under which this process and those that it starts make their semaphores."""

    claim: Claim | None = None
    owner = 0


def name_semaphores() -> None:
    """Make semaphores under a name of ours, after removing those of killed processes.

    What spawned processes share is a semaphore by name, which outlives them all if they are killed
    together. `multiprocessing` names them so that nobody can tell whose they were.
    """
    if _Semaphores.owner == os.getpid() or not SEMAPHORES.is_dir():
        return
    with suppress(OSError):  # not writable: there will be no semaphores either
        _Semaphores.claim = Claim(SEMAPHORES, _remove_semaphores, tidy=True)
        _Semaphores.owner = os.getpid()
        # Passed on to the processes that this one starts.
        process.current_process()._config["semprefix"] = f"/{_Semaphores.claim.name}"  # type: ignore[attr-defined]


def _remove_semaphores(folder: Path, name: str) -> None:
    for file in folder.glob(f"sem.{name}-*"):
        file.unlink(missing_ok=True)
