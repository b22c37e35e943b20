"""Processes that share the tasks of a call through a folder, here threads."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pytest

from dhsk.errors import InputError, StoreError
from dhsk.execution.array_job import AllEndedError, ArrayJob, OthersPendingError
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.workers import computing, current_executor
from dhsk.objects.places import Place, parse_place

X = np.random.default_rng(0).normal(size=(40, 3))
_done: list[int] = []
_lock = Lock()


class _KilledError(BaseException):
    """Stands for the end of a process."""


class _Pair(NamedTuple):
    first: float
    second: float


def work(number: int, row: np.ndarray) -> Any:
    """A task that returns some of everything, and notes that it ran."""
    with _lock:
        _done.append(number)
    return (
        number,
        [row * 2, np.asfortranarray(np.outer(row, row)), np.float32(number) / 3],
        _Pair(number / 7, float("nan")),
        slice(1, number),
        None,
        np.array(f"class {number}"),
        np.array(["a", "bc"])[:1],
        True,
    )


def tasks(n: int = 40) -> Iterator[tuple[Any, ...]]:
    """Tasks of a pass."""
    return ((number, X[number]) for number in range(n))


def job(folder: Path, number: int, count: int, **more: Any) -> ArrayJob:
    """A part of a job."""
    return ArrayJob(number, count, parse_place("out", folder / "out.parts"), **more)


def together(count: int, one: Callable[[int], Any]) -> list[Any]:
    """Results of so many processes at once."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(1, count + 1)))


def run(one: ArrayJob, n: int = 40) -> list[Any]:
    """Results of a pass."""
    return list(one.executor(2).run(work, tasks(n)))


def names(folder: Path) -> list[str]:
    """Files that processes share."""
    return sorted(file.name for file in (folder / "out.parts").iterdir())


@pytest.fixture(autouse=True)
def counted() -> None:
    """No task has run."""
    _done.clear()


def equal(left: Any, right: Any) -> bool:
    """Whether results have the same types and bits, but for a NamedTuple, which is a tuple."""
    if isinstance(left, tuple | list):
        kinds = {isinstance(left, tuple), isinstance(right, tuple)}
        return len(kinds) == 1 and all(map(equal, left, right)) and len(left) == len(right)
    if isinstance(left, np.ndarray):
        same = left.shape == right.shape and left.dtype == right.dtype
        order = left.flags.f_contiguous == right.flags.f_contiguous
        return same and order and left.tobytes() == right.tobytes()
    return type(left) is type(right) and repr(left) == repr(right)


def test_results_of_all_in_order(tmp_path: Path) -> None:
    """Every process has all results, in the order of the tasks, and each task ran once."""
    expected = [work(*task) for task in tasks()]
    _done.clear()
    found = together(3, lambda number: run(job(tmp_path, number, 3)))
    assert sorted(_done) == list(range(40))
    assert all(equal(own, expected) for own in found)


def test_passes_follow_each_other(tmp_path: Path) -> None:
    """What a process makes of a pass is what the others make of it, for the next one."""

    def solve(number: int) -> float:
        one, total = job(tmp_path, number, 4), 1.0
        for _ in range(5):
            # Tasks hang on the sums before: where these differ, the pass is refused.
            given = ((k, X[k] * total) for k in range(10))
            found = one.executor(2).run(work, given)
            total = sum(float(result[1][0].sum()) for result in found) / 10
        one.end()
        return total

    assert len(set(together(4, solve))) == 1
    assert names(tmp_path) == ["ended.npz"]  # the last one has removed the results


