"""What Dask, dask-jobqueue and threadpoolctl do otherwise than is needed here, and the way around.

Private names of theirs are used in this module only. Each part says what is wrong, the issue where
it is known, and when it can go. Settings of theirs that are only chosen (logs, pages, thresholds)
are in `settings`. Three shortcomings have modules of their own: `in_flight`, as a stopped worker
keeps its tasks (dask/distributed#6110); `shared`, as scattered values wait for ever for such a
worker (the same issue); `job_keeper`, as `Cluster.adapt` cancels jobs of several workers
(dask/dask-jobqueue#498). Read on distributed 2026.8, dask-jobqueue 0.9, threadpoolctl 3.8.
"""

import asyncio
import gc
import logging
import re
import shlex
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from threadpoolctl import OpenBLASController

from dhsk import systems
from dhsk.errors import InputError, optional_module

if TYPE_CHECKING:
    from distributed import Client, Worker

OURS: Final = "-dhsk-"
"""Part of the key of each of dhsk's tasks."""

LOST_SECONDS: Final = 0.5
"""Time between two attempts to fetch a result that was lost with its worker and is made anew."""

# To import `distributed` takes 0.3 s of a processor, longer than a small matrix. What runs on
# threads does without: here and in `workers` it is imported where there is a client. No issue.


def is_distributed_loaded() -> bool:
    """Whether anything in this process may have a client or a worker."""
    return "distributed" in sys.modules


# Workers log the traceback of each task that fails, and each task that is cancelled; the error is
# raised where the result is read, so that it would be seen twice. dask/distributed#6882 asks for a
# setting, and is open: this can go with the version that has one.


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a worker's log record is more than the failure or cancellation of a task of dhsk."""
    said = record.getMessage()
    return OURS not in said or not said.startswith(("Compute Failed", "Async instruction"))


for _name in ("distributed.worker", "distributed.worker.state_machine"):
    logging.getLogger(_name).addFilter(_is_news)


# A client whose scheduler is lost logs each attempt to reach it again, where one sentence of ours
# says what is wrong. No issue: this can go when these records have a level of their own.


