"""Processes that run the same call and share its tasks through a folder, without a scheduler.

Each process makes all tasks of a pass, computes its own, and puts their results into the folder;
then it reads those of all, in the order of the tasks. What is in the folder is done, so that a
process that was killed finds there what it had computed, and sums have the bits of one process.

A file of results is named by the first task in it, and says how many there are: those of a task are
read from its file whichever of two processes of one part, the older of which was thought to be
dead, has written the files before and after it.

Rejected: sums of a process in place of the results of its tasks (added in another order, so other
bits with each number of processes); tasks that anybody takes up (a lock for each).
"""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from time import monotonic, sleep
from typing import Any, ClassVar, Final

from dhsk.errors import DhskError, InputError, StoreError
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import core_count
from dhsk.execution.shared_values import Marks, PackedResults, unpacked
from dhsk.execution.tasks import Result
from dhsk.execution.threads import Task, Threads
from dhsk.objects.places import Place, entries_of

LOOK_SECONDS: Final = (0.05, 2.0)
"""Time between two looks for the results of others, at first and at most."""

TELL_SECONDS: Final = (10.0, 120.0)
"""Time after which a process says for whom it waits, at first and then again."""


_NAMED: Final = 8
"""Processes that a message names."""

_ENDED: Final = "ended"
"""Entry that stays where all processes have ended."""

