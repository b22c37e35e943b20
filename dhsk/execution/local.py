"""Clusters that end with their clients; one on this machine, of processes or threads."""

import atexit
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

import dask
from distributed import Client, LocalCluster

from dhsk.errors import InputError, warn
from dhsk.execution.folder import TemporaryFolder
from dhsk.execution.settings import SharedSetting, short_logs

SOON: Final = 2.0
"""Seconds after which it is said that workers are waited for."""

_few_pages = SharedSetting(
    lambda: dask.config.set(
        {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    )
)
"""Pages ask for no credential, and those that Dask serves by default show logs and calls to every
user of the machine. What is left is the dashboard, where bokeh is installed."""


class OwningClient(Client):  # type: ignore[misc]  # its base is untyped
    """Client with its own cluster, which ends with it.

    Parameters
    ----------
    cluster
        A running cluster; it is closed here even if no client can be made.
    folder
        Folder that is removed after the cluster.
    before
        Called before the cluster is closed.
    **options
        Those of `distributed.Client`.
    """

    def __init__(
        self,
        cluster: Any,
        *,
        folder: TemporaryFolder | None = None,
        before: Callable[[], Any] | None = None,
        **options: Any,
    ) -> None:
        self._folder, self._before = folder, before
        self._ended = False
        self._at_exit = partial(_close, weakref.ref(self))
        try:
            super().__init__(cluster, **options)
        except BaseException:
            cluster.close()
            raise
        # Dask would end the parts in any order, and log lost connections.
        atexit.register(self._at_exit)

    def close(self, *arguments: Any, **options: Any) -> Any:
        """Close the client, as `distributed.Client.close` does, and then the cluster, once.

        Garbage collection closes again, at any moment. To close the cluster takes the lock that is
        held while another one starts: the thread that starts it would wait for itself.
        """
        try:
            return super().close(*arguments, **options)
        finally:
            if not self._ended:
                self._ended = True
                atexit.unregister(self._at_exit)
                if self._before is not None:
                    self._before()
                if self.cluster is not None:
                    self.cluster.close()
                if self._folder is not None:
                    self._folder.remove()


class LocalClient(OwningClient):
    """Client with its own local cluster.

    `distributed.Client` can start one too, but if that fails it leaves parts of the cluster running
    and itself as the default client. The workers' folders are in a `TemporaryFolder`. Options are
    those of `distributed.LocalCluster` and of `distributed.Client`.
    """

    def __init__(self, **options: Any) -> None:
        of_client = {"timeout", "set_as_default", "name", "heartbeat_interval", "direct_to_workers"}
        own = {name: options.pop(name) for name in of_client & set(options)}
        parent = dask.config.get("temporary-directory")
        folder = TemporaryFolder(None if parent is None else Path(parent))
        place = {"local_directory": str(folder.path)}
        of_scheduler = {"scheduler_kwargs": place | options.pop("scheduler_kwargs", {})}
        options = place | options | of_scheduler
        with short_logs(), _few_pages():
            cluster = LocalCluster(**options)  # closes itself if it fails
            super().__init__(cluster, folder=folder, **own)


def _close(reference: "weakref.ref[OwningClient]") -> None:
    """Close a client that still exists."""
    client = reference()
    if client is not None:
        client.close()


def await_workers(
    client: Client, n_workers: int, seconds: float, said: Callable[[int], str]
) -> None:
    """Wait for workers; with the client closed, InputError that says how many came.

    Warns where they are not there soon.
    """

    def found() -> int:
        return len(client.scheduler_info(n_workers=-1)["workers"])

    begin = monotonic()
    try:
        with suppress(TimeoutError):
            client.wait_for_workers(n_workers, timeout=min(SOON, seconds))
        if found() < n_workers:
            warn(
                f"{found()} of {n_workers} workers are there: waiting {seconds:.0f} s for the "
                "others",
                UserWarning,
            )
        client.wait_for_workers(n_workers, timeout=max(0.1, begin + seconds - monotonic()))
    except BaseException as error:
        late = found() if isinstance(error, TimeoutError) else None
        client.close()
        if late is not None:
            raise InputError(said(late)) from error
        raise


def thread_client(threads: int, *, set_as_default: bool = True) -> LocalClient:
    """Start a cluster of threads in this process."""
    return LocalClient(
        processes=False,
        n_workers=1,
        threads_per_worker=threads,
        # With None, Dask's status pages would listen on every interface.
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        memory_limit=0,
        set_as_default=set_as_default,
    )
