"""Worker jobs that are lost are submitted again.

Rejected: `Cluster.adapt`. It looks for a lost worker's name among the jobs, but workers of jobs of
several processes have other names (distributed 2026.8).
"""

import asyncio
import logging
import math
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

log = logging.getLogger("dhsk.cluster")

LOST_SECONDS: Final = 15.0
"""Time without any worker of a job after which the job is lost: a nanny starts a killed worker
again within a few seconds."""

SHORT_LIFE: Final = 60.0
"""A job that is lost so soon after its workers came counts as failed."""

MOST_FAILURES: Final = 3
"""Jobs in a row in the same place that may fail before that place is given up."""

_TICK_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 30.0
"""Time between two looks at the queue for jobs that have not started."""

_SUSPECT_SECONDS: Final = 5.0
"""Time between two looks while a job has lost its workers."""


def names_of(cluster: Any, job: str) -> set[str]:
    """Names of the workers of a job, by its own."""
    return {f"{job}{suffix}" for suffix in cluster.worker_spec.get(job, {}).get("group", [""])}


class JobKeeper:
    """Watches the jobs of a cluster of `dask_jobqueue`, in the cluster's event loop.

    Parameters
    ----------
    cluster
        A `dask_jobqueue.JobQueueCluster` with jobs that note a `refusal`.
    queue
        Returns the numbers of the jobs that wait or run; None if the batch system cannot be asked.
    """

    def __init__(self, cluster: Any, queue: Callable[[], set[str] | None] | None) -> None:
        self._cluster, self._queue = cluster, queue
        self._came: dict[str, float] = {}
        """Time at which workers of a job were first seen, by the job's name."""
        self._seen: dict[str, float] = {}
        """Time at which workers of a job were last seen."""
        self._submitted: set[str] = set()
        """Names of the jobs that were ever submitted; the cluster itself submits them first."""
        self._failures: dict[str, int] = {}
        self._looked = monotonic()
        self._stopped = False

    def start(self) -> None:
        """Begin to watch."""
        self._cluster.loop.add_callback(self._watch)

    def look_soon(self) -> None:
        """Ask the batch system at the next look: a job is known to be lost."""
        self._looked = -math.inf

    def stop(self) -> None:
        """Submit no more jobs."""
        self._stopped = True

    async def _watch(self) -> None:
        while not self._stopped:
            await self.replace_lost()
            await asyncio.sleep(_TICK_SECONDS)

    async def replace_lost(self) -> None:
        """Submit lost jobs again, but for places that are given up."""
        self._submitted |= set(self._cluster.workers)
        # The cluster itself forgets a job of one worker some time after that is lost.
        forgotten = set(self._cluster.worker_spec) & self._submitted - set(self._cluster.workers)
        for name in forgotten | self._lost(monotonic()):
            job = self._cluster.workers.pop(name, None)
            if job is not None:
                await job.close()
            if self._is_hopeless(name, job):
                self._cluster.worker_spec.pop(name, None)
        missing = set(self._cluster.worker_spec) & self._submitted - set(self._cluster.workers)
        if missing and not self._stopped:
            await self._cluster  # submits what is specified and not there
            for name in missing:
                job = self._cluster.workers.get(name)
                if job is not None and job.job_id is not None:
                    log.warning("a worker job was lost: job %s takes its place", job.job_id)

    def _lost(self, now: float) -> set[str]:
        """Names of the jobs that are lost."""
        present = self._cluster.observed
        gone = self._gone(now)
        lost = set()
        for name, job in list(self._cluster.workers.items()):
            if present & names_of(self._cluster, name):
                self._came.setdefault(name, now)
                self._seen[name] = now
                continue
            absent = now - self._seen.get(name, now)
            if job.job_id is None or job.job_id in gone or absent > LOST_SECONDS:
                lost.add(name)
        return lost

    def _gone(self, now: float) -> set[str]:
        """Numbers of jobs that the batch system no longer has, if it is time to ask it."""
        suspect = any(seen < now - _SUSPECT_SECONDS / 2 for seen in self._seen.values())
        pause = _SUSPECT_SECONDS if suspect else _LOOK_SECONDS
        if self._queue is None or now < self._looked + pause:
            return set()
        self._looked = now
        queue = self._queue()
        if queue is None:
            return set()
        return {job.job_id for job in self._cluster.workers.values()} - queue

    def _is_hopeless(self, name: str, job: Any) -> bool:
        """Count a lost job; whether the jobs in its place have failed too often."""
        came, seen = self._came.pop(name, None), self._seen.pop(name, None)
        lived = 0.0 if came is None or seen is None else seen - came
        self._failures[name] = 0 if lived > SHORT_LIFE else self._failures.get(name, 0) + 1
        if self._failures[name] <= MOST_FAILURES:
            return False
        refusal = getattr(job, "refusal", None)
        log.error(
            "%d worker jobs in a row were lost within %.0f s, no more are submitted in their place"
            ": %s",
            self._failures[name],
            SHORT_LIFE,
            refusal or "see their logs",
        )
        return True