_ANOTHER: Final = (
    "{} began with something else than {} computes now: give all parts the same samples, labels "
    "and options, also --memory, on processors of one kind, and remove {}"
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
    _inputs: Any = None

    def __str__(self) -> str:
        return f"part {self.number} of {self.count}"

    @property
    def entries(self) -> Checkpoint:
        """Files of results, and what each process has said of itself."""
        return Checkpoint(self.folder, "part-")

    @contextmanager
    def running(
        self, value: Any, *, is_made: Callable[[], bool], inputs: Any = None
    ) -> Iterator[None]:
        """Begin, and end with the context; the others are told of an error."""
        self.begin(value, is_made=is_made, inputs=inputs)
        try:
            yield
        except (AllEndedError, OthersPendingError):
            raise
        except Exception as error:
            with suppress(DhskError, OSError):  # the error itself says more
                self.entries.put(f"failed-{self.number}", {}, {"why": str(error)})
            raise
        self.end()

    def begin(self, value: Any, *, is_made: Callable[[], bool], inputs: Any = None) -> None:
        """Begin by what is asked for, of JSON; `is_made` says whether what it makes is there.

        One that is killed in its last moment is begun again when the others are gone or about to
        go: AllEndedError. Raises InputError if others were begun with something else, or if the
        `inputs`, of JSON, are not those of the processes that have ended.
        """
        self._asked, self._inputs = json.loads(json.dumps([value, inputs]))
        last = Checkpoint(self.folder).get(_ENDED, dict)
        if last is not None:  # a process that ends from here on says so again
            if last.get("of") == self._asked and is_made():
                self._refuse_others(last.get("inputs"))
                self.entries.remove()  # of one that was killed while it did this
                raise AllEndedError
            Checkpoint(self.folder).drop(_ENDED)
        # It needs what the last one removes.
        self.entries.drop(f"end-{self.number}", f"failed-{self.number}")
        self.check("options", self._asked)

    def _refuse_others(self, inputs: Any) -> None:
        """Raise InputError if processes have ended whose inputs were others."""
        if inputs != self._inputs:
            raise InputError(
                "all parts have ended before, and what they read has been written again since: "
                f"remove {self.folder} to run them again"
            )

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
            note = {"of": self._asked, "inputs": self._inputs}
            Checkpoint(self.folder).put(_ENDED, {}, note)
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
                self.tell(self._waiting_for([number for number in names if number not in found]))
                told += again
            sleep(pause)
            pause = min(2 * pause, LOOK_SECONDS[1])

    def _waiting_for(self, missing: list[int]) -> str:
        """For whom this process waits, in words, and why they do not come if that is known."""
        listed, ask = [], self.entries.get
        for number in missing[:_NAMED]:
            failed = ask(f"failed-{number}", lambda kept: str(kept["why"]))
            begun = failed or ask(f"options-{number}", lambda _: "begun")
            why = f" (it failed: {failed})" if failed else " (not begun)" * (begun is None)
            listed.append(f"{number}{why}")
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        return f"{self} waits for {', '.join(listed)}{more}"


class SharedTasks:
    """Executor of one pass: the tasks of this process on its threads, results from the folder."""

    def __init__(self, job: ArrayJob, window: int) -> None:
        self._job, self._window = job, window
        self._shared = Marks()

    def share(self, value: Result) -> Result:
        """The value itself, whose mark is computed once."""
        self._shared.add(value)
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
        one = _Own(job, names[job.number], self._window, self._shared)
        own = job.entries.get(names[job.number], lambda kept: kept["tasks"])
        if own is None:
            own = one.computed(function, tasks)
        elif own != one.marked(function, tasks):
            raise InputError(_ANOTHER.format(job, job, job.folder))
        for number, entry in job.awaited(names).items():
            if entry["tasks"] != own:
                raise InputError(_ANOTHER.format(f"part {number}", job, job.folder))
        total = own[0]
        shares = [len(range(number - 1, total, job.count)) for number in job.numbers]
        files = [_results(job, names[k], shares[k - 1]) for k in job.numbers]
        for task in range(total):
            yield next(files[task % job.count])


class _Own:
    """Results of the tasks of this process in a pass, which go into files."""

    def __init__(self, job: ArrayJob, name: str, window: int, shared: "Marks") -> None:
        self._job, self._name, self._shared = job, name, shared
        self._threads = Threads(max(1, min(window, core_count())), window)
        self._total, self._mark = 0, blake2b(digest_size=12)
        self._marks: list[str] = []

    def computed(self, function: Callable[..., Result], tasks: Iterable[Task]) -> list[Any]:
        """Compute what is not in files yet; number and mark of all tasks."""
        found = self._found()
        own, done, told = self._own(function, tasks, found), len(found), monotonic()
        packed = PackedResults()
        with closing(self._threads.run(function, own, ordered=True)) as results:
            for result in results:
                packed.add(result)
                done += 1
                if packed.is_full:
                    self._put(packed, done)
                    packed = PackedResults()
                if monotonic() - told > TELL_SECONDS[0]:
                    told = monotonic()
                    self._job.tell(f"{self._job}: {done:,} of its tasks of this pass are done")
        if packed.structures:
            self._put(packed, done)
        said = [self._total, self._mark.hexdigest()]
        self._job.entries.put(self._name, {}, {"tasks": said})
        return said

    def marked(self, function: Callable[..., Any], tasks: Iterable[Task]) -> list[Any]:
        """Number and mark of all tasks, of which none is computed."""
        for task in tasks:
            self._next(function, task)
        return [self._total, self._mark.hexdigest()]

    def _next(self, function: Callable[..., Any], task: Task) -> str:
        """Mark of the next task."""
        mark = digest_of(function.__name__, *self._shared.values_in(task))
        self._mark.update(mark.encode())
        self._total += 1
        return mark

    def _found(self) -> list[str]:
        """Marks of the tasks that are in the files of an earlier process."""
        marks: list[str] = []
        while found := self._job.entries.get(f"{self._name}-{len(marks)}", _marks_of):
            marks += found
        return marks

    def _own(
        self, function: Callable[..., Any], tasks: Iterable[Task], found: list[str]
    ) -> Iterator[Task]:
        """Tasks of this process that are not done; all are looked at, as others have the same."""
        for task in tasks:
            number = self._total
            mark = self._next(function, task)
            if number % self._job.count != self._job.number - 1:
                continue
            self._marks.append(mark)
            if len(self._marks) > len(found):
                yield task
            elif mark != found[len(self._marks) - 1]:
                raise InputError(_ANOTHER.format(self._job, self._job, self._job.folder))

    def _put(self, packed: "PackedResults", done: int) -> None:
        """Write the results of the last tasks before `done`."""
        first = done - len(packed.structures)
        arrays = {f"array-{k}": array for k, array in enumerate(packed.arrays)}
        values = {"results": packed.structures, "marks": self._marks[first:done]}
        self._job.entries.put(f"{self._name}-{first}", arrays, values)


def _marks_of(kept: dict[str, Any]) -> list[str]:
    """Marks of the tasks in a file."""
    found: list[str] = kept["marks"]
    return found


def _results(job: ArrayJob, name: str, tasks: int) -> Iterator[Any]:
    """Results of so many tasks of a process in a pass, file by file."""
    done = 0
    while done < tasks:
        kept = job.entries.get(f"{name}-{done}", dict)
        if not (kept and kept.get("results")):
            job.miss(f"{name}-{done}")
            return
        for structure in kept["results"]:
            yield unpacked(structure, kept)
        done += len(kept["results"])


def begun_in(folder: Place) -> dict[int, bool]:
    """Numbers of the processes that have begun in a folder, and whether each has ended."""
    names = entries_of(folder)
    begun = (re.fullmatch(r"part-options-(\d+)\.npz", name) for name in names)
    numbers = sorted(int(found[1]) for found in begun if found)
    return {number: f"part-end-{number}.npz" in names for number in numbers}