@contextmanager
def without_logs(name: str) -> Iterator[None]:
    """Silence a logger."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


# Signals of a terminal or a batch system reach all processes of a group. Workers die of them, and
# print tracebacks, before their client has ended them: dask/distributed#1925, open. A cluster that
# is interrupted while it ends takes ten seconds and prints tracebacks too: no issue.


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Have worker processes that are started ignore Ctrl-C and SIGTERM: they end with their client.

    The thread that starts the workers inherits the mask, and so do they; a signal that arrives
    meanwhile is delivered at the end. A worker that exceeds its memory is sent SIGTERM by its
    nanny, and then SIGKILL, as SIGTERM has no effect.
    """
    with systems.blocking(signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore signals while a cluster ends."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# `Client.run`, `register_plugin` and others wait for all workers, for ever if one is stopped. There
# is no issue that asks for a timeout: this can go when these methods take one.


def within(
    client: "Client",
    seconds: float,
    method: Callable[..., Awaitable[Any]],
    *given: Any,
    **named: Any,
) -> Any:
    """Call a method of a client; `TimeoutError` of `distributed` if it takes longer.

    Called in the event loop, as here, public methods return what is to be awaited.
    """

    async def call() -> Any:
        return await method(*given, **named)

    return client.sync(call, callback_timeout=seconds)


# The error of a plugin on a worker that joins is logged there, and the worker takes tasks all the
# same: dask/distributed#6906, open. With the version in which such a worker ends, `leave` can go.


def is_starting(worker: "Worker") -> bool:
    """Whether a worker only joins: it sends no heartbeats yet."""
    return not worker.periodic_callbacks["heartbeat"].is_running()


def leave(worker: "Worker", reason: str) -> None:
    """End a worker that is starting: it gets no tasks, and its events are sent first."""
    from distributed.core import Status

    worker.status = Status.closing_gracefully
    worker.loop.add_callback(partial(_closed, worker, reason))


async def _closed(worker: "Worker", reason: str) -> None:
    await asyncio.sleep(1.0)
    await worker.close(reason=reason)


# A forked process inherits clients and workers, but not the threads that they live on: calls wait
# for ever. dask/distributed#5947, open: this can go when clients know the process that made them.

inherited: WeakSet[Any] = WeakSet()
"""Clients and workers from before this process was forked."""


def _inherit() -> None:
    if is_distributed_loaded():
        from distributed import Client, Worker

        inherited.update(Client._instances)
        inherited.update(Worker._instances)


systems.at_fork(after_in_child=_inherit)


def in_dask_task() -> bool:
    """Whether this code runs in a task of a worker of this process."""
    if not is_distributed_loaded():
        return False
    from distributed import get_worker

    try:
        return get_worker() not in inherited
    except ValueError:  # there is none
        return False


# `secede` raises KeyError if a task has seceded already, and AttributeError on a thread that a task
# has started, and nothing public tells. dask/distributed#6607, which was to replace it, is closed.


@contextmanager
def out_of_pool() -> Iterator[None]:
    """Free the thread of a Dask task for the tasks that it waits for."""
    from distributed import rejoin, secede
    from distributed.worker import thread_state

    seceded = in_dask_task() and hasattr(thread_state, "start_time")
    try:
        if seceded:
            secede()
    except KeyError:
        seceded = False
    try:
        yield
    finally:
        if seceded:
            rejoin()


# `Client.gather` and `as_completed` ask for many results at once, and one of a stopped worker keeps
# all of them waiting. Since dask/distributed#7995 such a worker is not removed. No issue asks for
# results that come alone: this can go when `Future.result` gathers without a group.


async def fetched(client: "Client", future: Any, turn: asyncio.Semaphore) -> Any:
    """Result of a future that has finished well, asked for alone."""
    async with turn:
        while future.status != "error":
            answer = await client.scheduler.gather(keys=[future.key])
            if answer["status"] == "OK":
                return answer["data"][future.key]
            await asyncio.sleep(LOST_SECONDS)
        return await future


# A client that found no scheduler ends itself when it is collected. That takes the lock under which
# distributed starts the next client; collected just then, it would wait for itself. No issue; that
# clients stay until they are collected is dask/distributed#7770, open.


def collect_failed_client() -> None:
    """End a client that could not connect; call it where no reference is left."""
    gc.collect()


# From threadpoolctl 3.8 on, the first thread that sets a limit owns OpenBLAS until its context is
# left, and limits that other threads set are silently ignored. joblib/threadpoolctl#220, open: this
# can go when limits of OpenBLAS are each thread's own.


def take_control_of_blas() -> None:
    """Let the next thread set limits of OpenBLAS."""
    take = getattr(OpenBLASController, "clear_controlling_thread", None)
    if take is not None:
        take(force=True)


# When it is imported, dask-jobqueue 0.9.0 makes Ctrl-C end Python with code 0. That is
# dask/dask-jobqueue#696, mended by #697: this can go with the first release after 0.9.0, and a test
# says so.


def jobqueue() -> Any:
    """The module `dask_jobqueue`, with signals as they were; InputError if it is not installed."""
    if sys.modules.get("dask_jobqueue") is not None:
        return sys.modules["dask_jobqueue"]
    if current_thread() is not main_thread():  # only that one may say what signals do
        raise InputError("import dask_jobqueue in the main thread, or connect there")
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        return optional_module("dask_jobqueue", "slurm", "worker jobs need dask-jobqueue")
    finally:
        signal.signal(signal.SIGINT, on_interrupt)


# A job that is refused raises in the cluster's event loop, which logs it, and nobody is told: no
# issue. The command line of a worker is joined with blanks and run by a shell, and
# dask/dask-jobqueue#542, which was to quote it, is closed. This can go when `scale` raises, and
# paths are quoted.


class WatchedJob:
    """Part of a job class of `dask_jobqueue`: notes a refused submission instead of raising."""

    refusal: str | None = None
    """What the batch system said when it refused the job."""

    def __init__(self, *arguments: Any, security: Any = None, **options: Any) -> None:
        quoted = security and _QuotedSecurity(security)
        super().__init__(*arguments, security=quoted, **options)  # type: ignore[call-arg]

    async def start(self) -> None:
        """Submit the job."""
        try:
            await super().start()  # type: ignore[misc]  # of the class this one is mixed into
        except (RuntimeError, OSError, ValueError) as error:
            from distributed.deploy.spec import ProcessInterface

            self.refusal = said_by(error)
            await ProcessInterface.start(self)  # the cluster waits for jobs that do not start

    async def close(self) -> None:
        """Cancel the job, and note that it is closed, which the cluster checks at its end."""
        from distributed.deploy.spec import ProcessInterface

        await super().close()  # type: ignore[misc]  # as above
        await ProcessInterface.close(self)


class _QuotedSecurity:
    """Paths of credentials as words of a shell."""

    def __init__(self, security: Any) -> None:
        self._security = security

    def get_tls_config_for_role(self, role: str) -> dict[str, str]:
        """As of `distributed.Security`; a worker's command line takes no ciphers."""
        found = self._security.get_tls_config_for_role(role)
        return {name: shlex.quote(path) for name, path in found.items() if path is not None}


def said_by(error: BaseException) -> str:
    """The batch system's own words in an error of `dask_jobqueue`."""
    said = re.search(r"stderr:\n(.*)", str(error), re.DOTALL)
    return " ".join((said[1] if said else str(error)).split())


# Each connection keeps its last thousand messages for debugging (dask/distributed#1630), the
# scheduler's to workers with the tasks and their arrays: 3 kB of each task without arrays, of up
# to a thousand for each worker. Connections that are opened here keep one (`settings.short_logs`);
# those of a client and a scheduler of somebody else are cut. It can go when a setting of its own is
# small by default.


def message_cutter() -> Callable[..., None]:
    """What has the connections of a scheduler keep their last message alone.

    It is pickled by value, as a function in a function is: the scheduler may lack dhsk.
    """

    def cut(dask_scheduler: Any) -> None:
        from collections import deque

        for sender in (
            *dask_scheduler.stream_comms.values(),
            *dask_scheduler.client_comms.values(),
        ):
            sender.recent_message_log = deque(sender.recent_message_log, 1)

    return cut


def cut_own_messages(client: "Client") -> None:
    """Have the connection of a client to its scheduler keep its last message alone."""
    sender = client.scheduler_comm
    if sender is not None:
        sender.recent_message_log = deque(sender.recent_message_log, 1)
