"""Settings of the process that several calls need at once."""

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dhsk.execution.settings import SharedSetting, large_graphs, one_blas_thread

pytestmark = pytest.mark.threads

MANY = 3


def blas_threads() -> set[int]:
    """Threads of the BLAS libraries of this process."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


class User(threading.Thread):
    """Has a setting from `start` to `stop`."""

    def __init__(self, setting: SharedSetting) -> None:
        super().__init__()
        self.setting = setting
        self.has, self.ends = threading.Event(), threading.Event()

    def run(self) -> None:
        """Have it."""
        with self.setting():
            self.has.set()
            assert self.ends.wait(20)

    def begin(self) -> "User":
        """Come."""
        self.start()
        assert self.has.wait(20)
        return self

    def stop(self) -> None:
        """Leave."""
        self.ends.set()
        self.join(20)


@pytest.fixture
def several_threads() -> Iterator[None]:
    """BLAS with a number of threads that no machine has by chance."""
    with threadpool_limits(MANY, user_api="blas"):
        assert blas_threads() == {MANY}
        yield
        assert blas_threads() == {MANY}


@pytest.mark.usefixtures("several_threads")
def test_blas_has_one_thread_from_the_first_to_the_last() -> None:
    """Overlapping calls of several threads, of which the first ends first, restore the number.

    This thread has set a limit of its own: threadpoolctl 3.8 would pass over those of others.
    """
    first = User(one_blas_thread).begin()
    assert blas_threads() == {1}
    second = User(one_blas_thread).begin()
    first.stop()
    assert blas_threads() == {1}
    second.stop()


def test_the_configuration_of_dask_is_left_as_it_was() -> None:
    """Overlapping `dask.config.set` of two threads would leave the setting of the first."""
    name = "distributed.admin.large-graph-warning-threshold"
    before = dask.config.get(name)
    first, second = User(large_graphs).begin(), User(large_graphs).begin()
    first.stop()
    assert dask.config.get(name) == "1GB"
    second.stop()
    assert dask.config.get(name) == before


@pytest.mark.usefixtures("several_threads")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_not_within_the_calls_of_its_parent() -> None:
    """In the child the setting has ended, and works again; in the parent it goes on."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def forked() -> None:
        found = [blas_threads()]
        with one_blas_thread():
            found.append(blas_threads())
        sender.send([*found, blas_threads()])

    user = User(one_blas_thread).begin()
    child = context.Process(target=forked)
    child.start()
    try:
        assert receiver.poll(60)
        assert receiver.recv() == [{MANY}, {1}, {MANY}]
    finally:
        child.kill()
        child.join()
    assert blas_threads() == {1}
    user.stop()


def test_a_setting_that_cannot_begin_counts_no_user() -> None:
    """The next one tries again."""
    tries: list[Any] = []

    @contextmanager
    def setting() -> Iterator[None]:
        tries.append(None)
        if len(tries) == 1:
            raise OSError("made up")
        yield

    shared = SharedSetting(setting)
    with pytest.raises(OSError, match="made up"), shared():
        pass
    with shared(), shared():
        pass
    assert len(tries) == 2