def test_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what was in no file is computed again, by the killed process alone."""
    monkeypatch.setattr("dhsk.execution.shared_values.FILE_BYTES", 1)  # a file for each task
    expected = run(job(tmp_path / "whole", 1, 1), 20)
    _done.clear()

    def until_5(number: int, row: Any) -> Any:
        if number > 5:
            raise _KilledError
        return work(number, row)

    until_5.__name__ = "work"
    with pytest.raises(_KilledError):
        list(job(tmp_path, 2, 2).executor(1).run(until_5, tasks(20)))
    assert _done == [1, 3, 5]
    found = together(2, lambda number: run(job(tmp_path, number, 2), 20))
    assert sorted(_done) == list(range(20))
    assert all(equal(own, expected) for own in found)
    _done.clear()
    assert equal(run(job(tmp_path, 1, 2), 20), expected)  # begun again, it finds all
    assert not _done


def test_files_know_their_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where tasks run ahead, what is in files is known to be of these tasks."""
    monkeypatch.setattr("dhsk.execution.shared_values.FILE_BYTES", 1)
    expected = list(job(tmp_path, 1, 1).executor(6).run(work, tasks()))
    folder = tmp_path / "out.parts"
    for name in ("1-1", *(f"1-1-{file}" for file in range(10, 40))):
        (folder / f"part-{name}.npz").unlink()
    _done.clear()
    assert equal(list(job(tmp_path, 1, 1).executor(6).run(work, tasks())), expected)
    assert sorted(_done) == list(range(10, 40))


def test_others_must_do_the_same(tmp_path: Path) -> None:
    """Tasks of other samples are refused, before a result is used."""

    def of(number: int) -> str:
        given = ((k, X[k] + (number == 2)) for k in range(8))
        with pytest.raises(InputError) as error:
            list(job(tmp_path, number, 2).executor(1).run(work, given))
        return str(error.value)

    assert "part 2 began with something else than part 1 of 2 computes now" in together(2, of)[0]


def test_changed_samples_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process does not go on with results of other samples."""
    monkeypatch.setattr("dhsk.execution.shared_values.FILE_BYTES", 1)

    def killed(number: int, row: Any) -> Any:
        if number > 2:
            raise _KilledError
        return work(number, row)

    killed.__name__ = "work"
    with pytest.raises(_KilledError):
        list(job(tmp_path, 1, 1).executor(1).run(killed, tasks()))
    with pytest.raises(InputError, match="part 1 of 1 began with something else"):
        list(job(tmp_path, 1, 1).executor(1).run(work, ((k, X[k] + 1) for k in range(40))))


def test_what_is_done_is_that_of_other_tasks(tmp_path: Path) -> None:
    """A pass that an earlier process has ended is not taken for another one."""
    run(job(tmp_path, 1, 1))
    with pytest.raises(InputError, match="part 1 of 1 began with something else"):
        list(job(tmp_path, 1, 1).executor(1).run(work, ((k, X[k] + 1) for k in range(40))))
    with pytest.raises(InputError, match="part 1 of 1 began with something else"):
        run(job(tmp_path, 1, 1), 39)


class _Model:
    """Stands for a model, which many tasks share."""

    def __init__(self, coef: float) -> None:
        self.marked = np.full(3, coef)

    def decide(self, row: Any) -> float:
        """A value that hangs on the model."""
        return float(row @ self.marked)


def decided(shared: tuple[Callable[[Any], Any], ...], row: Any) -> Any:
    """A task that calls what is shared."""
    return shared[0](row)


def product(coef: Any, row: Any) -> float:
    """A value that hangs on an argument of a partial function."""
    return float(row @ coef)


@pytest.mark.parametrize("make", [lambda c: _Model(c).decide, lambda c: partial(product, c * X[0])])
def test_functions_are_compared_with_what_they_hold(tmp_path: Path, make: Any) -> None:
    """Those of another model are refused; those of an equal one are not."""

    def results(coef: float) -> list[Any]:
        executor = job(tmp_path, 1, 1).executor(1)
        shared = executor.share((make(coef),))
        return list(executor.run(decided, ((shared, row) for row in X)))

    first = results(2.0)
    assert results(2.0) == first
    with pytest.raises(InputError, match="part 1 of 1 began with something else"):
        results(3.0)


def test_two_processes_of_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was thought to be dead writes files with other boundaries: all are still right."""
    expected = [work(*task) for task in tasks(12)]
    older, newer = job(tmp_path, 1, 1), job(tmp_path, 1, 1)
    monkeypatch.setattr("dhsk.execution.shared_values.FILE_BYTES", 300)
    begun = older.executor(1)

    def meanwhile(number: int, row: Any) -> Any:
        if number == 6:
            monkeypatch.setattr("dhsk.execution.shared_values.FILE_BYTES", 1)
            assert equal(run(newer, 12), expected)
            monkeypatch.setattr("dhsk.execution.shared_values.FILE_BYTES", 700)
        return work(number, row)

    meanwhile.__name__ = "work"
    assert equal(list(begun.run(meanwhile, tasks(12))), expected)
    assert equal(run(job(tmp_path, 1, 1), 12), expected)


