"""Several calls at once in one process: all end, with the bits of one after the other."""

import copy
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_client
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info

import dhsk
from dhsk.execution.workers import current_client

pytestmark = [pytest.mark.threads, pytest.mark.timeout(240)]

DOORS = ("compute_gram", "stored", "HeatSVC", "NystromSVC", "cross_validate", "of rank")

Calls = dict[str, Callable[..., Any]]


@pytest.fixture(scope="module")
def calls() -> Calls:
    """A call through every door, which gives arrays.

    BLAS on one thread and on two gives different bits at these sizes.
    """
    rng = np.random.default_rng(3)
    X = rng.poisson(0.7, (401, 375)).astype(np.float64)
    y = np.arange(401) % 3
    X[:, :3] += 2.0 * np.eye(3)[y]
    kernel = dhsk.HeatKernel.at_scale(dim=375, time_scale=1.0)

    def gram() -> Any:
        return np.asarray(dhsk.compute_gram(X, kernel, tile=128))

    def stored() -> Any:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            return np.asarray(dhsk.compute_gram(X, kernel, store=folder + "/gram", tile=128))

    def svc() -> Any:
        model = dhsk.HeatSVC(C=10.0).fit(X, y == 0)
        return [model.dual_coef_, model.intercept_]

    def nystrom() -> Any:
        model = dhsk.NystromSVC(n_components=250, dtype="float64", random_state=0).fit(X, y)
        return [model.model_.coef, model.model_.intercepts]

    def validated(**options: Any) -> Any:
        result = dhsk.cross_validate(X, y, time_scale=[0.7, 1.4], C=[1, 10], cv=3, **options)
        return [[row["score"], row["kkt"]] for row in result.results_]

    functions = gram, stored, svc, nystrom, validated, lambda: validated(low_rank=dhsk.LowRank(200))
    return dict(zip(DOORS, functions, strict=True))


def bits(result: Any) -> bytes:
    """All bits of what a call gives."""
    parts = result if isinstance(result, list) else [result]
    return b"".join(np.asarray(part, dtype=np.float64).tobytes() for part in parts)


@pytest.fixture(scope="module")
def expected(calls: Calls) -> dict[str, bytes]:
    """What the calls give one after the other."""
    return {door: bits(call()) for door, call in calls.items()}


