"""Processes that run the same call and share its tasks through a folder, without a scheduler.

Each process makes all tasks of a pass, computes its own, and puts their results into the folder;
then it reads those of all, in the order of the tasks. What is in the folder is done, so that a
process that was killed finds there what it had computed, and sums have the bits of one process.

Rejected: sums of a process in place of the results of its tasks (added in another order, so other
bits with each number of processes); tasks that anybody takes up (a lock for each).
"""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from time import monotonic, sleep
from types import NoneType
from typing import Any, ClassVar, Final

import numpy as np

from dhsk.errors import InputError, StoreError
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import core_count
from dhsk.execution.tasks import Result
from dhsk.execution.threads import Task, Threads
from dhsk.objects.places import Place, entries_of

FILE_BYTES: Final = 8 * 2**20
FILE_SECONDS: Final = 15.0
"""A file of results is written when they have so many bytes, or took so long: what a killed process
computes again, and what is in memory of each process when all are read."""

LOOK_SECONDS: Final = (0.05, 2.0)
"""Time between two looks for the results of others, at first and at most."""

TELL_SECONDS: Final = (10.0, 120.0)
"""Time after which a process says for whom it waits, at first and then again."""


_ENDED: Final = "ended"
"""Entry that stays where all processes have ended."""

_ANOTHER: Final = (
    "{} began with something else than {} computes now: give all parts the same samples and "
    "options, also --memory, and remove {}"
)

_UNSHARED: Final = (
    "an array job cannot share this call, whose tasks return {}: make it outside of the job, or on "
    "a client of Dask"
)


class OthersPendingError(Exception):
    """The tasks of this process are done, and another one will read all results."""


class AllEndedError(Exception):
    """All processes have ended, and what they make is there."""


@dataclass(eq=False)
class ArrayJob:
    """One of the processes that share the tasks of a call, in place of a Dask client.

    What is called must be the same in all of them, and its tasks must write nothing.
    """

    number: int
    """From 1 to `count`."""
    count: int
    folder: Place
    """Where results are, which all processes see; it is made with the first."""
    tell: Callable[[str], None] = lambda _: None
    """Told for whom this process waits."""
    last_reads: bool = False
    """Whether only the process that ends last reads the results: a call of one pass."""
    status: ClassVar[str] = "running"
    _calls: Iterator[int] = field(default_factory=lambda: count(1))
    _asked: Any = None

    def __str__(self) -> str:
        return f"part {self.number} of {self.count}"

    @property
    def entries(self) -> Checkpoint:
        """Files of results, and what each process has said of itself."""
        return Checkpoint(self.folder, "part-")

    def begin(self, value: Any, *, is_made: bool) -> None:
        """Begin by what is asked for, of JSON; `is_made` says whether what it makes is there.

        One that is killed in its last moment is begun again when the others are gone or about to
        go: AllEndedError. Raises InputError if others were begun with something else.
        """
        self._asked = value
        if is_made:
            self._refuse_to_wait()
        Checkpoint(self.folder).drop(_ENDED)
        self.entries.drop(f"end-{self.number}")  # it needs what the last one removes
        self.check("options", value)

    def _refuse_to_wait(self) -> None:
        """Raise AllEndedError if all processes of the same have ended."""
        last = Checkpoint(self.folder).get(_ENDED, lambda kept: kept["of"])
        if last is not None and last == self._asked:
            raise AllEndedError

    def executor(self, window: int) -> "SharedTasks":
        """Executor that has `window` tasks in flight."""
        return SharedTasks(self, window)

    def share_of(self, total: int) -> range:
        """Numbers of the tasks of this process among so many."""
        return range(self.number - 1, total, self.count)

    def next_call(self) -> int:
        """Number of the next pass, which is the same in all processes."""
        return next(self._calls)

    def check(self, what: str, value: Any, name: str | None = None) -> None:
        """Refuse to go on if another process, or an earlier one of this part, has another value.

        Values are of JSON, and known by a name, by default what they are. Each is there before
        others are looked at: of two that differ and begin at once, one sees it.
        """
        name, value = name or what, json.loads(json.dumps(value))
        self._compare(what, value, name, self.number)
        own = f"{name}-{self.number}"
        self.entries.put(own, {}, {"value": value})
        try:
            for number in self.numbers:
                self._compare(what, value, name, number)
        except InputError:
            self.entries.drop(own)
            raise

    def _compare(self, what: str, value: Any, name: str, number: int) -> None:
        found = self.entries.get(f"{name}-{number}", lambda kept: kept["value"])
        if found is not None and found != value:
            raise InputError(
                f"part {number} was begun with other {what} than {self} has now: run all parts "
                f"by the same command, and remove {self.folder} if it is of another one"
            )

    def agreed(self, what: str, make: Callable[[], Any]) -> Any:
        """The JSON value that part 1 has made."""
        name = f"agreed-{what}"
        if self.number == 1:
            return self.entries.first(name, make)
        return self.awaited({1: name})[1]["first"]

    def end(self) -> None:
        """Say that this process has ended; the last one removes all but that they have."""
        entries, own = self.entries, f"end-{self.number}"
        entries.put(own, {}, {"ended": True})
        ended = (entries.get(f"end-{number}", dict) is not None for number in self.numbers)
        if self.last_reads or all(ended):
            Checkpoint(self.folder).put(_ENDED, {}, {"of": self._asked})
            entries.remove()

    def miss(self, name: str) -> None:
        """Raise the error that says why a file of results is not there."""
        if self.last_reads:  # the process that reads all has removed them
            raise OthersPendingError
        self._refuse_to_wait()
        raise StoreError(f"{self.folder / f'part-{name}.npz'} is damaged or gone: run all again")

    @property
    def numbers(self) -> range:
        """Numbers of all processes."""
        return range(1, self.count + 1)

    def awaited(self, names: dict[int, str]) -> dict[int, dict[str, Any]]:
        """Entries of processes by their numbers, once all are there."""
        found: dict[int, dict[str, Any]] = {}
        begin = monotonic()
        pause, (told, again) = LOOK_SECONDS[0], TELL_SECONDS
        while True:
            for number in [number for number in names if number not in found]:
                entry = self.entries.get(names[number], dict)
                if entry is not None:
                    found[number] = entry
            if len(found) == len(names):
                return found
            if self.last_reads:
                raise OthersPendingError
            self._refuse_to_wait()
            if monotonic() - begin > told:
                missing = [str(number) for number in names if number not in found]
                more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
                self.tell(f"{self} waits for {', '.join(missing[:8])}{more}")
                told += again
            sleep(pause)
            pause = min(2 * pause, LOOK_SECONDS[1])


