"""Which jobs are submitted again, by a cluster that only counts."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from dhsk.execution import job_keeper
from dhsk.execution.job_keeper import MOST_FAILURES, JobKeeper


class Job:
    """A job with a number."""

    refusal = None

    def __init__(self, number: int) -> None:
        self.job_id: str | None = str(number)
        self.closed = False

    async def close(self) -> None:
        """Cancel it."""
        self.closed = True


class Jobs:
    """A cluster of `count` jobs of two workers each; an await submits what is missing."""

    def __init__(self, count: int) -> None:
        self.worker_spec = {f"w{i}": {"group": ["-0", "-1"]} for i in range(count)}
        self.workers: dict[str, Job] = {}
        self.observed: set[str] = set()
        self.submitted = 0
        asyncio.run(self._submit())

    async def _submit(self) -> None:
        for name in set(self.worker_spec) - set(self.workers):
            self.submitted += 1
            self.workers[name] = Job(self.submitted)

    def __await__(self) -> Generator[Any, Any, None]:
        return self._submit().__await__()

    def come(self, *names: str) -> None:
        """Let workers be there."""
        self.observed |= set(names)


@pytest.fixture
def clock(monkeypatch: Any) -> list[float]:
    """Time, as a list of one number."""
    now = [1000.0]
    monkeypatch.setattr(job_keeper, "monotonic", lambda: now[0])
    return now


def tick(keeper: JobKeeper) -> None:
    """One look."""
    asyncio.run(keeper.replace_lost())


def test_a_lost_job_is_submitted_again(clock: list[float]) -> None:
    """After a while without any of its workers; a job of which one is left is not lost."""
    cluster = Jobs(2)
    keeper = JobKeeper(cluster, None)
    cluster.come("w0-0", "w0-1", "w1-0", "w1-1")
    tick(keeper)
    lost = cluster.workers["w0"]
    cluster.observed -= {"w0-0", "w0-1", "w1-0"}
    clock[0] += 10
    tick(keeper)
    assert cluster.submitted == 2
    clock[0] += 10
    tick(keeper)
    assert cluster.submitted == 3
    assert lost.closed
    assert cluster.workers["w1"].job_id in "12"


def test_a_job_that_is_not_submitted_yet_is_not_lost(clock: list[float], caplog: Any) -> None:
    """The cluster submits its first jobs itself, while the keeper looks already."""
    cluster = Jobs(2)
    first = cluster.workers.pop("w0")
    keeper = JobKeeper(cluster, set)
    tick(keeper)
    assert cluster.submitted == 2
    assert not caplog.text
    cluster.workers["w0"] = first
    tick(keeper)
    del cluster.workers["w0"]  # as a cluster does with a lost job of one worker
    tick(keeper)
    assert cluster.submitted == 3


def test_a_pending_job_is_not_lost(clock: list[float]) -> None:
    """A job may wait in the queue for hours."""
    cluster = Jobs(1)
    keeper = JobKeeper(cluster, lambda: {"1"})
    clock[0] += 100_000
    tick(keeper)
    assert cluster.submitted == 1


def test_a_job_that_the_queue_lost_is_submitted_again(clock: list[float]) -> None:
    """A job that ended before its workers came."""
    cluster = Jobs(1)
    keeper = JobKeeper(cluster, set)
    clock[0] += 60
    tick(keeper)
    assert cluster.submitted == 2


def test_a_queue_that_does_not_answer_loses_nothing(clock: list[float]) -> None:
    """The controller may restart."""
    cluster = Jobs(1)
    keeper = JobKeeper(cluster, lambda: None)
    clock[0] += 60
    tick(keeper)
    assert cluster.submitted == 1


def test_jobs_that_always_fail_are_given_up(clock: list[float], caplog: Any) -> None:
    """No flood of jobs where a node is broken, and the end of it is said."""
    cluster = Jobs(1)
    keeper = JobKeeper(cluster, set)
    for _ in range(20):
        clock[0] += 60
        tick(keeper)
    assert cluster.submitted == 1 + MOST_FAILURES
    assert "no more are submitted in their place" in caplog.text