def test_values_are_compared(tmp_path: Path) -> None:
    """Options that differ are refused; the refused process leaves nothing that others refuse."""
    job(tmp_path, 1, 3).check("options", {"C": "1"})
    with pytest.raises(InputError, match="part 1 was begun with other options than part 3 of 3"):
        job(tmp_path, 3, 3).check("options", {"C": "2"})
    job(tmp_path, 3, 3).check("options", {"C": "1"})
    alone = tmp_path / "alone"
    job(alone, 1, 1).check("options", {"C": "1"})
    with pytest.raises(InputError, match="part 1 was begun with other options than part 1 of 1"):
        job(alone, 1, 1).check("options", {"C": "2"})


def test_agreed_value_is_of_the_first(tmp_path: Path) -> None:
    """What hangs on a machine is what it is on that of part 1, also after a kill."""
    found = together(3, lambda k: job(tmp_path, k, 3).agreed("room", lambda: 100 * k))
    assert found == [100, 100, 100]
    assert job(tmp_path, 1, 3).agreed("room", lambda: 7) == 100


def test_last_one_reads(tmp_path: Path) -> None:
    """Of work in one pass the last process has all results, and nobody waits."""
    for number in (3, 1):
        with pytest.raises(OthersPendingError):
            run(job(tmp_path, number, 3, last_reads=True))
    last = job(tmp_path, 2, 3, last_reads=True)
    found = run(last)
    assert [result[0] for result in found] == list(range(40))
    last.end()
    assert names(tmp_path) == ["ended.npz"]


def ended(number: int, folder: Path) -> None:
    """A process of two, from its beginning to its end."""
    one = job(folder, number, 2)
    one.begin({"C": "1"}, is_made=lambda: False)
    run(one, 4)
    one.end()


def test_begun_after_the_end(tmp_path: Path) -> None:
    """What was killed in its last moment does not wait for others that are gone."""
    together(2, lambda number: ended(number, tmp_path))
    with pytest.raises(AllEndedError):
        job(tmp_path, 1, 2).begin({"C": "1"}, is_made=lambda: True)
    late = job(tmp_path, 1, 2, last_reads=True)
    late.begin({"C": "1"}, is_made=lambda: False)  # it is no longer there: all is made anew
    with pytest.raises(OthersPendingError):
        run(late, 4)
    late.begin({"C": "1"}, is_made=lambda: True)
    together(2, lambda number: ended(number, tmp_path))
    job(tmp_path, 1, 2).begin({"C": "2"}, is_made=lambda: True)  # another command
    assert "ended.npz" not in names(tmp_path)