class SharedTasks:
    """Executor of one pass: the tasks of this process on its threads, results from the folder."""

    def __init__(self, job: ArrayJob, window: int) -> None:
        self._job, self._window = job, window

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def run(
        self,
        function: Callable[..., Result],
        tasks: Iterable[Task],
        *,
        ordered: bool = False,  # noqa: ARG002  # they always are
    ) -> Generator[Result, None, None]:
        """Run tasks; see `Executor.run`. Results come in the order of the tasks."""
        job, call = self._job, self._job.next_call()
        names = {number: f"{call}-{number}" for number in job.numbers}
        own = job.entries.get(names[job.number], dict)
        if own is None:
            own = _Own(job, names[job.number], self._window).computed(function, tasks)
        said = job.awaited(names)
        for number, entry in said.items():
            if entry["tasks"] != own["tasks"]:
                raise InputError(_ANOTHER.format(f"part {number}", job, job.folder))
        files = [_results(job, names[k], said[k]["files"]) for k in job.numbers]
        for task in range(own["tasks"][0]):
            yield next(files[task % job.count])


class _Own:
    """Results of the tasks of this process in a pass, which go into files."""

    def __init__(self, job: ArrayJob, name: str, window: int) -> None:
        self._job, self._name = job, name
        self._threads = Threads(max(1, min(window, core_count())), window)
        self._total, self._mark = 0, blake2b(digest_size=12)
        self._marks: list[str] = []

    def computed(self, function: Callable[..., Result], tasks: Iterable[Task]) -> dict[str, Any]:
        """Compute what is not in files yet; what there is then."""
        files, found = self._found()
        own, done, told = self._own(function, tasks, found), len(found), monotonic()
        packed = _Packed()
        with closing(self._threads.run(function, own, ordered=True)) as results:
            for result in results:
                packed.add(result)
                done += 1
                if packed.is_full:
                    files, packed = self._put(files, packed, done), _Packed()
                if monotonic() - told > TELL_SECONDS[0]:
                    told = monotonic()
                    self._job.tell(f"{self._job}: {done:,} of its tasks of this pass are done")
        if packed.structures:
            files = self._put(files, packed, done)
        said = {"files": files, "tasks": [self._total, self._mark.hexdigest()]}
        self._job.entries.put(self._name, {}, said)
        return said

    def _found(self) -> tuple[int, list[str]]:
        """Number of the files of an earlier process, and marks of the tasks that are in them."""
        marks: list[str] = []
        for file in count():
            found = self._job.entries.get(f"{self._name}-{file}", lambda kept: kept["marks"])
            if found is None:
                return file, marks
            marks += found
        raise AssertionError  # count() does not end

    def _own(
        self, function: Callable[..., Any], tasks: Iterable[Task], found: list[str]
    ) -> Iterator[Task]:
        """Tasks of this process that are not done; all are looked at, as others have the same."""
        for task in tasks:
            mark = digest_of(function.__name__, *_values_in(task))
            self._mark.update(mark.encode())
            number, self._total = self._total, self._total + 1
            if number % self._job.count != self._job.number - 1:
                continue
            self._marks.append(mark)
            if len(self._marks) > len(found):
                yield task
            elif mark != found[len(self._marks) - 1]:
                raise InputError(_ANOTHER.format(self._job, self._job, self._job.folder))

    def _put(self, files: int, packed: "_Packed", done: int) -> int:
        """Write the results of the last tasks before `done`; the number of files then."""
        arrays = {f"array-{k}": array for k, array in enumerate(packed.arrays)}
        marks = self._marks[done - len(packed.structures) : done]
        values = {"results": packed.structures, "marks": marks}
        self._job.entries.put(f"{self._name}-{files}", arrays, values)
        return files + 1


