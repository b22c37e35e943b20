"""Draw inputs of which something may be wrong, at every command and every Python door.

    python tests/fuzz/fuzz.py --seed 1 --cases 20000
    python tests/fuzz/fuzz.py --seed 1 --only 217        # one of them, with its traceback

A command must end with the exit code 2, 3 or 4, one sentence and nothing left behind, or do its
work. A function must raise an error of dhsk in one line, or one of scikit-learn's own checks, or
return. Gram matrices and predictions are compared with the right ones, see answers.py. No case may
take longer than a minute, warn of arithmetic, or print a traceback.
"""

import argparse
import faulthandler
import io
import logging
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final


class Switch(io.TextIOBase):
    """Standard error of this process, so that what loggers keep can be read case by case."""

    def __init__(self) -> None:
        self.said = io.StringIO()

    def write(self, text: str) -> int:
        """Keep what is said."""
        return self.said.write(text)


STDERR, SWITCH = sys.stderr, Switch()
sys.stderr = SWITCH  # type: ignore[assignment]  # before Dask's loggers take hold of it

import answers  # noqa: E402
import doors  # noqa: E402
import inputs  # noqa: E402
from distributed import Client  # noqa: E402

import dhsk  # noqa: E402
import dhsk.execution.cluster  # noqa: E402
from dhsk.__main__ import main  # noqa: E402

SECONDS = 60
"""Longest a case may take."""

STUCK_SECONDS = 4 * SECONDS
"""Longest until a case that cannot be interrupted ends the program, which then tells its stacks."""

BYTES = 12 * 2**30
"""Most address space: what asks for more gets a MemoryError."""


PROGRESS: Final = re.compile(r" %\), | of disk while it runs, ")
"""Lines of progress, and the one that says what a run will cost."""


class TooLong(BaseException):
    """A case takes longer than `SECONDS`."""


@contextmanager
def limited() -> Iterator[None]:
    """End a case that takes too long."""

    def end(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def tree(folder: Path) -> dict[str, int]:
    """Files and folders by name, with the sizes of files."""
    found = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.lstat().st_size if p.is_file() else 0 for p in found}


def command_fault(words: list[str], before: dict[str, int]) -> str | None:
    """Run a command in the current folder; what is wrong with how it ended."""
    stdout, sys.stdout = sys.stdout, io.StringIO()
    try:
        with limited():
            main(words)
    except SystemExit as ended:
        code = ended.code
    except TooLong:
        return f"took longer than {SECONDS} s"
    except BaseException:
        return f"traceback\n{traceback.format_exc()}"
    finally:
        sys.stdout = stdout
    said = SWITCH.said.getvalue()
    if "Traceback" in said or "RuntimeWarning" in said:
        return f"exit code {code}, and it says\n{said}"
    if code == 0:
        return answer_fault(words)
    if code not in (2, 3, 4):
        return f"exit code {code}: {said}"
    lines = [line for line in said.splitlines() if line and not line.startswith(("Usage:", "Try "))]
    # What is warned of comes before the sentence, and so do progress and the line of costs.
    others = [
        line for line in lines[:-1] if not (line.startswith("dhsk: ") or PROGRESS.search(line))
    ]
    if others or not lines[-1].startswith(("dhsk: ", "Error: ")):
        return f"exit code {code}, in {len(lines)} lines\n{said}"
    left = {name: size for name, size in tree(Path()).items() if before.get(name) != size}
    if code != 2:  # a store found damaged while it is read: what is finished is kept
        left = {name: size for name, size in left.items() if not name.startswith("o")}
        left |= {name: 0 for name in tree(Path()) if name.endswith((".part", ".lock"))}
    if left or set(before) - set(tree(Path())):
        return f"exit code {code}, but left behind or changed {list(left)[:5]}: {said}"
    return None


def answer_fault(words: list[str]) -> str | None:
    """What is wrong with what a command has written."""
    try:
        answers.check_command(words)
    except Exception:
        return f"a wrong answer\n{traceback.format_exc()}"
    return None


def door_fault(call: Callable[[], Any]) -> str | None:
    """Call a function; what is wrong with how it ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with limited():
                call()
        except dhsk.DhskError as error:
            if "\n" in str(error).strip() or not str(error):
                return f"{type(error).__name__} of several lines\n{error}"
        except TooLong:
            return f"took longer than {SECONDS} s"
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            theirs = "sklearn" in frames[-1].filename or "sklearn" in frames[-2].filename
            if not (isinstance(error, ValueError | TypeError) and theirs):
                return f"traceback\n{traceback.format_exc()}"
    ours = (w for w in caught if "sklearn" not in w.filename)  # it casts odd labels to integers
    arithmetic = [w for w in ours if issubclass(w.category, RuntimeWarning)]
    if arithmetic:
        return "\n".join(f"{w.filename}:{w.lineno}: {w.message}" for w in arithmetic[:3])
    if "Traceback" in SWITCH.said.getvalue():
        return SWITCH.said.getvalue()
    return None


def run(number: int, seed: int, base: Path, address: str) -> tuple[str, str | None]:
    """Run a case: what it was, and what is wrong with how it ended."""
    random = Random(seed * 1_000_003 + number)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    shutil.copytree(base, folder, symlinks=True, dirs_exist_ok=True)
    os.chdir(folder)
    SWITCH.said = io.StringIO()
    try:
        if random.random() < 0.3:
            described, call = doors.draw(random)
            return described, door_fault(call)
        words, described = doors.draw_command(random, address)
        return f"{' '.join(words)!r:.300} ({described})", command_fault(words, tree(folder))
    finally:
        os.chdir(base)
        shutil.rmtree(folder, ignore_errors=True)


def fuzz(seed: int, numbers: range) -> int:
    """Run cases; print the faults, and give their number."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    logging.getLogger("distributed").setLevel(logging.WARNING)
    dhsk.execution.cluster.WAIT_SECONDS = 2  # for workers that nobody starts
    faults = 0
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as caches:
        base = Path(place).resolve()
        os.environ["XDG_CACHE_HOME"] = os.environ["MPLCONFIGDIR"] = caches
        inputs.sound(base)
        (base / "loop").symlink_to("loop")
        (base / "dangling").symlink_to("nowhere")
        with Client(
            processes=False, n_workers=1, threads_per_worker=2, protocol="tcp", host="127.0.0.1",
            dashboard_address="127.0.0.1:0", set_as_default=False,
        ) as client:  # fmt: skip
            for number in numbers:
                faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True, file=STDERR)
                described, fault = run(number, seed, base, client.scheduler.address)
                if fault is not None:
                    faults += 1
                    print(f"--- case {number}: {described}\n{fault}", flush=True)
            os.chdir("/")
            faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True, file=STDERR)  # of the end
    print(f"{len(numbers)} cases of seed {seed}: {faults} faults")
    return faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--only", type=int, help="number of a single case")
    given = parser.parse_args()
    sys.excepthook = lambda *error: STDERR.write("".join(traceback.format_exception(*error)))
    only = range(given.cases) if given.only is None else range(given.only, given.only + 1)
    sys.exit(1 if fuzz(given.seed, only) else 0)