def test_begun_while_the_last_one_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if the last one removes what it is about to read."""
    monkeypatch.setattr("dhsk.execution.shared_values.FILE_BYTES", 1)
    first, again, last = job(tmp_path, 1, 2), job(tmp_path, 1, 2), job(tmp_path, 2, 2)

    def both(number: int) -> None:
        one = (first, last)[number - 1]
        one.begin({"C": "1"}, is_made=lambda: False)
        run(one, 4)

    together(2, both)
    first.end()
    again.begin(
        {"C": "1"}, is_made=lambda: True
    )  # its results are there, and it needs those of the last
    last.end()
    assert "ended.npz" not in names(tmp_path)
    results = again.executor(1).run(work, tasks(4))
    assert next(results)[0] == 0
    first.end()  # as if the last one had not seen that the first began again
    last.end()
    with pytest.raises(AllEndedError):
        next(results)
    with pytest.raises(AllEndedError):
        run(again, 4)


def test_begun_in_the_moment_of_the_last_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was killed after its end finds that all have ended, though it saw no note."""
    first, second = job(tmp_path, 1, 2), job(tmp_path, 2, 2)

    def both(number: int) -> None:
        one = (first, second)[number - 1]
        one.begin("all", is_made=lambda: False)
        run(one, 4)

    together(2, both)
    second.end()
    get = Checkpoint.get

    def got(entries: Checkpoint, name: str, made: Any) -> Any:
        found = get(entries, name, made)
        monkeypatch.setattr(Checkpoint, "get", get)
        first.end()
        return found

    monkeypatch.setattr(Checkpoint, "get", got)
    monkeypatch.setattr("dhsk.execution.array_job.TELL_SECONDS", (1.0, 1.0))

    def waits(line: str) -> None:
        raise _KilledError(line)

    again = job(tmp_path, 2, 2, tell=waits)
    again.begin("all", is_made=lambda: True)
    with pytest.raises(AllEndedError):
        run(again, 4)


def test_inputs_that_were_written_again(tmp_path: Path) -> None:
    """The same command does not say that it has made something of them."""
    for inputs in ([1, 2], [1, 2]):
        with job(tmp_path, 1, 1).running("all", is_made=lambda: False, inputs=inputs):
            pass
    with pytest.raises(AllEndedError):
        job(tmp_path, 1, 1).begin("all", is_made=lambda: True, inputs=(1, 2))
    with pytest.raises(InputError, match="what they read has been written again since: remove"):
        job(tmp_path, 1, 1).begin("all", is_made=lambda: True, inputs=[1, 3])


def test_waiting_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who looks at a process sees for whom it waits, and why."""
    monkeypatch.setattr("dhsk.execution.array_job.TELL_SECONDS", (0.1, 60.0))
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if "waits" in line:
            raise _KilledError

    def failed(number: int) -> None:
        with job(tmp_path, number, 12).running("all", is_made=lambda: False):
            raise InputError("no room")

    for number in (1, 3):
        with pytest.raises(InputError):
            failed(number)
    job(tmp_path, 3, 12).begin("all", is_made=lambda: False)  # again, and it goes well
    with pytest.raises(_KilledError):
        run(job(tmp_path, 2, 12, tell=tell))
    first = "1 (it failed: no room), 3, 4 (not begun), 5 (not begun), 6 (not begun)"
    rest = "7 (not begun), 8 (not begun), 9 (not begun) and 3 more"
    assert told[-1] == f"part 2 of 12 waits for {first}, {rest}"


def test_damaged_results_are_refused(tmp_path: Path) -> None:
    """A file that is damaged is an error, not another result."""
    run(job(tmp_path, 1, 1))
    (tmp_path / "out.parts" / "part-1-1-0.npz").write_bytes(b"PK")
    with pytest.raises(StoreError, match=r"part-1-1-0\.npz is damaged or gone"):
        run(job(tmp_path, 1, 1))


@pytest.mark.parametrize("result", [{1: 2}, object(), np.array([None])])
def test_other_results_are_refused(tmp_path: Path, result: Any) -> None:
    """What files do not hold is an error of the code that returns it."""
    with pytest.raises(InputError, match="tasks return a"):
        list(job(tmp_path, 1, 1).executor(1).run(lambda _: result, [(1,)]))


def test_calls_compute_there(tmp_path: Path) -> None:
    """Passes of a call that computes on an array job are shared."""
    with computing(job(tmp_path, 1, 1)), current_executor() as executor:
        assert len(list(executor.run(work, tasks(5)))) == 5
    place: Place = parse_place("out", tmp_path / "out.parts")
    assert place.exists()