def _values_in(value: Any) -> Iterator[Any]:
    """Arrays, numbers and names in the arguments of a task, of which others must have the same."""
    if isinstance(value, tuple | list):
        for part in value:
            yield from _values_in(part)
    elif isinstance(value, slice):
        yield [value.start, value.stop]
    elif isinstance(value, str | int | float | NoneType) or _is_array(value):
        yield value


def _is_array(value: Any) -> bool:
    """Whether it is an array of numbers or text, or a CSR matrix."""
    return hasattr(value, "indptr") or (isinstance(value, np.ndarray) and not value.dtype.hasobject)


class _Packed:
    """Results as arrays and JSON values: tuples, lists, arrays, slices, numbers, text and None.

    Of a NamedTuple there is the tuple.
    """

    def __init__(self) -> None:
        self.structures: list[Any] = []
        self.arrays: list[Any] = []
        self._begin, self._bytes = monotonic(), 0

    @property
    def is_full(self) -> bool:
        """Whether a file of them is to be written."""
        return self._bytes >= FILE_BYTES or monotonic() - self._begin >= FILE_SECONDS

    def add(self, result: Any) -> None:
        """Add the result of the next task."""
        self.structures.append(self._packed(result))

    def _packed(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return ["list" if isinstance(value, list) else "tuple", *map(self._packed, value)]
        if isinstance(value, np.ndarray | np.generic):
            kind = "number" if isinstance(value, np.generic) else "array"
            array = np.asarray(value)
            if array.dtype.hasobject:
                raise InputError(_UNSHARED.format("an array of objects"))
            self._bytes += array.nbytes
            self.arrays.append(array if array.ndim else array.reshape(1))
            return [kind, len(self.arrays) - 1, array.ndim]
        if isinstance(value, slice):
            return ["slice", value.start, value.stop, value.step]
        if value is None or isinstance(value, str | int | float):
            return ["value", value]
        raise InputError(_UNSHARED.format(f"a {type(value).__name__}"))


def _results(job: ArrayJob, name: str, files: int) -> Iterator[Any]:
    """Results of a process in a pass, file by file."""
    for file in range(files):
        kept = job.entries.get(f"{name}-{file}", dict)
        if kept is None:
            job.miss(f"{name}-{file}")
            return
        for structure in kept["results"]:
            yield _unpacked(structure, kept)


def _unpacked(structure: list[Any], arrays: dict[str, Any]) -> Any:
    kind, *parts = structure
    if kind in ("tuple", "list"):
        found = [_unpacked(part, arrays) for part in parts]
        return tuple(found) if kind == "tuple" else found
    if kind == "slice":
        return slice(*parts)
    if kind == "value":
        return parts[0]
    array = arrays.pop(f"array-{parts[0]}")
    if kind == "number":
        return array[0]
    return array if parts[1] else array.reshape(())


def begun_in(folder: Place) -> dict[int, bool]:
    """Numbers of the processes that have begun in a folder, and whether each has ended."""
    names = entries_of(folder)
    begun = (re.fullmatch(r"part-options-(\d+)\.npz", name) for name in names)
    numbers = sorted(int(found[1]) for found in begun if found)
    return {number: f"part-end-{number}.npz" in names for number in numbers}