def state() -> dict[str, Any]:
    """What a call must leave as it was."""
    np.ones((2, 2)) @ np.ones((2, 2))
    config = copy.deepcopy(dask.config.config)
    # Without bokeh every scheduler that is started adds a page to this list.
    del config["distributed"]["scheduler"]["http"]["routes"]
    return {
        "BLAS": sorted((p["filepath"], p["num_threads"]) for p in threadpool_info()),
        "environment": {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")},
        "dask": config,
        "signals": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "handlers": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
        "client": current_client(),
    }


@pytest.fixture
def _as_it_was(expected: dict[str, bytes]) -> Iterator[None]:
    """The process is left as it was, by the second calls that it makes: the first load modules."""
    before, threads = state(), set(threading.enumerate())
    yield
    assert state() == before
    left = [t for t in set(threading.enumerate()) - threads if t.name.startswith("ThreadPool")]
    assert not left


@pytest.mark.slow(beyond=1)
@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize("door", [*DOORS, "all"])
def test_threads(door: str, calls: Calls, expected: dict[str, bytes]) -> None:
    """Four threads at the same door, or each at another."""
    wanted = [*DOORS, *DOORS] if door == "all" else [door] * 4
    with ThreadPoolExecutor(4) as pool:
        running = [(name, pool.submit(calls[name])) for name in wanted]
        for name, future in running:
            assert bits(future.result()) == expected[name], name


@pytest.mark.usefixtures("_as_it_was")
def test_threads_of_joblib(calls: Calls, expected: dict[str, bytes]) -> None:
    """As scikit-learn's searches run fits."""
    found = joblib.Parallel(4, backend="threading")(joblib.delayed(calls[name])() for name in DOORS)
    assert dict(zip(DOORS, map(bits, found), strict=True)) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("_as_it_was")
def test_processes_of_joblib(calls: Calls, expected: dict[str, bytes]) -> None:
    """As scikit-learn's searches run fits by default; with processes that know nothing of this."""
    with joblib.parallel_config("loky", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(calls[name])() for name in DOORS)
    joblib.externals.loky.get_reusable_executor().shutdown()
    assert dict(zip(DOORS, map(bits, found), strict=True)) == expected


@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize("threads", [2, 4])
def test_tasks_of_threads(threads: int, calls: Calls, expected: dict[str, bytes]) -> None:
    """Tasks of a Dask worker of threads compute on threads, not on the worker that they fill."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=threads, dashboard_address="127.0.0.1:0"
    ) as client:
        futures = [client.submit(calls[name], pure=False) for name in DOORS]
        found = [bits(one) for one in client.gather(futures)]
        assert current_client() is client
    assert dict(zip(DOORS, found, strict=True)) == expected


@pytest.mark.usefixtures("_as_it_was")
def test_tasks_may_ask_for_their_own_workers(tmp_path: Path) -> None:
    """A task that gives the client of its workers makes room for the tasks that it waits for."""
    X = np.random.default_rng(0).random((50, 20))
    kernel = dhsk.HeatKernel(dim=20, time=0.1)

    def gram(number: int) -> Any:
        store = tmp_path / str(number)
        return np.asarray(dhsk.compute_gram(X, kernel, client=get_client(), store=store, tile=16))

    expected = np.asarray(dhsk.compute_gram(X, kernel, tile=16))
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as client:
        for found in client.gather(client.map(gram, range(4))):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # that is what is tested
@pytest.mark.parametrize("client", [False, True])
def test_forks(client: bool, calls: Calls, expected: dict[str, bytes]) -> None:
    """Forked processes do not wait for the threads, or for the Dask client, of their parent."""
    context = multiprocessing.get_context("fork")

    def forked(queue: Any, name: str) -> None:
        queue.put((name, bits(calls[name]())))

    with LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as cluster:
        parent = Client(cluster) if client else None
        queue: Any = context.Queue()
        children = [context.Process(target=forked, args=(queue, name)) for name in DOORS]
        for child in children:
            child.start()
        try:
            found = dict(queue.get(timeout=120) for _ in children)
        finally:
            for child in children:
                child.kill()
                child.join()
            if parent is not None:
                parent.close()
    assert found == expected


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_client_of_a_parent_is_refused(calls: Calls) -> None:
    """What serves it does not run in the child, which would wait for ever."""

    def forked(pipe: Any, client: Client) -> None:
        with pytest.raises(dhsk.InputError, match="connect here, or omit client"):
            dhsk.compute_gram(np.eye(3), dhsk.LinearKernel(), client=client)
        pipe.send("refused")

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as client:
        child = context.Process(target=forked, args=(sender, client))
        child.start()
        assert receiver.poll(60)
        assert receiver.recv() == "refused"
        child.join()


def test_a_call_stays_where_it_began(calls: Calls, expected: dict[str, bytes]) -> None:
    """A client that another thread makes the default meanwhile gets none of its work."""
    started: list[Client] = []

    def another(progress: dhsk.Progress) -> None:
        if not started:
            with ThreadPoolExecutor(1) as pool:
                options = {"processes": False, "n_workers": 1, "dashboard_address": "127.0.0.1:0"}
                started.append(pool.submit(lambda: Client(**options)).result())

    try:
        assert bits(calls["cross_validate"](progress=another)) == expected["cross_validate"]
        assert current_client() is started[0]
        assert started[0].cluster.scheduler.transition_counter == 0
    finally:
        for client in started:
            client.close()


@pytest.mark.timeout(60)
def test_derived_kernels_on_threads_do_not_wait_for_each_other(rng: Any) -> None:
    """Threads that read tiles of several Gaussian kernels of CSR samples all end, on 3.11 too."""
    X = csr_array(rng.poisson(1.0, (400, 375)).astype(np.float64))
    y = np.arange(400) % 4
    kernels = [dhsk.GaussianKernel(sigma) for sigma in (2, 4, 8, 16, 32, 64, 128, 256)]
    result = dhsk.cross_validate(X, y, kernels=kernels, C=np.logspace(-1, 4, 6), cv=5)
    assert len(result.results_) == 8 * 6 * 5
