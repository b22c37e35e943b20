"""Tasks that share memory: never more than there is, and as few idle threads as it allows."""

from threading import Lock

from hypothesis import given
from hypothesis import strategies as st

from dhsk.execution.threads import Threads
from dhsk.models.admission import Admission


@given(sizes=st.lists(st.integers(1, 20), max_size=30), window=st.integers(1, 4))
def test_tasks_that_run_fit_together(sizes: list[int], window: int) -> None:
    """Each is given once, and one that is larger than the memory runs by itself."""
    admission, running, given_out = Admission(10, sizes, range(len(sizes))), [], []
    while admission.waiting:
        for task in admission:
            running.append(task)
            given_out.append(task)
            assert sum(sizes[one] for one in running) <= 10 or len(running) == 1
            if len(running) == window:
                admission.release(sizes[running.pop(0)])
        for task in running:
            admission.release(sizes[task])
        running.clear()
    assert sorted(given_out) == list(range(len(sizes)))


def test_small_tasks_run_beside_a_large_one() -> None:
    """In the order of the list, where all fit."""
    admission = Admission(10, [9, 8, 1, 7], "abcd")
    taken = iter(admission)
    assert [next(taken), next(taken)] == ["a", "c"]
    admission.release(9)
    assert list(taken) == ["b"]
    assert [task for _, task in admission.waiting] == ["d"]


def test_without_a_limit_the_order_stays() -> None:
    """However large the tasks are."""
    assert list(Admission(0, [9, 8, 1], "abc")) == ["a", "b", "c"]


@given(sizes=st.lists(st.integers(0, 20), min_size=1, max_size=12))
def test_threads_end_all_tasks(sizes: list[int]) -> None:
    """Two at a time, also where the first one leaves no memory for a second."""
    admission, lock, inside, ended = Admission(20, sizes, range(len(sizes))), Lock(), [0], []

    def run(task: int) -> int:
        with lock:
            inside[0] += sizes[task]
            assert inside[0] <= 20
        with lock:
            inside[0] -= sizes[task]
        return task

    while admission.waiting:
        for task in Threads(2, 2).run(run, ((task,) for task in admission)):
            admission.release(sizes[task])
            ended.append(task)
    assert sorted(ended) == list(range(len(sizes)))
