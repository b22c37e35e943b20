"""Processes that share the tasks of a call through a folder, here threads."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pytest

from dhsk.errors import InputError, StoreError
from dhsk.execution.array_job import AllEndedError, ArrayJob, OthersPendingError
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
    monkeypatch.setattr("dhsk.execution.array_job.FILE_BYTES", 1)  # a file for each task
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
    monkeypatch.setattr("dhsk.execution.array_job.FILE_BYTES", 1)
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
    monkeypatch.setattr("dhsk.execution.array_job.FILE_BYTES", 1)

    def killed(number: int, row: Any) -> Any:
        if number > 2:
            raise _KilledError
        return work(number, row)

    killed.__name__ = "work"
    with pytest.raises(_KilledError):
        list(job(tmp_path, 1, 1).executor(1).run(killed, tasks()))
    with pytest.raises(InputError, match="part 1 of 1 began with something else"):
        list(job(tmp_path, 1, 1).executor(1).run(work, ((k, X[k] + 1) for k in range(40))))


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
    one.begin({"C": "1"}, is_made=False)
    run(one, 4)
    one.end()


def test_begun_after_the_end(tmp_path: Path) -> None:
    """What was killed in its last moment does not wait for others that are gone."""
    together(2, lambda number: ended(number, tmp_path))
    with pytest.raises(AllEndedError):
        job(tmp_path, 1, 2).begin({"C": "1"}, is_made=True)
    late = job(tmp_path, 1, 2, last_reads=True)
    late.begin({"C": "1"}, is_made=False)  # it is no longer there: all is made anew
    with pytest.raises(OthersPendingError):
        run(late, 4)
    late.begin({"C": "1"}, is_made=True)
    together(2, lambda number: ended(number, tmp_path))
    job(tmp_path, 1, 2).begin({"C": "2"}, is_made=True)  # another command
    assert "ended.npz" not in names(tmp_path)


def test_begun_while_the_last_one_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if the last one removes what it is about to read."""
    monkeypatch.setattr("dhsk.execution.array_job.FILE_BYTES", 1)
    first, again, last = job(tmp_path, 1, 2), job(tmp_path, 1, 2), job(tmp_path, 2, 2)

    def both(number: int) -> None:
        one = (first, last)[number - 1]
        one.begin({"C": "1"}, is_made=False)
        run(one, 4)

    together(2, both)
    first.end()
    again.begin({"C": "1"}, is_made=True)  # its results are there, and it needs those of the last
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


def test_waiting_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who looks at a process sees for whom it waits."""
    monkeypatch.setattr("dhsk.execution.array_job.TELL_SECONDS", (0.1, 60.0))
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if "waits" in line:
            raise _KilledError

    with pytest.raises(_KilledError):
        run(job(tmp_path, 2, 12, tell=tell))
    assert told[-1] == "part 2 of 12 waits for 1, 3, 4, 5, 6, 7, 8, 9 and 3 more"


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
